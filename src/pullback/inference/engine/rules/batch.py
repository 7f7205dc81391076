"""A batch of examples as the kernels take it, and the next attempts for those that leave a kernel's range."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pullback.inference._numba.compile import no_alloc_kernel
from pullback.inference._numba.lanes import BYTES
from pullback.inference._numba.threads import scratch, spread
from pullback.inference.front import checks
from pullback.inference.front.layout import ARRAY

_ONE = np.zeros(1, np.int64)  # the order of one example
_LIKE = {4: np.empty(0, np.int32), 8: np.empty(0, np.int64)}
_SMALL = 1 << 14  # bytes of a result up to which NumPy's memory is made in less time than PyTorch's
OUT_OF_RANGE, LEFT_OUT = -1, -2  # statuses of this folder's own: to be computed again in a wider range; not now


@no_alloc_kernel
def by_length(lengths, n, starts, order):
    """Write the examples in order of falling length; returns the sum of the cubed lengths and the longest.

    One compiled call: for short examples NumPy's own dispatch would take as long as inference. A length outside 0..n
    makes the longest n + 1. `starts` is n + 2 zeros.
    """
    cubes = 0.0
    for length in lengths:
        if length < 0 or length > n:
            return 0.0, n + 1
        starts[n - length + 1] += 1  # a counting sort, stable
        cubes += float(length) * length * length
    longest = 0
    for place in range(1, n + 2):
        if starts[place] > 0:
            longest = n - place + 1 if n - place + 1 > longest else longest
        starts[place] += starts[place - 1]
    for example in range(len(lengths)):
        place = n - lengths[example]
        order[starts[place]] = example
        starts[place] += 1
    return cubes, longest


class Batch:
    """Scores and lengths as arrays, the examples in order of falling length, and a status for each.

    Args:
        scores: `[B, n, n]`.
        lengths: `[B]`; an example whose length is out of range counts as empty, and its status says so.
        extra: something else that each example has, `[B, ...]`, contiguous.
    """

    def __init__(self, scores: Tensor, lengths: Tensor, extra: Tensor | None = None) -> None:
        self.scores = scores = (scores.detach() if scores.requires_grad else scores).contiguous()
        self.lengths, self.beyond = lengths, None
        self.extra: Any = extra
        array, length = scores.numpy(), getattr(lengths, ARRAY, None)
        if length is None:
            length = lengths.contiguous().numpy()
        count, n = len(length), array.shape[-1]
        self.status = np.zeros(count, np.int64)
        if count == 1 and 0 <= (only := int(length[0])) <= n:
            self.order, self.cubes, self.longest = _ONE, float(only**3), only
        else:
            self.order = np.empty(count, np.int64)
            self.cubes, self.longest = by_length(length, n, np.zeros(n + 2, np.int64), self.order)
        if self.longest > n:
            self.beyond = (length < 0) | (length > n)
            length = np.where(self.beyond, 0, length)
            self.cubes, self.longest = by_length(length, n, np.zeros(n + 2, np.int64), self.order)
        self.arrays = array, length, self.order

    def result(self) -> tuple[Tensor, np.ndarray]:
        """A tensor of the shape and dtype of the scores, uninitialised, and the same as an array."""
        array = self.arrays[0]
        if array.nbytes < _SMALL:
            array = np.empty_like(array)
            return torch.from_numpy(array), array
        z = torch.empty_like(self.scores)  # begins at a cache line
        return z, z.numpy()

    def along(self, extra: Tensor) -> Batch:
        """The same examples with something else that each has, and statuses of their own."""
        twin = Batch.__new__(Batch)
        twin.__dict__ |= self.__dict__
        twin.extra, twin.status = extra, np.zeros(len(self.status), np.int64)
        return twin

    def without(self, examples: np.ndarray) -> Batch:
        """The same batch for an attempt that leaves out some examples, a mask."""
        twin = Batch.__new__(Batch)
        twin.__dict__ |= self.__dict__
        twin.status[examples] = LEFT_OUT
        twin.order = self.order[~examples[self.order]]
        twin.arrays = *self.arrays[:2], twin.order
        twin.cubes = float((self.arrays[1][twin.order].astype(float) ** 3).sum())
        return twin

    def run(self, module: Any, name: str, sweeps: float, options: tuple[Any, ...], *rest: Any) -> None:
        """Run a kernel of a generated module that sweeps over the splits `sweeps` times, with scratch for each thread.

        In float32 lanes an operation takes about a sixth of the time that `spread` counts on, in float64 a third.
        """
        array = self.arrays[0]
        kernel, size = _bound(module, name, self.longest, array.shape[-1])
        memory = scratch(-(-len(self.order) * array.itemsize // BYTES), size)
        if "_" in name:  # exponents are integers of the size of scores
            rest = _LIKE[array.itemsize], *rest
        work = sweeps / 144 * self.cubes * array.itemsize
        spread(kernel, len(memory), work, *self.arrays, *options, memory, *rest, self.status)

    def settle(self, results: tuple[Tensor, ...], validate: bool) -> tuple[Tensor, ...]:
        """If asked, raise for the first example whose status is not OK; otherwise its results are NaN."""
        if self.beyond is not None:
            self.status[self.beyond] = checks.BAD_SIZE
        if np.count_nonzero(self.status) == 0:  # much faster than `any`
            return results
        return tuple(checks.settled(result, self.status, validate) for result in results)


@functools.lru_cache(maxsize=1024)
def _bound(module: Any, name: str, n: int, side: int) -> tuple[Callable[..., None], int]:
    """A kernel of a generated module, and how many bytes each thread needs for examples of n words, of `side` columns."""
    numbers = module.CHARTS[name] * n * (n + 2) + 5 * (n * side + 1) + module.LINES * (n + 1) + 64
    return getattr(module, name), BYTES * numbers + 24 * (4 * n + 8)


Attempt = Callable[[Batch], tuple[Tensor, ...]]


def widening(batch: Batch, attempts: Sequence[tuple[torch.dtype, Attempt]]) -> tuple[Tensor, ...]:
    """Run the first attempt, and the next ones on the examples it left OUT_OF_RANGE, each in its dtype."""
    results = attempts[0][1](batch)
    if batch.status.any() and (outside := batch.status == OUT_OF_RANGE).any():
        left = slice(None) if outside.all() else torch.from_numpy(outside)
        extra, dtype = (None if batch.extra is None else batch.extra[left]), attempts[1][0]
        if extra is not None and extra.is_floating_point():
            extra = extra.to(dtype)
        part = Batch(batch.scores[left].to(dtype), torch.from_numpy(batch.arrays[1])[left], extra)
        for result, found in zip(results, widening(part, attempts[1:]), strict=True):
            result[left] = found.to(result.dtype)
        batch.status[outside] = part.status
    return results
