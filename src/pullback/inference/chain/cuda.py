"""Tag sequences on a GPU: every operation is one launch, a position's transitions in one tile or in several."""

from __future__ import annotations

import torch
from torch import Tensor

from pullback.inference._triton.support import contiguous, launch, next_power_of_2
from pullback.inference.chain import cuda_paths, cuda_slopes, cuda_sums, cuda_wide
from pullback.inference.chain.family import CHAIN
from pullback.inference.front import checks

LOG_PARTITION, MARGINALS, SLOPE = range(3)  # as the kernel numbers them
ONE_TILE = 64  # tags


def argmax(scores: Tensor, lengths: Tensor, validate: bool) -> Tensor:
    return _path(scores, lengths, None, validate)


def sample(scores: Tensor, lengths: Tensor, seeds: Tensor, validate: bool) -> Tensor:
    return _path(scores, lengths, contiguous(seeds), validate)


def log_partition(scores: Tensor, lengths: Tensor, validate: bool) -> Tensor:
    return _sums(LOG_PARTITION, scores, lengths, torch.float64, validate)[0]


def marginals(scores: Tensor, lengths: Tensor, validate: bool) -> Tensor:
    return _sums(MARGINALS, scores, lengths, torch.float64, validate)[1]


def log_partition_marginals(scores: Tensor, lengths: Tensor, validate: bool) -> tuple[Tensor, Tensor]:
    return _sums(MARGINALS, scores, lengths, torch.float64, validate)


def log_prob(scores: Tensor, lengths: Tensor, z: Tensor, validate: bool) -> tuple[Tensor, Tensor]:
    return _sums(SLOPE, scores, lengths, scores.dtype, validate, z)


def marginals_vjp(scores: Tensor, lengths: Tensor, direction: Tensor, validate: bool) -> Tensor:
    return _slopes(scores, lengths, validate, direction, parts=True)[1]


def entropy(scores: Tensor, lengths: Tensor, validate: bool) -> Tensor:
    return _slopes(scores, lengths, validate, None, parts=False)[0]


def entropy_gradient(scores: Tensor, lengths: Tensor, validate: bool) -> Tensor:
    return _slopes(scores, lengths, validate, None, parts=True)[1]


def _path(scores: Tensor, lengths: Tensor, seeds: Tensor | None, validate: bool) -> Tensor:
    """The best sequences, or some drawn."""
    s, (count, n, tags, _) = _prepared(scores, lengths, validate), scores.shape
    out, width = torch.empty_like(s), _width(tags)
    if s.numel() == 0:
        return out
    choices, lengths = s.new_empty((count, n, width), dtype=torch.int32), contiguous(lengths)
    arrays = s, lengths if seeds is None else seeds, lengths, choices
    options = {"DRAW": seeds is not None, "TAGS": width}
    if tags > ONE_TILE:
        values = s.new_empty((count, 2, width), dtype=torch.float64)
        launch(cuda_wide.path, count, s.device, *arrays, values, out, n, tags, **options, **_tiles(width))
    else:
        warps = 1 if width <= 8 else 4 if width <= 16 else 8
        launch(cuda_paths.path, count, s.device, *arrays, out, n, tags, **options, num_warps=warps)
    return out


def _sums(
    what: int, scores: Tensor, lengths: Tensor, dtype: torch.dtype, validate: bool, z: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Values, and what each part gets (for log-partitions alone: anything)."""
    s, (count, n, tags, _) = _prepared(scores, lengths, validate), scores.shape
    out = s if what == LOG_PARTITION else torch.empty_like(s)
    if s.numel() == 0:
        return _empty(lengths, dtype), out
    given = s if z is None else contiguous(z.detach().to(s.dtype))
    value, width = s.new_empty(count, dtype=dtype), _width(tags)
    scratch = s.new_empty((count, 3 * n + 2, width), dtype=torch.float64)
    arrays = s, given, contiguous(lengths), scratch, out, value
    if tags > ONE_TILE:
        launch(cuda_wide.sums, count, s.device, *arrays, n, tags, WHAT=what, TAGS=width, **_tiles(width))
    else:
        warps = 4 if width <= 8 else 8
        launch(cuda_sums.sums, count, s.device, *arrays, n, tags, WHAT=what, TAGS=width, num_warps=warps)
    return value, out


def _slopes(scores: Tensor, lengths: Tensor, validate: bool, direction: Tensor | None, *, parts: bool) -> tuple[Tensor, Tensor]:
    """Entropies or derivatives along a direction: one number per example and, with `parts`, one for each part."""
    s, (count, n, tags, _) = _prepared(scores, lengths, validate), scores.shape
    out = torch.empty_like(s) if parts else s
    if s.numel() == 0:
        return _empty(lengths, torch.float64), out
    along = s if direction is None else contiguous(direction.detach().to(s.dtype))
    value, width = s.new_empty(count, dtype=torch.float64), _width(tags)
    arrays = s, along, contiguous(lengths), s.new_empty((count, 4 * n + 4, width), dtype=torch.float64), out, value
    options = {"SURPRISE": direction is None, "PARTS": parts, "TAGS": width, **_tiles(width)}
    launch(cuda_slopes.slopes, count, s.device, *arrays, n, tags, **options)
    return value, out


def _prepared(scores: Tensor, lengths: Tensor, validate: bool) -> Tensor:
    """Scores as the kernels take them; with `validate`, an error for bad examples, which synchronises."""
    s = contiguous(scores.detach())
    if validate:
        status = CHAIN.layout.status(s, (lengths,))
        none = log_partition(s, lengths, False).isnan()
        checks.raise_for(torch.where((status == checks.OK) & none, checks.INFEASIBLE, status))
    return s


def _empty(lengths: Tensor, dtype: torch.dtype) -> Tensor:
    """The values of examples without a part: 0, or NaN where the length asks for some."""
    return torch.where(lengths == 0, 0.0, torch.nan).to(dtype)


def _width(tags: int) -> int:
    return max(next_power_of_2(tags), 4)


def _tiles(width: int) -> dict[str, int]:
    """How many rows of transitions are in a tile, and how many warps it has."""
    rows = min(max(4096 // width, 1), width)
    return {"ROWS": rows, "num_warps": min(max(rows * width // 128, 1), 8)}
