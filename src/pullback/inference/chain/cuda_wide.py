"""`cuda_sums.py` and `cuda_paths.py` for more tags than a tile has rows: a position's transitions in tiles of ROWS rows.

The values of a position's tags are passed on in memory, and its sums are rescaled whenever a tile has a larger term.
"""

from __future__ import annotations

from pullback.inference._triton.support import constant, jit, tl
from pullback.inference.chain.cuda_paths import drawn, walk
from pullback.inference.chain.cuda_sums import LOG_PARTITION, SLOPE, write
from pullback.inference.engine.hypergraph.cuda_kernels import uniform
from pullback.inference.engine.hypergraph.cuda_maximum import fill

_LOWEST = constant(-1e300)


@jit(do_not_specialize=["n", "tags"])
def sums(scores, z, lengths, scratch, out, value, n, tags, WHAT: tl.constexpr, TAGS: tl.constexpr, ROWS: tl.constexpr):
    """As `cuda_sums.sums`, with a scratch of `[B, 3 n + 2, TAGS]`."""
    b, cells = tl.program_id(0).to(tl.int64), tags * tags
    scores += b * n * cells
    out += b * n * cells
    z += b * n * cells
    scratch += b * (3 * n + 2) * TAGS
    passed = scratch + 3 * n * TAGS
    length = tl.load(lengths + b)
    sized = (length >= 0) & (length <= n)
    length = tl.where(sized, length, 0).to(tl.int32)
    tag = tl.arange(0, TAGS)
    v, bad = first(scores, length, tag, tags)
    tl.store(scratch + tag, v)
    for i in range(1, length):
        tl.debug_barrier()  # the values of the position before are written
        before = scratch + (i - 1) * 3 * TAGS
        best, total, bad = totals(scores + i * cells, before, tag, tags, bad, TAGS, ROWS)
        v = value_of(best, total)
        tl.store(scratch + i * 3 * TAGS + tag, v)
        tl.store(scratch + (i * 3 + 1) * TAGS + tag, best)
        tl.store(scratch + (i * 3 + 2) * TAGS + tag, tl.where(total > 0, 1.0 / total, 0.0))
    top = tl.max(v, 0)
    e = tl.exp(tl.where(v > _LOWEST, v - top, -float("inf")))
    log_z = tl.where(length > 0, top + tl.log(tl.sum(e, 0)), 0.0)
    fine = sized & (tl.max(bad, 0) == 0) & (log_z > _LOWEST)
    score = tl.zeros([ROWS, TAGS], tl.float64)
    if WHAT != LOG_PARTITION:
        nothing = tl.where(fine, 0.0, float("nan"))
        reached = tl.where(fine, e / tl.sum(e, 0), float("nan"))
        for back in range(1, length):
            tl.debug_barrier()  # what was passed on in the step before is read
            i = length - back
            here = scratch + i * 3 * TAGS
            best, inverse = tl.load(here + TAGS + tag), tl.load(here + 2 * TAGS + tag)
            for start in range(0, tags, ROWS):
                a, tile, real = tile_of(start, tag, tags, ROWS)
                x = terms(scores + i * cells, here - 3 * TAGS, a, tile, real, tags)
                w = tl.exp((x - best[None, :]).to(out.dtype.element_ty)).to(tl.float64) * inverse[None, :]
                p = w * reached[None, :]
                score = write(scores + i * cells, z + i * cells, out + i * cells, p, score, tile, real, real, WHAT)
                tl.store(passed + (i % 2) * TAGS + a, tl.sum(tl.where(real, p, 0.0), 1), a < tags)
            tl.debug_barrier()
            reached = tl.load(passed + (i % 2) * TAGS + tag, tag < tags, 0.0)
        for start in range(0, tags, ROWS):
            a, tile, real = tile_of(start, tag, tags, ROWS)
            exists = real & (a == 0)[:, None] & (length > 0)
            score = write(scores, z, out, tl.where(exists, reached[None, :], nothing), score, tile, exists, real, WHAT)
        rest = tl.maximum(length, 1)
        fill(out + rest * cells, (n - rest) * cells, nothing, ROWS * TAGS)
    if WHAT == SLOPE:
        log_z = tl.sum(tl.sum(score, 1), 0) - log_z
    tl.store(value + b, tl.where(fine, log_z, float("nan")).to(value.dtype.element_ty))


