"""Tag sequences with transitions apart, on the CPU."""

from __future__ import annotations

from pullback.inference.chain.calls import Calls
from pullback.inference.factored import kernels, maximum, tangents
from pullback.inference.factored.family import FACTORED, positions

_calls = Calls(
    FACTORED.layout, maximum.argmax, kernels.sums, tangents.tangents,
    lambda shape: shape[0] * (positions(shape) + 2) * shape[-1] ** 2,
)  # fmt: skip
argmax, sample, log_prob = _calls.argmax, _calls.sample, _calls.log_prob
log_partition, marginals, log_partition_marginals = _calls.log_partition, _calls.marginals, _calls.log_partition_marginals
marginals_vjp, entropy, entropy_gradient = _calls.marginals_vjp, _calls.entropy, _calls.entropy_gradient
