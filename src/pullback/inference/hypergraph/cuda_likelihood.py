"""Log-likelihoods on a GPU: from log-partitions, marginals and structures to values and their gradients, in one launch."""

from __future__ import annotations

from pullback.inference.hypergraph.cuda_kernels import _LOWEST, _goal
from pullback.inference.triton_support import jit, tl


@jit(do_not_specialize=["nodes", "parts", "first_limit", "second_limit"])
def likelihood(
    scores, z, values, goals, sizes, other_sizes, slope, out, nodes, parts, first_limit, second_limit,
    TWO: tl.constexpr, PARTS: tl.constexpr,
):  # fmt: skip
    """Write <s, z> - log Z to `out`, NaN where there is no structure, and z - mu over the marginals mu in `slope`."""
    b = tl.program_id(0).to(tl.int64)
    goal = _goal(goals, sizes, other_sizes, b, first_limit, second_limit, TWO)
    log_z = tl.load(values + b * (nodes + 1) + tl.maximum(goal, 0))
    fine = (goal >= 0) & (log_z > _LOWEST) & (log_z < -_LOWEST)
    score = tl.zeros([PARTS], tl.float64)
    for start in range(0, parts, PARTS):
        at = start + tl.arange(0, PARTS)
        inside = at < parts
        at += b * parts
        x = tl.load(z + at, inside, 0.0)
        s = tl.load(scores + at, inside & (x != 0.0), 0.0)
        mu = tl.load(slope + at, inside, 0.0)
        score += s.to(tl.float64) * x.to(tl.float64)
        tl.store(slope + at, x - mu, inside)
    tl.store(out + b, tl.where(fine, tl.sum(score, 0) - log_z, float("nan")).to(out.dtype.element_ty))
