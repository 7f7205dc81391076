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

_KINDS = {mode: (int(mode),) * (1 if mode < Mode.TANGENT else 2) for mode in Mode}
"""Numbers are plain or, for tangents, dual."""
_NO_SEEDS: np.ndarray = np.zeros(0, np.int64)
_NO_DIRECTION: dict[torch.dtype, np.ndarray] = {torch.float32: np.zeros((0, 0), np.float32), torch.float64: np.zeros((0, 0))}


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
        kind = _KINDS[mode]
        other = _NO_SEEDS if len(kind) == 1 else _NO_DIRECTION[s.dtype]
        if given:
            other = (given[0] if mode == Mode.SAMPLE else given[0].detach().to(s.dtype)).contiguous().numpy()
        work = 4.0 * len(kind) * s.numel() * (float(sizes[1].max()) + 10.0)
        spread(sums, -(-len(s) // LANES), work, s.numpy(), *sizes, order, kind, other, out.numpy(), value, status)
    if mode == Mode.ENTROPY_TANGENT:
        out.neg_()  # of the derivative of the marginals along the scores
    results = (torch.from_numpy(value), *(() if out is s else (out,)))
    found = tuple(checks.settled(x, status, validate) for x in results)
    return (found[0], found[-1])[which]


log_partition, marginals, log_partition_marginals, marginals_vjp, entropy, entropy_gradient, sample = by_mode(_run)
