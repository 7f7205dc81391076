"""Operations of tag sequences on the CPU, from their kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pullback.inference._numba.memory import empty_like
from pullback.inference._numba.threads import spread
from pullback.inference.front.checks import finish
from pullback.inference.front.layout import ARRAY, Layout
from pullback.inference.front.modes import Mode

_NO_SEEDS = np.zeros(0, np.int64)
Kernel = Callable[..., Any]


class Calls:
    """The operations of a layout whose last dimension are tags, by its kernels.

    Args:
        layout: of the scores.
        argmax: writes the best structures.
        sums: writes log-partitions and what comes with them.
        tangents: writes entropies and derivatives.
        pairs: from the shape of the scores to the number of pairs of tags that a pass looks at.
    """

    def __init__(
        self, layout: Layout, argmax: Kernel, sums: Kernel, tangents: Kernel, pairs: Callable[[torch.Size], int]
    ) -> None:
        self._layout, self._pairs = layout, pairs
        self._argmax, self._sums_of, self._tangents_of = argmax, sums, tangents

    def argmax(self, scores: Tensor, lengths: Tensor, validate: bool) -> Tensor:
        s = scores.detach().contiguous()
        z = empty_like(s)
        best = np.zeros(len(s))
        fine = self._spread(self._argmax, 0.5, s, lengths, z.numpy(), best) == 0
        return z if fine else finish(self._layout, s, (lengths,), (z,), best, validate)[0]

    def log_partition(self, scores: Tensor, lengths: Tensor, validate: bool) -> Tensor:
        return self._sums(Mode.LOG_PARTITION, scores, lengths, validate)[0]

    def marginals(self, scores: Tensor, lengths: Tensor, validate: bool) -> Tensor:
        return self._sums(Mode.MARGINALS, scores, lengths, validate)[1]

    def log_partition_marginals(self, scores: Tensor, lengths: Tensor, validate: bool) -> tuple[Tensor, Tensor]:
        return self._sums(Mode.MARGINALS, scores, lengths, validate)

    def log_prob(self, scores: Tensor, lengths: Tensor, z: Tensor, validate: bool) -> tuple[Tensor, Tensor]:
        z = z.detach() if z.dtype == scores.dtype else z.detach().to(scores.dtype)
        return self._sums(Mode.LOG_PROB, scores, lengths, validate, z.contiguous())

    def sample(self, scores: Tensor, lengths: Tensor, seeds: Tensor, validate: bool) -> Tensor:
        return self._sums(Mode.SAMPLE, scores, lengths, validate, seeds=seeds.contiguous().numpy())[1]

    def marginals_vjp(self, scores: Tensor, lengths: Tensor, direction: Tensor, validate: bool) -> Tensor:
        return self._tangents(Mode.TANGENT, scores, lengths, validate, direction.detach().to(scores.dtype).contiguous())[1]

    def entropy(self, scores: Tensor, lengths: Tensor, validate: bool) -> Tensor:
        return self._tangents(Mode.ENTROPY, scores, lengths, validate)[0]

    def entropy_gradient(self, scores: Tensor, lengths: Tensor, validate: bool) -> Tensor:
        return self._tangents(Mode.ENTROPY_TANGENT, scores, lengths, validate)[1]

    def _tangents(
        self, mode: Mode, scores: Tensor, lengths: Tensor, validate: bool, direction: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Tangents of all sequences, and the derivatives of marginals."""
        s = scores.detach().contiguous()
        out, value = empty_like(s), np.zeros(len(s))
        given = (s if direction is None else direction).numpy()
        fine = self._spread(self._tangents_of, 10.0, s, lengths, int(mode), given, out.numpy(), value) == 0
        results: tuple[Tensor, ...] = torch.from_numpy(value), out
        if not fine:
            results = finish(self._layout, s, (lengths,), results, value, validate)
        return results[0], results[1]

    def _sums(
        self,
        mode: Mode,
        scores: Tensor,
        lengths: Tensor,
        validate: bool,
        z: Tensor | None = None,
        seeds: np.ndarray = _NO_SEEDS,
    ) -> tuple[Tensor, Tensor]:
        """Log-partitions and marginals or samples, or the log-probabilities of z and z less the marginals."""
        s = scores.detach().contiguous()
        out = s if mode == Mode.LOG_PARTITION else empty_like(s)
        log_z, given = np.zeros(s.shape[0]), (s if z is None else z).numpy()
        value = np.zeros(len(log_z))  # in float64, where large scores do not cancel to noise
        fine = self._spread(self._sums_of, 2.0, s, lengths, int(mode), given, seeds, out.numpy(), log_z, value) == 0
        first = torch.from_numpy(log_z) if z is None else torch.from_numpy(value).to(s.dtype)
        if fine:
            return first, out
        found = (first,) if mode == Mode.LOG_PARTITION else (first, out)
        results = finish(self._layout, s, (lengths,), found, log_z, validate)
        return results[0], results[-1]

    def _spread(self, kernel: Kernel, cost: float, scores: Tensor, lengths: Tensor, *rest: Any) -> int:
        """Run a kernel on the examples; returns how many failed.

        `cost` is the number of operations per pair of tags.
        """
        count, tags = scores.shape[0], scores.shape[-1]
        codes = np.zeros(count, np.bool_)
        if count > 0:
            known = getattr(lengths, ARRAY, None)
            sizes = lengths.contiguous().numpy() if known is None else known
            spread(kernel, count, cost * self._pairs(scores.shape), tags, scores.numpy(), sizes, *rest, codes)
        return int(np.count_nonzero(codes))  # sooner than `any`
