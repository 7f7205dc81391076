"""Sums over tag sequences in Triton: one program per example and one launch, a position's transitions in one tile.

With v(i, b) the log-sum over the sequences that end with tag b at position i, upwards and then downwards:

    p(a | i, b) = exp(v(i - 1, a) + s(i, a, b) - v(i, b)),      mu(i, a, b) = p(a | i, b) sum_c mu(i + 1, b, c).
"""

from __future__ import annotations

from pullback.inference._triton.support import constant, jit, tl

LOG_PARTITION, MARGINALS, SLOPE = (constant(i) for i in range(3))
_LOWEST = constant(-1e300)


@jit(do_not_specialize=["n", "tags"])
def sums(scores, z, lengths, scratch, out, value, n, tags, WHAT: tl.constexpr, TAGS: tl.constexpr):
    """Write log Z to `value` and mu to `out`, or <s, z> - log Z and z - mu; NaN where there is no structure.

    Args:
        scores: `[B, n, tags, tags]`.
        z: likewise, structures, for SLOPE.
        lengths: `[B]`.
        scratch: `[B, 3 n + 2, TAGS]`, float64, of which the last two rows are left alone.
        out: as the scores, unless only LOG_PARTITION is wanted.
        value: `[B]`.
        n: how many positions there are.
        tags: how many tags.
        WHAT: is wanted.
        TAGS: the power of two from `tags` on.
    """
    b, cells = tl.program_id(0).to(tl.int64), tags * tags
    scores += b * n * cells
    out += b * n * cells
    z += b * n * cells
    scratch += b * (3 * n + 2) * TAGS
    length = tl.load(lengths + b)
    sized = (length >= 0) & (length <= n)
    length = tl.where(sized, length, 0).to(tl.int32)
    tag = tl.arange(0, TAGS)
    tile = tag[:, None] * tags + tag[None, :]
    real = (tag < tags)[:, None] & (tag < tags)[None, :]
    v, nan = _upward(scores, scratch, length, cells, tag, tile, real, tags, TAGS)
    top = tl.max(v, 0)
    e = tl.exp(tl.where(v > _LOWEST, v - top, -float("inf")))
    log_z = tl.where(length > 0, top + tl.log(tl.sum(e, 0)), 0.0)
    fine = sized & (nan == 0) & (log_z > _LOWEST)
    score = tl.zeros([TAGS, TAGS], tl.float64)
    if WHAT != LOG_PARTITION:
        nothing = tl.where(fine, 0.0, float("nan"))
        reached = tl.where(fine, e / tl.sum(e, 0), float("nan"))
        tl.debug_barrier()
        reached, score = _downward(
            scores, z, scratch, out, reached, score, length, cells, tag, tile, real, out.dtype.element_ty, WHAT, TAGS
        )
        exists = real & (tag == 0)[:, None] & (length > 0)
        mu = tl.where(exists, reached[None, :], nothing)
        score = write(scores, z, out, mu, score, tile, exists, real, WHAT)
        for i in range(tl.maximum(length, 1), n):
            tl.store(out + i * cells + tile, (mu * 0.0 + nothing).to(out.dtype.element_ty), real)
    if WHAT == SLOPE:
        log_z = tl.sum(tl.sum(score, 1), 0) - log_z
    tl.store(value + b, tl.where(fine, log_z, float("nan")).to(value.dtype.element_ty))


@jit()
def _upward(scores, scratch, length, cells, tag, tile, real, tags, TAGS: tl.constexpr):
    """Values of the last position's tags, and whether a score was NaN or +inf; `scratch` gets what `_downward` needs."""
    v = tl.load(scores + tag, tag < tl.where(length > 0, tags, 0), -float("inf")).to(tl.float64)
    nan = ((v != v) | (v == float("inf"))).to(tl.int32)
    tl.store(scratch + tag, v)
    s = tl.load(scores + tl.minimum(1, tl.maximum(length - 1, 0)) * cells + tile, real, -float("inf"))
    for i in range(1, length):
        x = v[:, None] + s.to(tl.float64)
        s = tl.load(scores + tl.minimum(i + 1, length - 1) * cells + tile, real, -float("inf"))  # ahead
        nan = tl.maximum(nan, tl.max(((x != x) | (x == float("inf"))).to(tl.int32), 0))
        best = tl.max(tl.where(x != x, -float("inf"), x), 0)
        best = tl.where(best > _LOWEST, best, 0.0)
        w = tl.exp((x - best[None, :]).to(s.dtype))
        total = tl.sum(w, 0)
        v = tl.where(total > 0, best + tl.log(tl.where(total > 0, total, 1.0)), -float("inf"))
        row = scratch + i * 3 * TAGS + tag
        tl.store(row, v)
        tl.store(row + TAGS, best)
        tl.store(row + 2 * TAGS, tl.where(total > 0, 1.0 / total, 0.0).to(tl.float64))
    return v, tl.max(nan, 0)


@jit()
def _downward(
    scores, z, scratch, out, reached, score, length, cells, tag, tile, real, dtype: tl.constexpr,
    WHAT: tl.constexpr, TAGS: tl.constexpr,
):  # fmt: skip
    """Write what the positions from the last to the second get; returns the probabilities of the first tags."""
    w = _weights(scores, scratch, length - 1, cells, tag, tile, real, dtype, TAGS)
    for back in range(1, length):
        i = length - back
        p = w * reached[None, :]
        w = _weights(scores, scratch, i - 1, cells, tag, tile, real, dtype, TAGS)
        score = write(scores + i * cells, z + i * cells, out + i * cells, p, score, tile, real, real, WHAT)
        reached = tl.sum(p, 1)
    return reached, score


@jit()
def _weights(scores, scratch, i, cells, tag, tile, real, dtype: tl.constexpr, TAGS: tl.constexpr):
    """P(a | i, b) of all a and b, in float64; of position 0, which has no tag before, anything."""
    i = tl.maximum(i, 0)
    row = scratch + i * 3 * TAGS + tag
    before = tl.load(scratch + tl.maximum(i - 1, 0) * 3 * TAGS + tag)
    best, inverse = tl.load(row + TAGS), tl.load(row + 2 * TAGS)
    s = tl.load(scores + i * cells + tile, real, -float("inf")).to(tl.float64)
    return tl.exp((before[:, None] + s - best[None, :]).to(dtype)).to(tl.float64) * inverse[None, :]


@jit()
def write(scores, z, out, mu, score, tile, exists, real, WHAT: tl.constexpr):
    """Write a position's marginals, or z less them, to the `real` entries of a tile; returns the sum of s z so far.

    Only parts that exist are read of z.
    """
    found = mu.to(out.dtype.element_ty)
    if WHAT == SLOPE:
        x = tl.load(z + tile, exists, 0.0)
        s = tl.load(scores + tile, exists & (x != 0.0), 0.0)
        score += s.to(tl.float64) * x.to(tl.float64)
        found = x - found
    tl.store(out + tile, found, real)
    return score
