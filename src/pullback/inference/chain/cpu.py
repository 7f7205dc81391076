"""Tag sequences on the CPU."""

from __future__ import annotations

import math

from pullback.inference.chain import kernels, maximum, tangents
from pullback.inference.chain.calls import Calls
from pullback.inference.chain.family import CHAIN

_calls = Calls(CHAIN.layout, maximum.argmax, kernels.sums, tangents.tangents, math.prod)
argmax, sample, log_prob = _calls.argmax, _calls.sample, _calls.log_prob
log_partition, marginals, log_partition_marginals = _calls.log_partition, _calls.marginals, _calls.log_partition_marginals
marginals_vjp, entropy, entropy_gradient = _calls.marginals_vjp, _calls.entropy, _calls.entropy_gradient
