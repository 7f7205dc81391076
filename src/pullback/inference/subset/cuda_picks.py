"""The k largest scores and the projection onto the capped simplex on a GPU: one program per example, without a sort."""

from __future__ import annotations

from pullback.inference._triton.support import jit, tl
from pullback.inference.subset.cuda_kernels import largest, look


@jit(do_not_specialize=["n"])
def pick(scores, lengths, ks, out, n, PROJECT: tl.constexpr, N: tl.constexpr):
    """The argmax (the first of equals) or SparseMAP into `out`; NaN for bad examples."""
    b = tl.program_id(0).to(tl.int64)
    k, items = tl.load(ks + b), tl.arange(0, N)
    s, _, fine = look(scores + b * n, tl.load(lengths + b), k, n, items)
    last = largest(s, tl.maximum(k, 1))
    if PROJECT:
        z = _capped(s - last, k)
    else:
        above, level = s > last, (s == last).to(tl.int64)
        z = (above | ((level > 0) & (tl.cumsum(level, 0) <= k - tl.sum(above.to(tl.int64), 0)))).to(tl.float64)
    z = tl.where(fine, tl.where(k > 0, z, 0.0), float("nan"))
    tl.store(out + b * n + items, z.to(out.dtype.element_ty), items < n)


@jit()
def _capped(s, k):
    """Mu = min(max(s - tau, 0), 1) with sum k, for scores less the k-th largest: tau is in [-1, 0) then.

    Halving finds the piece of the sum, which is linear between breakpoints; the piece tells tau.
    """
    t = tl.where(s > -float("inf"), tl.minimum(tl.maximum(s, -1.0), 1.0), s)
    low, high = tl.full([], -1.0, tl.float64), tl.full([], 0.0, tl.float64)
    for _ in range(54):
        middle = 0.5 * (low + high)
        enough = tl.sum(tl.minimum(tl.maximum(t - middle, 0.0), 1.0), 0) >= k
        low, high = tl.where(enough, middle, low), tl.where(enough, high, middle)
    one, free = t - low >= 1.0, (t - low > 0.0) & (t - low < 1.0)
    count = tl.sum(free.to(tl.float64), 0)
    tau = (tl.sum(tl.where(free, t, 0.0) + one.to(tl.float64), 0) - k) / tl.maximum(count, 1.0)
    tau = tl.where(count > 0, tl.maximum(tau, -1.0), low)
    return tl.minimum(tl.maximum(t - tau, 0.0), 1.0)