@jit(do_not_specialize=["n", "tags"])
def path(scores, seeds, lengths, choices, values, out, n, tags, DRAW: tl.constexpr, TAGS: tl.constexpr, ROWS: tl.constexpr):
    """As `cuda_paths.path`, with `values`, `[B, 2, TAGS]` of float64, for those of two positions."""
    b, cells = tl.program_id(0).to(tl.int64), tags * tags
    scores += b * n * cells
    out += b * n * cells
    choices += b * n * TAGS
    values += b * 2 * TAGS
    length = tl.load(lengths + b)
    sized = (length >= 0) & (length <= n)
    length = tl.where(sized, length, 0).to(tl.int32)
    seed = tl.load(seeds + b) if DRAW else 0
    tag = tl.arange(0, TAGS)
    v, bad = first(scores, length, tag, tags)
    tl.store(values + tag, v)
    for i in range(1, length):
        tl.debug_barrier()  # the values of the position before are written
        before = values + ((i - 1) % 2) * TAGS
        if DRAW:
            best, total, bad = totals(scores + i * cells, before, tag, tags, bad, TAGS, ROWS)
            u = uniform(seed, i * TAGS + tag)
            chosen = _drawn(scores + i * cells, before, tag, tags, best, total, u, TAGS, ROWS)
            v = value_of(best, total)
        else:
            v, chosen, bad = _best(scores + i * cells, before, tag, tags, bad, TAGS, ROWS)
        tl.store(values + (i % 2) * TAGS + tag, v)
        tl.store(choices + i * TAGS + tag, chosen)
    top, last = tl.max(v, 0, return_indices=True, return_indices_tie_break_left=True)
    if DRAW:
        w = tl.exp((v - tl.maximum(top, _LOWEST)).to(scores.dtype.element_ty)).to(tl.float64)
        last, _ = drawn(w, uniform(seed, tag * 0))
    fine = sized & (tl.max(bad, 0) == 0) & ((top > _LOWEST) | (length == 0))
    walk(out, choices, last, fine, length, n, tags, TAGS, ROWS * TAGS)


@jit()
def first(scores, length, tag, tags):
    """The values of the first position's tags, and where one is NaN or +inf."""
    v = tl.load(scores + tag, tag < tl.where(length > 0, tags, 0), -float("inf")).to(tl.float64)
    bad = (v != v) | (v == float("inf"))
    return tl.where(bad, -float("inf"), v), bad.to(tl.int32)


@jit()
def tile_of(start, tag, tags, ROWS: tl.constexpr):
    """The tags before, in a tile's rows, the places of its transitions, and which of them there are."""
    a = start + tl.arange(0, ROWS)
    return a, a[:, None] * tags + tag[None, :], (a < tags)[:, None] & (tag < tags)[None, :]


@jit()
def terms(scores, before, a, tile, real, tags):
    """Value(a) + score(a, b) of a tile."""
    v = tl.load(before + a, a < tags, -float("inf"))
    return v[:, None] + tl.load(scores + tile, real, -float("inf")).to(tl.float64)


@jit()
def totals(scores, before, tag, tags, bad, TAGS: tl.constexpr, ROWS: tl.constexpr):
    """For each tag of a position the largest term, at least -1e300, the sum of exp(x - it), and whether a term is bad."""
    best = tl.full([TAGS], _LOWEST, tl.float64)
    total = tl.zeros([TAGS], tl.float64)
    for start in range(0, tags, ROWS):
        a, tile, real = tile_of(start, tag, tags, ROWS)
        x = terms(scores, before, a, tile, real, tags)
        wrong = (x != x) | (x == float("inf"))
        bad = tl.maximum(bad, tl.max(wrong.to(tl.int32), 0))
        x = tl.where(wrong, -float("inf"), x)
        larger = tl.maximum(best, tl.max(x, 0))
        w = tl.exp((x - larger[None, :]).to(scores.dtype.element_ty)).to(tl.float64)
        total = total * tl.exp(best - larger) + tl.sum(w, 0)
        best = larger
    return best, total, bad


@jit()
def value_of(best, total):
    return tl.where(total > 0, best + tl.log(tl.where(total > 0, total, 1.0)), -float("inf"))


@jit()
def _best(scores, before, tag, tags, bad, TAGS: tl.constexpr, ROWS: tl.constexpr):
    """The largest term of each tag, the first tag before that has it, and whether a term is bad."""
    best = tl.full([TAGS], -float("inf"), tl.float64)
    chosen = tl.zeros([TAGS], tl.int32)
    for start in range(0, tags, ROWS):
        a, tile, real = tile_of(start, tag, tags, ROWS)
        x = terms(scores, before, a, tile, real, tags)
        wrong = (x != x) | (x == float("inf"))
        bad = tl.maximum(bad, tl.max(wrong.to(tl.int32), 0))
        top, at = tl.max(tl.where(wrong, -float("inf"), x), 0, return_indices=True, return_indices_tie_break_left=True)
        chosen = tl.where(top > best, start + at, chosen)
        best = tl.maximum(best, top)
    return best, chosen, bad


@jit()
def _drawn(scores, before, tag, tags, best, total, u, TAGS: tl.constexpr, ROWS: tl.constexpr):
    """The tag before at which the sums of weights pass the share u of their total; the last with a weight if rounding is
    against that.
    """
    chosen = tl.zeros([TAGS], tl.int32)
    upto = tl.zeros([TAGS], tl.float64)
    for start in range(0, tags, ROWS):
        a, tile, real = tile_of(start, tag, tags, ROWS)
        x = terms(scores, before, a, tile, real, tags)
        w = tl.exp((tl.where(x != x, -float("inf"), x) - best[None, :]).to(scores.dtype.element_ty)).to(tl.float64)
        sums_of = upto[None, :] + tl.cumsum(w, 0)
        due = (upto <= u * total)[None, :] & (w > 0)  # not drawn before this tile
        later = due & (sums_of > (u * total)[None, :])
        some = tl.max(later.to(tl.int32), 0) > 0
        at = tl.argmax(later.to(tl.int32), 0, tie_break_left=True)
        final = tl.max(tl.where(due, a[:, None], -1), 0)
        chosen = tl.where(some, start + at, tl.where(final >= 0, final, chosen))
        upto = tl.where(some, float("inf"), upto + tl.sum(w, 0))
    return chosen
