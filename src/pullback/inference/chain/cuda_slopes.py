"""Entropies of tag sequences, and derivatives of marginals, in Triton: one program per example and one launch.

As in slopes.py, each tag of a position has a rate, the mean over the tags before of

    x(a, b) = rate(i - 1, a) + direction(i, a, b),      or, for entropies, rate(i - 1, a) - log p(a given b),

and a part's probability p(a given b) q(b) changes by p(a given b) (dq(b) + q(b) (x(a, b) - rate(i, b))). A position's
transitions are in tiles of ROWS rows, of which there may be one.
"""

from __future__ import annotations

from pullback.inference._triton.support import constant, jit, tl
from pullback.inference.chain.cuda_wide import first, terms, tile_of, totals, value_of
from pullback.inference.engine.hypergraph.cuda_maximum import fill

_LOWEST = constant(-1e300)


@jit(do_not_specialize=["n", "tags"])
def slopes(
    scores, direction, lengths, scratch, out, value, n, tags,
    SURPRISE: tl.constexpr, PARTS: tl.constexpr, TAGS: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """Write entropies, or derivatives of log-partitions, to `value` and, with PARTS, the derivatives of marginals to `out`.

    NaN where there is no structure.

    Args:
        scores: `[B, n, tags, tags]`.
        direction: likewise, unless SURPRISE.
        lengths: `[B]`.
        scratch: `[B, 4 n + 4, TAGS]`, float64: values, largest terms, sums and rates of each position, and what it passes on.
        out: as the scores.
        value: `[B]`.
        n: how many positions there are.
        tags: how many tags.
        SURPRISE: whether entropies are wanted.
        PARTS: whether `out` is.
        TAGS: the power of two from `tags` on.
        ROWS: a power of two.
    """
    b, cells = tl.program_id(0).to(tl.int64), tags * tags
    scores += b * n * cells
    direction += b * n * cells
    out += b * n * cells
    scratch += b * (4 * n + 4) * TAGS
    passed = scratch + 4 * n * TAGS
    length = tl.load(lengths + b)
    sized = (length >= 0) & (length <= n)
    length = tl.where(sized, length, 0).to(tl.int32)
    tag = tl.arange(0, TAGS)
    v, bad = first(scores, length, tag, tags)
    rate = tl.zeros([TAGS], tl.float64)
    if not SURPRISE:
        rate = tl.load(direction + tag, tag < tl.where(length > 0, tags, 0), 0.0).to(tl.float64)
    tl.store(scratch + tag, v)
    tl.store(scratch + 3 * TAGS + tag, rate)
    for i in range(1, length):
        tl.debug_barrier()  # the position before is written
        here = scratch + i * 4 * TAGS
        best, total, bad = totals(scores + i * cells, here - 4 * TAGS, tag, tags, bad, TAGS, ROWS)
        whole = tl.zeros([TAGS], tl.float64)
        mean = tl.zeros([TAGS], tl.float64)
        for start in range(0, tags, ROWS):
            w, x = _weighed(scores, direction, here, i * cells, start, tag, tags, best, SURPRISE, TAGS, ROWS)
            whole += tl.sum(w, 0)
            mean += tl.sum(tl.where(w > 0, w * x, 0.0), 0)
        v = value_of(best, total)
        some = tl.where(whole > 0, whole, 1.0)
        rate = mean / some
        if SURPRISE:
            rate += tl.log(some)
        tl.store(here + tag, v)
        tl.store(here + TAGS + tag, best)
        tl.store(here + 2 * TAGS + tag, some)
        tl.store(here + 3 * TAGS + tag, rate)
    top = tl.max(v, 0)
    e = tl.exp(tl.where(v > _LOWEST, v - top, -float("inf")))
    q = e / tl.maximum(tl.sum(e, 0), 1e-300)
    if SURPRISE:
        rate -= tl.log(tl.where(q > 0, q, 1.0))
    result = tl.sum(tl.where(q > 0, q * rate, 0.0), 0)
    fine = sized & (tl.max(bad, 0) == 0) & ((top > _LOWEST) | (length == 0))
    tl.store(value + b, tl.where(fine, tl.where(length > 0, result, 0.0), float("nan")))
    if PARTS:
        fill(out, n * cells, tl.where(fine, 0.0, float("nan")), ROWS * TAGS)
        if fine & (length > 0):
            slope = tl.where(q > 0, q * (rate - result), 0.0)
            for back in range(1, length):
                tl.debug_barrier()  # what was passed on in the step before is read
                i = length - back
                here, to = scratch + i * 4 * TAGS, passed + (i % 2) * 2 * TAGS
                best, some = tl.load(here + TAGS + tag), tl.load(here + 2 * TAGS + tag)
                rate = tl.load(here + 3 * TAGS + tag)
                if SURPRISE:
                    rate -= tl.log(some)
                for start in range(0, tags, ROWS):
                    w, x = _weighed(scores, direction, here, i * cells, start, tag, tags, best, SURPRISE, TAGS, ROWS)
                    a, tile, real = tile_of(start, tag, tags, ROWS)
                    share = tl.where(real, w / some[None, :], 0.0)
                    found = tl.where(share * q[None, :] > 0, share * (slope[None, :] + q[None, :] * (x - rate[None, :])), 0.0)
                    tl.store(out + i * cells + tile, found.to(out.dtype.element_ty), real)
                    tl.store(to + a, tl.sum(share * q[None, :], 1), a < tags)
                    tl.store(to + TAGS + a, tl.sum(found, 1), a < tags)
                tl.debug_barrier()
                q = tl.load(to + tag, tag < tags, 0.0)
                slope = tl.load(to + TAGS + tag, tag < tags, 0.0)
            tl.debug_barrier()  # zeros are written
            tl.store(out + tag, slope.to(out.dtype.element_ty), tag < tags)


@jit()
def _weighed(
    scores, direction, here, at, start, tag, tags, best, SURPRISE: tl.constexpr, TAGS: tl.constexpr, ROWS: tl.constexpr
):
    """exp(term - best) of a tile, in the precision of the scores, and x; surprises lack the logarithm of its sum."""
    a, tile, real = tile_of(start, tag, tags, ROWS)
    s = terms(scores + at, here - 4 * TAGS, a, tile, real, tags)
    lower = tl.where(s != s, -float("inf"), s) - best[None, :]
    x = tl.load(here - TAGS + a, a < tags, 0.0)[:, None]
    if SURPRISE:
        x = x - lower
    else:
        x = x + tl.load(direction + at + tile, real, 0.0).to(tl.float64)
    return tl.exp(lower.to(scores.dtype.element_ty)).to(tl.float64), x
