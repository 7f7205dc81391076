"""Operations of tag sequences on the CPU, from their kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pullback.inference._numba.memory import empty_like
from pullback.inference._numba.threads import spread
from pullback.inference.front.by_mode import by_mode
from pullback.inference.front.checks import finish
from pullback.inference.front.layout import ARRAY, Layout
from pullback.inference.front.modes import Mode

_NO_SEEDS: np.ndarray = np.zeros(0, np.int64)
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
        (
            self.log_partition, self.marginals, self.log_partition_marginals, self.marginals_vjp, self.entropy,
            self.entropy_gradient, self.sample,
        ) = by_mode(self._run)  # fmt: skip

    def argmax(self, scores: Tensor, lengths: Tensor, validate: bool) -> Tensor:
        s = scores.detach().contiguous()
        z = empty_like(s)
        best = np.zeros(len(s))
        fine = self._spread(self._argmax, 0.5, s, lengths, z.numpy(), best) == 0
        return z if fine else finish(self._layout, s, (lengths,), (z,), best, validate)[0]

    def log_prob(self, scores: Tensor, lengths: Tensor, z: Tensor, validate: bool) -> tuple[Tensor, Tensor]:
        """The log-probabilities of z, and z less the marginals."""
        given = (z.detach() if z.dtype == scores.dtype else z.detach().to(scores.dtype)).contiguous()
        value, out = self._run(Mode.LOG_PROB, slice(2), scores, lengths, given, validate=validate)
        return value.to(scores.dtype), out

    def _run(self, mode: Mode, which: int | slice, scores: Tensor, lengths: Tensor, *given: Tensor, validate: bool) -> Any:
        """The numbers of the examples and of their parts."""
        s = scores.detach().contiguous()
        out = s if mode == Mode.LOG_PARTITION else empty_like(s)
        value, log_p = np.zeros(len(s)), np.zeros(len(s))  # in float64, where large scores do not cancel to noise
        if mode >= Mode.TANGENT:
            direction = given[0].detach().to(s.dtype).contiguous() if given else s
            failed = self._spread(self._tangents_of, 10.0, s, lengths, int(mode), direction.numpy(), out.numpy(), value)
        else:
            z, seeds = s.numpy(), _NO_SEEDS
            if mode == Mode.SAMPLE:
                seeds = given[0].contiguous().numpy()
            elif given:
                z = given[0].numpy()
            failed = self._spread(self._sums_of, 2.0, s, lengths, int(mode), z, seeds, out.numpy(), value, log_p)
        found: tuple[Tensor, ...] = torch.from_numpy(log_p if mode == Mode.LOG_PROB else value), out
        if failed:
            found = finish(self._layout, s, (lengths,), found[: 1 + (out is not s)], value, validate)
        return (found[0], found[-1])[which]

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
