"""The active-set method on one example, as part of a GPU program, in Triton. See README.md, and search.py for the CPU's twin.

The functions know nothing of the structure but its oracle, a Triton function:

    best(scores, example, LEVELS) -> 1, or 0 if there is no structure

It finds a structure of largest score and writes its parts to `example.found`, int32, -1 behind the last. The scores, `[parts]`,
are float32 for a rough oracle and float64 for an exact one; finite, or -inf where there is no part.
"""

from __future__ import annotations

from pullback.inference.sparsemap.cuda_active_set import extend
from pullback.inference.sparsemap.cuda_state import Counts, restart
from pullback.inference.sparsemap.cuda_weights import gain, mean, rebuild, refine, settle
from pullback.inference.triton_support import constant, jit, tl

CONVERGED, STOPPED, FULL, INFEASIBLE, GARBLED = constant(0), constant(1), constant(2), constant(3), constant(4)
"""How a search ends: at the optimum, at its limit, without room for another vertex, without a structure, with NaN."""
_GOING = constant(5)
_ROUNDING = constant(4 * 2.0**-52)
_CLOSE, _AMPLIFIED, _PATIENCE = constant(1e2), constant(1e4), constant(5)  # as search.py has them


@jit()
def search(
    example, active, size, calls, limit,
    ROUGH: tl.constexpr, EXACT: tl.constexpr, LEVELS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Solve for one example.

    Args:
        example: with its scores.
        active: with `size` vertices and weights to start from.
        size: how many they are.
        calls: of the oracle so far.
        limit: how many calls are enough.
        ROUGH: a rough oracle, which is asked until it finds nothing new, or None.
        EXACT: the exact oracle.
        LEVELS: of the oracles: the logarithm of their number of positions.
        BLOCK: how many vertices, or slots, are looked at together.

    Returns:
        The counts of the active set, the gap, how much of it may be rounding, the calls, and how the search ended.
    """
    counts = Counts(size, size * 0, size * 0)
    changes, stalls, rough, state = size * 0, size * 0, size * 0, size * 0 + _GOING
    if ROUGH is not None:
        rough += 1
    gap = tl.full([], 0.0, tl.float64)
    rounding = gap
    restart(example, active, BLOCK)
    if size > 0:
        counts = refine(example, active, rebuild(active, counts, BLOCK), 3 + size * 0, BLOCK)
    while state == _GOING:
        own, scale = mean(example, active, counts, BLOCK)
        exists = ask(example, rough, ROUGH, EXACT, LEVELS)
        calls += 1
        lead, noise = gain(example, exists, BLOCK)
        rounding = noise + _ROUNDING * scale
        new_gap = tl.where(exists > 0, lead - own, gap)
        state, stalls = _judge(active, counts.size, new_gap, gap, rounding, stalls, calls >= limit, exists, rough)
        gap = tl.where(counts.size > 0, new_gap, 0.0)
        if state == _GOING:
            state, counts, changes = _advance(example, active, counts, changes, new_gap, rounding, rough, BLOCK)
        if rough > 0:
            rough = tl.where(state == _GOING, 1, 0)
            state = _GOING + size * 0
    return counts, gap, rounding, calls, state


@jit()
def ask(example, rough, ROUGH: tl.constexpr, EXACT: tl.constexpr, LEVELS: tl.constexpr):
    """Ask the oracle for the best structure for s - mu; returns whether there is one."""
    if ROUGH is None:
        exists = EXACT(example.residual, example, LEVELS)
    elif rough > 0:
        exists = ROUGH(example.rough, example, LEVELS)
    else:
        exists = EXACT(example.residual, example, LEVELS)
    tl.debug_barrier()
    return exists


@jit()
def _judge(active, size, gap, last_gap, rounding, stalls, late, exists, rough):
    """Whether a search is over and why, and how often the gap was tiny and did not shrink."""
    close = (size > 0) & (gap <= _CLOSE * rounding)
    stalls += tl.where(close & (gap > 0.5 * last_gap), 1, 0)
    done = (size > 0) & ((gap <= rounding) | (stalls > _PATIENCE))
    stopped = (late & (size > 0)) | (close & (rough > 0))
    state = tl.where(stopped, STOPPED, tl.where(size == active.room, FULL, _GOING))
    return tl.where(exists == 0, INFEASIBLE, tl.where(done, CONVERGED, state)), stalls


@jit()
def _advance(example, active, counts, changes, gap, rounding, rough, BLOCK: tl.constexpr):
    """Make the vertex that was found active, and move the weights to the minimum on the affine hull.

    Returns:
        Whether the search is over and why, the counts, and how often the inverse was changed since it was built.
    """
    state = _GOING + counts.size * 0
    passes = tl.where((counts.size > 0) & (gap <= _CLOSE * rounding), 2, 0)
    if (counts.size > 0) & (changes > 64 + 4 * counts.size):
        restart(example, active, BLOCK)
        counts, changes, passes = rebuild(active, counts, BLOCK), changes * 0, changes * 0 + 3
    independent, counts = extend(active, example.found, counts, gap, BLOCK)
    if independent == 0:
        # Without rounding its gap would be zero, the mean being the minimum on the affine hull.
        if rough > 0:
            state = STOPPED + counts.size * 0
        elif changes == 0:
            state = tl.where(gap <= _AMPLIFIED * rounding, CONVERGED, STOPPED)
        else:
            restart(example, active, BLOCK)
            counts, changes, passes = rebuild(active, counts, BLOCK), changes * 0, changes * 0 + 3
    before = counts.size
    if (passes > 0) & (state == _GOING):
        counts = refine(example, active, counts, passes, BLOCK)
    elif (state == _GOING) & (before > 1):
        counts = settle(active, counts, BLOCK)
    return state, counts, changes + independent + before - counts.size
