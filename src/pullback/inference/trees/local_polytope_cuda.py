"""The projection onto the local polytope on a GPU: one kernel, one program per sentence, all numbers in registers.

The same search as in `local_polytope.py`. Sparsemax needs no sorting here: from tau = max - 1, which is too small, the
threshold of the scores above it, tau = (sum - 1) / count, grows until the scores above it stay the same: a few rounds.
"""

from __future__ import annotations

import torch
from torch import Tensor

from pullback.inference._triton.support import constant, contiguous, jit, launch, next_power_of_2, tl

LONGEST = 128
"""Words up to which a sentence fits into registers."""
_ITERATIONS = constant(40)  # half of them Newton's, half of them bisections
_EXACT = constant(1e-15)  # an error of the root's sum that is rounding


def project(scores: Tensor, allowed: Tensor, multiroot: bool) -> Tensor:
    """The nearest points, `[B, n, n]`, of scores `[B, n, n]` of float64 for n up to `LONGEST`."""
    batch, n, _ = scores.shape
    out = torch.empty_like(scores, memory_format=torch.contiguous_format)
    size = max(16, next_power_of_2(n))
    arguments = contiguous(scores), contiguous(allowed).view(torch.uint8), out, n, int(multiroot)
    launch(_project, batch, scores.device, *arguments, SIZE=size, num_warps=4 if size <= 32 else 8)
    return out


@jit(do_not_specialize=["n", "multiroot"])
def _project(scores, allowed, out, n, multiroot, SIZE: tl.constexpr):
    row, column = tl.arange(0, SIZE)[:, None], tl.arange(0, SIZE)[None, :]
    inside = (row < n) & (column < n)
    at = tl.program_id(0).to(tl.int64) * n * n + row * n + column
    ok = tl.load(allowed + at, mask=inside, other=0) != 0
    s = tl.load(scores + at, mask=ok, other=-float("inf"))
    root = row == column
    low, high = _interval(s, root, multiroot)
    mu = _heads(s)
    if (multiroot == 0) | (tl.sum(tl.sum(tl.where(root, mu, 0.0), 0), 0) < 1):
        iteration = 0
        x, found, error = high, high, high * 0 + float("inf")
        while (iteration < _ITERATIONS) & (error > _EXACT):
            mu = _heads(tl.where(root, s + x, s))
            used = (mu > 0).to(tl.float64)
            words = tl.maximum(tl.sum(used, 0), 1.0)
            slope = tl.sum(tl.sum(tl.where(root, used, 0.0), 0) * (1 - 1 / words), 0)
            excess = tl.sum(tl.sum(tl.where(root, mu, 0.0), 0), 0) - 1
            closer = tl.abs(excess) < error
            found, error = tl.where(closer, x, found), tl.where(closer, tl.abs(excess), error)
            low, high = tl.where(excess < 0, x, low), tl.where(excess < 0, high, x)
            newton = x - excess / slope
            use = (newton > low) & (newton < high) & (iteration % 2 == 0)
            x = tl.where(use, newton, (low + high) / 2)
            iteration += 1
        mu = _heads(tl.where(root, s + found, s))
    wrong = tl.max(tl.max(((s != s) | (s == float("inf"))).to(tl.int32), 0), 0) > 0
    tl.store(out + at, tl.where(wrong, float("nan"), mu), mask=inside)


@jit()
def _heads(s):
    """Sparsemax of each column, zero where the score is -inf."""
    top = tl.max(s, 0)
    s -= tl.where(top > -float("inf"), top, 0.0)[None, :]
    tau = top * 0 - 1
    tau = tl.where(tau == tau, tau, 0.0)  # a column without scores
    before = tau - 1
    while tl.max((tau > before).to(tl.int32), 0) > 0:
        before = tau
        above = s > tau[None, :]
        count = tl.maximum(tl.sum(above.to(tl.float64), 0), 1.0)
        tau = tl.maximum((tl.sum(tl.where(above, s, 0.0), 0) - 1) / count, tau)
    tau = tl.maximum(tau, before)  # they are equal; Triton 3.6 cannot compile a loop with a variable that nobody reads later
    return tl.where(s > tau[None, :], s - tau[None, :], 0.0)


@jit()
def _interval(s, root, multiroot):
    """Bounds of what to add to the root's scores, as in `local_polytope.py`."""
    own = tl.max(tl.where(root, s, -float("inf")), 0)
    others = tl.max(tl.where(root, -float("inf"), s), 0)
    choice = (own > -float("inf")) & (others > -float("inf"))
    lead = tl.max(tl.where(choice, own - tl.where(choice, others, 0.0), -float("inf")), 0)
    lead = tl.where(lead > -float("inf"), lead, 0.0)
    least = tl.where(multiroot != 0, 0.0, -float("inf"))
    return tl.maximum(-2 - lead, least), tl.maximum(1 - lead, least)
