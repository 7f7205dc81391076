"""Subsets on the CPU: several examples in SIMD lanes. Argmax and SparseMAP are short sorts and stay with the reference."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from pullback.inference._numba.threads import spread
from pullback.inference.front import checks
from pullback.inference.front.by_mode import by_mode
from pullback.inference.front.modes import Mode
from pullback.inference.subset.sums import LANES, sums
from pullback.inference.subset.tangents import tangents

_NO_SEEDS = np.zeros(0, np.int64)


def _run(mode: Mode, which: int | slice, scores: Tensor, lengths: Tensor, k: Tensor, *given: Tensor, validate: bool) -> Any:
    """The values that a kernel finds for the examples, and what it writes for the items.

    Those of examples with a bad status become NaN, or an error.
    """
    s = scores.detach().contiguous()
    out = s if mode in (Mode.LOG_PARTITION, Mode.ENTROPY) else torch.zeros_like(s)
    value, status = np.zeros(len(s)), np.zeros(len(s), np.int64)
    if len(s) > 0:
        sizes = lengths.contiguous().numpy(), k.contiguous().numpy()
        order = np.argsort(-sizes[0] * (sizes[1] + 1), kind="stable")
        work, written = s.numel() * (float(sizes[1].max()) + 10.0), (out.numpy(), value, status)
        arrays = s.numpy(), *sizes, order, int(mode)
        if mode < Mode.TANGENT:
            seeds = given[0].contiguous().numpy() if given else _NO_SEEDS
            spread(sums, -(-len(s) // LANES), 4.0 * work, *arrays, seeds, *written)
        else:
            direction = given[0].detach().to(s.dtype).contiguous() if given else s
            spread(tangents, -(-len(s) // LANES), 12.0 * work, *arrays, direction.numpy(), *written)
    results = (torch.from_numpy(value), *(() if out is s else (out,)))
    found = tuple(checks.settled(x, status, validate) for x in results)
    return (found[0], found[-1])[which]


log_partition, marginals, log_partition_marginals, marginals_vjp, entropy, entropy_gradient, sample = by_mode(_run)
