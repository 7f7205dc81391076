"""Binary trees on the CPU."""

from __future__ import annotations

from pullback.inference.cky import generated
from pullback.inference.rules.cpu import Kernels

_kernels = Kernels(generated, longest=256)
argmax, log_partition, marginals = _kernels.argmax, _kernels.log_partition, _kernels.marginals
log_partition_marginals, marginals_vjp = _kernels.log_partition_marginals, _kernels.marginals_vjp
entropy, entropy_gradient, sample = _kernels.entropy, _kernels.entropy_gradient, _kernels.sample
