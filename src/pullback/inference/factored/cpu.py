"""Tag sequences with transitions apart, on the CPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from pullback.inference._numba.memory import empty
from pullback.inference.chain.calls import Calls, Kernel
from pullback.inference.factored import kernels, maximum, tangents
from pullback.inference.factored.family import FACTORED, positions
from pullback.inference.front.modes import Mode


class _Calls(Calls):
    """Those of examples in float32 whose weights leave its range are computed in float64 where that has room for them."""

    def _spread(self, kernel: Kernel, cost: float, scores: Tensor, lengths: Tensor, *rest: Any) -> int:
        failed = super()._spread(kernel, cost, scores, lengths, *rest)
        if failed == 0 or kernel is not kernels.sums:
            return failed
        mode, z, seeds, out, log_z, log_p = rest
        rows = np.isnan(log_z).nonzero()[0]
        if len(rows) == 0:
            return failed
        chosen, shape = torch.from_numpy(rows), (len(rows), *scores.shape[1:])

        def wide(x: np.ndarray) -> Tensor:
            return empty(shape, torch.float64).copy_(torch.from_numpy(x if len(rows) == len(x) else x[rows]))

        s = wide(scores.numpy())
        own = wide(z).numpy() if mode == Mode.LOG_PROB else s.numpy()  # which no other mode reads
        found = s if mode == Mode.LOG_PARTITION else empty(shape, torch.float64)  # to which that one writes nothing
        values = np.zeros((2, len(rows)))
        given = seeds[rows] if len(seeds) > 0 else seeds
        again = super()._spread(kernel, cost, s, lengths[chosen], mode, own, given, found.numpy(), *values)
        log_z[rows], log_p[rows] = values
        if mode != Mode.LOG_PARTITION:
            out[rows] = found.numpy()
        return failed - len(rows) + again


_calls = _Calls(
    FACTORED.layout, maximum.argmax, kernels.sums, tangents.tangents,
    lambda shape: shape[0] * (positions(shape) + 2) * shape[-1] ** 2,
)  # fmt: skip
argmax, sample, log_prob = _calls.argmax, _calls.sample, _calls.log_prob
log_partition, marginals, log_partition_marginals = _calls.log_partition, _calls.marginals, _calls.log_partition_marginals
marginals_vjp, entropy, entropy_gradient = _calls.marginals_vjp, _calls.entropy, _calls.entropy_gradient
