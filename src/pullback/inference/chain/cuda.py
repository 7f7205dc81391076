"""Tag sequences on a GPU: sums and paths in one launch, a position in one tile or in several; the rest by a hypergraph."""

from __future__ import annotations

import torch
from torch import Tensor

from pullback.inference.chain import cuda_paths, cuda_sums, cuda_wide
from pullback.inference.chain.derivations import graph
from pullback.inference.chain.family import CHAIN
from pullback.inference.hypergraph.cuda import operations
from pullback.inference.triton_support import contiguous, launch, next_power_of_2

(
    _argmax, _log_partition, _marginals, _log_partition_marginals, _log_prob, marginals_vjp, entropy, entropy_gradient, _sample,
) = operations(CHAIN.layout, graph)  # fmt: skip

LOG_PARTITION, MARGINALS, SLOPE = range(3)  # as the kernel numbers them
ONE_TILE, MOST_TAGS = 64, 4096


def argmax(scores: Tensor, lengths: Tensor, validate: bool) -> Tensor:
    if validate or not _fits(scores):
        return _argmax(scores, lengths, validate=validate)
    return _path(scores, lengths, None)


def sample(scores: Tensor, lengths: Tensor, seeds: Tensor, validate: bool) -> Tensor:
    if validate or not _fits(scores):
        return _sample(scores, lengths, seeds, validate=validate)
    return _path(scores, lengths, contiguous(seeds))


def log_partition(scores: Tensor, lengths: Tensor, validate: bool) -> Tensor:
    if validate or not _fits(scores):
        return _log_partition(scores, lengths, validate=validate)
    return _sums(LOG_PARTITION, scores, lengths, torch.float64)[0]


def marginals(scores: Tensor, lengths: Tensor, validate: bool) -> Tensor:
    if validate or not _fits(scores):
        return _marginals(scores, lengths, validate=validate)
    return _sums(MARGINALS, scores, lengths, torch.float64)[1]


def log_partition_marginals(scores: Tensor, lengths: Tensor, validate: bool) -> tuple[Tensor, Tensor]:
    if validate or not _fits(scores):
        return _log_partition_marginals(scores, lengths, validate=validate)
    return _sums(MARGINALS, scores, lengths, torch.float64)


def log_prob(scores: Tensor, lengths: Tensor, z: Tensor, validate: bool) -> tuple[Tensor, Tensor]:
    if validate or not _fits(scores):
        return _log_prob(scores, lengths, z, validate=validate)
    return _sums(SLOPE, scores, lengths, scores.dtype, z)


def _fits(scores: Tensor) -> bool:
    return scores.shape[-1] <= MOST_TAGS and scores.numel() > 0


def _path(scores: Tensor, lengths: Tensor, seeds: Tensor | None) -> Tensor:
    """The best sequences, or some drawn."""
    s, (count, n, tags, _) = contiguous(scores.detach()), scores.shape
    out, width = torch.empty_like(s), max(next_power_of_2(tags), 4)
    choices, lengths = s.new_empty((count, n, width), dtype=torch.int32), contiguous(lengths)
    arrays = s, lengths if seeds is None else seeds, lengths, choices
    options = {"DRAW": seeds is not None, "TAGS": width}
    if tags > ONE_TILE:
        values = s.new_empty((count, 2, width), dtype=torch.float64)
        launch(cuda_wide.path, count, s.device, *arrays, values, out, n, tags, **options, **_wide(width))
    else:
        warps = 1 if width <= 8 else 4 if width <= 16 else 8
        launch(cuda_paths.path, count, s.device, *arrays, out, n, tags, **options, num_warps=warps)
    return out


def _sums(
    what: int, scores: Tensor, lengths: Tensor, dtype: torch.dtype, z: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Values, and what each part gets (for log-partitions alone: anything)."""
    s, (count, n, tags, _) = contiguous(scores.detach()), scores.shape
    given = s if z is None else contiguous(z.detach().to(s.dtype))
    out = s if what == LOG_PARTITION else torch.empty_like(s)
    value, width = s.new_empty(count, dtype=dtype), max(next_power_of_2(tags), 4)
    scratch = s.new_empty((count, 3 * n + 2, width), dtype=torch.float64)
    arrays = s, given, contiguous(lengths), scratch, out, value
    if tags > ONE_TILE:
        launch(cuda_wide.sums, count, s.device, *arrays, n, tags, WHAT=what, TAGS=width, **_wide(width))
    else:
        warps = 4 if width <= 8 else 8
        launch(cuda_sums.sums, count, s.device, *arrays, n, tags, WHAT=what, TAGS=width, num_warps=warps)
    return value, out


def _wide(width: int) -> dict[str, int]:
    """How many rows of transitions are in a tile, and how many warps it has."""
    return {"ROWS": max(4096 // width, 1), "num_warps": 8}
