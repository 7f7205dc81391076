"""The best tag sequence, or one drawn, in Triton: one program per example and one launch, a position's transitions in one tile.

Upwards each tag of a position chooses the tag before it; from the last position on, the choices are followed back.
"""

from __future__ import annotations

from pullback.inference._triton.support import constant, jit, tl
from pullback.inference.engine.hypergraph.cuda_kernels import uniform
from pullback.inference.engine.hypergraph.cuda_maximum import fill

_LOWEST = constant(-1e300)


@jit(do_not_specialize=["n", "tags"])
def path(scores, seeds, lengths, choices, out, n, tags, DRAW: tl.constexpr, TAGS: tl.constexpr):
    """Write 1 for the parts of the best sequence, or of one drawn, and 0 for others; NaN where there is none.

    Args:
        scores: `[B, n, tags, tags]`.
        seeds: `[B]`, to DRAW; otherwise anything.
        lengths: `[B]`.
        choices: `[B, n, TAGS]`, int32, scratch.
        out: as the scores.
        n: how many positions there are.
        tags: how many tags.
        DRAW: whether to draw.
        TAGS: the power of two from `tags` on.
    """
    b, cells = tl.program_id(0).to(tl.int64), tags * tags
    scores += b * n * cells
    out += b * n * cells
    choices += b * n * TAGS
    length = tl.load(lengths + b)
    sized = (length >= 0) & (length <= n)
    length = tl.where(sized, length, 0).to(tl.int32)
    seed = tl.load(seeds + b) if DRAW else 0
    tag = tl.arange(0, TAGS)
    tile = tag[:, None] * tags + tag[None, :]
    real = (tag < tags)[:, None] & (tag < tags)[None, :]
    v = tl.load(scores + tag, tag < tl.where(length > 0, tags, 0), -float("inf")).to(tl.float64)
    bad = ((v != v) | (v == float("inf"))).to(tl.int32)
    s = tl.load(scores + tl.minimum(1, tl.maximum(length - 1, 0)) * cells + tile, real, -float("inf"))
    for i in range(1, length):
        x = v[:, None] + s.to(tl.float64)
        s = tl.load(scores + tl.minimum(i + 1, length - 1) * cells + tile, real, -float("inf"))  # ahead
        bad = tl.maximum(bad, tl.max(((x != x) | (x == float("inf"))).to(tl.int32), 0))
        x = tl.where(x != x, -float("inf"), x)
        if DRAW:
            best = tl.maximum(tl.max(x, 0), _LOWEST)
            w = tl.exp((x - best[None, :]).to(s.dtype)).to(tl.float64)
            chosen, total = drawn(w, uniform(seed, i * TAGS + tag)[None, :])
            v = tl.where(total > 0, best + tl.log(tl.where(total > 0, total, 1.0)), -float("inf"))
        else:
            v, chosen = tl.max(x, 0, return_indices=True, return_indices_tie_break_left=True)
        tl.store(choices + i * TAGS + tag, chosen)
    v = tl.where(v != v, -float("inf"), v)
    top, last = tl.max(v, 0, return_indices=True, return_indices_tie_break_left=True)
    if DRAW:
        w = tl.exp((v - tl.maximum(top, _LOWEST)).to(s.dtype)).to(tl.float64)
        last, _ = drawn(w, uniform(seed, tag * 0))
    fine = sized & (tl.max(bad, 0) == 0) & ((top > _LOWEST) | (length == 0))
    walk(out, choices, last, fine, length, n, tags, TAGS, TAGS * TAGS)


@jit()
def walk(out, choices, last, fine, length, n, tags, TAGS: tl.constexpr, BLOCK: tl.constexpr):
    """Write the parts of the sequence that ends with a tag, by what each tag has chosen; NaN where there is none."""
    cells = tags * tags
    fill(out, n * cells, tl.where(fine, 0.0, float("nan")), BLOCK)
    tl.debug_barrier()
    if fine & (length > 0):
        here = last
        for back in range(1, length):
            i = length - back
            before = tl.load(choices + i * TAGS + here)
            tl.store(out + i * cells + before * tags + here, 1.0)
            here = before
        tl.store(out + here, 1.0)


@jit()
def drawn(w, u):
    """The index along the first axis at which the sums of weights pass the share u of their total; and that total.

    u times the largest of these sums is below it, whatever rounding does: an index of positive weight is always drawn.
    """
    upto = tl.where(w > 0, tl.cumsum(w, 0), 0.0)
    total = tl.max(upto, 0)
    return tl.argmax((upto > u * total).to(tl.int32), 0, tie_break_left=True), total
