"""Log-likelihoods on a GPU: from log-partitions, marginals and structures to values and their gradients, in one launch."""

from __future__ import annotations

from pullback.inference.triton_support import jit, tl


@jit(do_not_specialize=["parts"])
def likelihood(scores, z, log_z, slope, out, parts, PARTS: tl.constexpr):
    """Write <s, z> - log Z to `out`, and z - mu over the marginals mu in `slope`."""
    b = tl.program_id(0).to(tl.int64)
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
    tl.store(out + b, (tl.sum(score, 0) - tl.load(log_z + b)).to(out.dtype.element_ty))
