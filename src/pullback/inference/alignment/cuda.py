"""Monotone alignments on a GPU: every operation is one launch of one kernel, without tables per shape."""

from __future__ import annotations

import torch
from torch import Tensor

from pullback.inference._triton.support import contiguous, launch, next_power_of_2, program_count
from pullback.inference.alignment.cuda_sweeps import sweep
from pullback.inference.alignment.family import ALIGNMENT
from pullback.inference.front import checks

MAXIMUM, SAMPLE, SUM, LIKELIHOOD, SLOPE, SURPRISE = range(6)  # as the kernel numbers them
MOST_LANES = 1024


def argmax(scores: Tensor, lengths: Tensor, other_lengths: Tensor, moves: str, validate: bool) -> Tensor:
    return _parts(MAXIMUM, scores, (lengths, other_lengths), moves, validate)[1]


def sample(scores: Tensor, lengths: Tensor, other_lengths: Tensor, seeds: Tensor, moves: str, validate: bool) -> Tensor:
    return _parts(SAMPLE, scores, (lengths, other_lengths), moves, validate, seeds=seeds)[1]


def log_partition(scores: Tensor, lengths: Tensor, other_lengths: Tensor, moves: str, validate: bool) -> Tensor:
    return _values(SUM, scores, (lengths, other_lengths), moves, validate)


def entropy(scores: Tensor, lengths: Tensor, other_lengths: Tensor, moves: str, validate: bool) -> Tensor:
    return _values(SURPRISE, scores, (lengths, other_lengths), moves, validate)


def marginals(scores: Tensor, lengths: Tensor, other_lengths: Tensor, moves: str, validate: bool) -> Tensor:
    return _parts(SUM, scores, (lengths, other_lengths), moves, validate)[1]


def log_partition_marginals(
    scores: Tensor, lengths: Tensor, other_lengths: Tensor, moves: str, validate: bool
) -> tuple[Tensor, Tensor]:
    return _parts(SUM, scores, (lengths, other_lengths), moves, validate)


def log_prob(
    scores: Tensor, lengths: Tensor, other_lengths: Tensor, z: Tensor, moves: str, validate: bool
) -> tuple[Tensor, Tensor]:
    value, slope = _parts(LIKELIHOOD, scores, (lengths, other_lengths), moves, validate, given=z)
    return value.to(scores.dtype), slope


def marginals_vjp(
    scores: Tensor, lengths: Tensor, other_lengths: Tensor, direction: Tensor, moves: str, validate: bool
) -> Tensor:
    return _parts(SLOPE, scores, (lengths, other_lengths), moves, validate, given=direction)[1]


def entropy_gradient(scores: Tensor, lengths: Tensor, other_lengths: Tensor, moves: str, validate: bool) -> Tensor:
    return _parts(SURPRISE, scores, (lengths, other_lengths), moves, validate)[1]


def _values(mode: int, scores: Tensor, sizes: tuple[Tensor, Tensor], moves: str, validate: bool) -> Tensor:
    """One number per example."""
    return _sweep(mode, scores, sizes, moves, validate, None)


def _parts(
    mode: int, scores: Tensor, sizes: tuple[Tensor, Tensor], moves: str, validate: bool,
    given: Tensor | None = None, seeds: Tensor | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """One number per example, and what each cell gets."""
    out = torch.empty_like(scores, memory_format=torch.contiguous_format)
    return _sweep(mode, scores, sizes, moves, validate, out, given, seeds), out


def _sweep(
    mode: int, scores: Tensor, sizes: tuple[Tensor, Tensor], moves: str, validate: bool, out: Tensor | None,
    given: Tensor | None = None, seeds: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """The values of the examples; what each cell gets is written to `out`, if there is one."""
    s, (count, rows, columns) = contiguous(scores.detach()), scores.shape
    if validate:
        _check(s, sizes, moves)
    value = s.new_empty(count, dtype=torch.float64)
    if count == 0:
        return value
    down, right, both = columns, 1, moves == "any"
    swapped = both and rows > columns
    if swapped:
        rows, columns, down, right, sizes = columns, rows, 1, columns, sizes[::-1]
    lanes = min(max(next_power_of_2(rows), 16), MOST_LANES)
    each, dtype = (1, torch.int8) if mode <= SAMPLE else (6 if mode >= SLOPE else 3, s.dtype)
    room = -(-rows // lanes) * (columns + lanes) * lanes * each if out is not None else 0
    scratch = room * dtype.itemsize
    programs = program_count(count, scratch, least=min(max(2**32 // max(scratch, 1), 32), 256))  # up to 4 GiB keep a GPU busy
    given = s if given is None else contiguous(given.detach().to(s.dtype))
    launch(
        sweep, programs, s.device, s, given, sizes[0] if seeds is None else contiguous(seeds), *map(contiguous, sizes),
        s.new_empty(programs * room, dtype=dtype), s.new_empty(programs * 2 * columns, dtype=torch.float64),
        s if out is None else out, value, count, rows, columns, down, right,
        MODE=mode, PARTS=out is not None, BOTH=both, SWAPPED=swapped, LANES=lanes, num_warps=min(max(lanes // 32, 1), 16),
    )  # fmt: skip
    return value


def _check(scores: Tensor, sizes: tuple[Tensor, Tensor], moves: str) -> None:
    """Raise for the first example with bad values or without a path; synchronises."""
    status = ALIGNMENT.layout.status(scores, sizes)
    none = ~_values(MAXIMUM, scores, sizes, moves, False).isfinite()
    checks.raise_for(torch.where((status == checks.OK) & none, checks.INFEASIBLE, status))
