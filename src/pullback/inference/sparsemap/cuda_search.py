"""The active-set method on one example, as part of a GPU program, in Triton. See README.md, and search.py for the CPU's twin.

The functions know nothing of the structure but its oracle, a Triton function:

    best(scores, example, LEVELS) -> 1, or 0 if there is no structure

It finds a structure of largest score and writes its parts to `example.found`, int32, -1 behind the last. The scores, `[parts]`,
are float32 for a rough oracle and float64 for an exact one; finite, or -inf where there is no part.
"""

from __future__ import annotations

from pullback.inference._triton.support import constant, jit, tl
from pullback.inference.sparsemap.cuda_active_set import VECTOR, admit, extend, share
from pullback.inference.sparsemap.cuda_state import Counts, Progress, line, restart
from pullback.inference.sparsemap.cuda_weights import gain, mean, rebuild, refine, settle

FULL, STOPPED, CONVERGED, INFEASIBLE, GARBLED = constant(0), constant(1), constant(2), constant(3), constant(4)
"""How a search ends: without room for another vertex, at its limit, at the optimum, without a structure, with NaN."""
GOING = constant(5)
_ROUNDING = constant(4 * 2.0**-52)
_MUCH = constant(0.3)  # of the gap of the oracle's best structure
_CLOSE, _AMPLIFIED, _PATIENCE = constant(1e2), constant(1e4), constant(5)  # as search.py has them


@jit()
def search(
    example, active, size, calls, limit,
    ROUGH: tl.constexpr, ANOTHER: tl.constexpr, EXACT: tl.constexpr, LEVELS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Solve for one example.

    Args:
        example: with its scores.
        active: with `size` vertices and weights to start from.
        size: how many they are.
        calls: of the oracle so far.
        limit: how many calls are enough.
        ROUGH: a rough oracle, which is asked until it finds nothing new, or None.
        ANOTHER: finds a second structure after a call of the rough one: see `_join`.
        EXACT: the exact oracle.
        LEVELS: of the oracles: the logarithm of their number of positions.
        BLOCK: how many vertices, or slots, are looked at together.

    Returns:
        The counts of the active set, the progress, and how the search ended.
    """
    counts, progress = Counts(size, size * 0, size * 0), first_progress(calls)
    rough, state = size * 0, size * 0 + GOING
    if ROUGH is not None:
        rough += 1
    restart(example, active, BLOCK)
    if size > 0:
        counts = refine(example, active, rebuild(active, counts, BLOCK), 3 + size * 0, BLOCK)
    while state == GOING:
        own, scale = mean(example, active, counts, BLOCK)
        exists = ask(example, rough, ROUGH, EXACT, LEVELS)
        state, counts, progress, own = react(
            example, active, counts, progress, own, scale, exists, limit, rough, BLOCK
        )  # fmt: skip
        if ANOTHER is not None:  # noqa: SIM102 - a constant: nothing of this is compiled without it
            if (rough > 0) & (state == GOING):
                counts, progress = _join(example, active, counts, progress, own, ANOTHER, LEVELS, BLOCK)
        if rough > 0:
            rough = tl.where(state == GOING, 1, 0)
            state = size * 0 + GOING
            if rough == 0:
                counts = refine(example, active, counts, 2 + size * 0, BLOCK)
    return counts, progress, state


@jit()
def first_progress(calls):
    """Of a search that has not begun, after some calls of the oracle."""
    nothing = tl.full([], 0.0, tl.float64)
    return Progress(calls * 0, calls * 0, calls, nothing, nothing)


@jit()
def react(example, active, counts, progress, own, scale, exists, limit, rough, BLOCK: tl.constexpr):
    """Continue with the structure that the oracle found for s - mu.

    Args:
        example: with the structure, and s - mu.
        active: the active set.
        counts: its counts.
        progress: of the search.
        own: <s - mu, mu>.
        scale: the sum of its terms' sizes.
        exists: whether there is a structure.
        limit: how many calls of the oracle are enough.
        rough: whether the oracle is.
        BLOCK: how many vertices, or slots, are looked at together.

    Returns:
        Whether the search is over and why, the counts, the progress, and <s - mu, mu> now, inf if it is not known.
    """
    lead, noise = gain(example, exists, BLOCK)
    rounding, calls = noise + scale * _ROUNDING, progress.calls + 1
    gap = tl.where(exists > 0, lead - own, progress.gap)
    state, stalls = _judge(active, counts.size, gap, progress, rounding, calls >= limit, exists, rough)
    last_gap, changes = tl.where(counts.size > 0, gap, 0.0), progress.changes
    if state == GOING:
        state, counts, changes, rise = _advance(example, active, counts, changes, gap, rounding, rough, BLOCK)
        own += rise
    return state, counts, Progress(changes, stalls, calls, last_gap, rounding), own


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
def _judge(active, size, gap, progress, rounding, late, exists, rough):
    """Whether a search is over and why, and how often the gap was tiny and did not shrink."""
    close = (size > 0) & (gap <= rounding * _CLOSE)
    stalls = progress.stalls + tl.where(close & (gap > 0.5 * progress.gap), 1, 0)
    done = (size > 0) & ((gap <= rounding) | (stalls > _PATIENCE))
    stopped = (late & (size > 0)) | (close & (rough > 0))
    state = tl.where(stopped, STOPPED, tl.where(size == active.room, FULL, GOING))
    return tl.where(exists == 0, INFEASIBLE, tl.where(done, CONVERGED, state)), stalls


@jit()
def _advance(example, active, counts, changes, gap, rounding, rough, BLOCK: tl.constexpr):
    """Make the vertex that was found active, and move the weights to the minimum on the affine hull.

    Returns:
        Whether the search is over and why, the counts, how often the inverse was changed since it was built, and by how much
        <s - mu, mu> has risen.
    """
    rise = tl.full([], float("inf"), tl.float64)
    state = counts.size * 0 + GOING
    passes = tl.where((counts.size > 0) & (gap <= rounding * _CLOSE), 2, 0)
    if (counts.size > 0) & (changes > 64 + 4 * counts.size):
        restart(example, active, BLOCK)
        counts, changes, passes = rebuild(active, counts, BLOCK), changes * 0, changes * 0 + 3
    independent, counts = extend(active, example.found, counts, gap, BLOCK)
    if independent == 0:
        # Without rounding its gap would be zero, the mean being the minimum on the affine hull.
        if rough > 0:
            state = counts.size * 0 + STOPPED
        elif changes == 0:
            state = tl.where(gap <= rounding * _AMPLIFIED, CONVERGED, STOPPED)
        elif (changes > 0) & (gap <= rounding * _AMPLIFIED):
            changes, passes = changes * 0 - 1, changes * 0 + 3  # that is faster, and mostly enough
        else:
            restart(example, active, BLOCK)
            counts, changes, passes = rebuild(active, counts, BLOCK), changes * 0, changes * 0 + 3
    before = counts.size
    if (passes > 0) & (state == GOING):
        counts = refine(example, active, counts, passes, BLOCK)
    elif (state == GOING) & (before > 1):
        counts, rise = settle(active, counts, BLOCK)
    return state, counts, changes + independent + before - counts.size, rise


@jit()
def _join(example, active, counts, progress, own, ANOTHER: tl.constexpr, LEVELS: tl.constexpr, BLOCK: tl.constexpr):
    """Make a second structure of the oracle's last call active, if it still gains much; returns the counts and the progress."""
    changes, most = progress.changes, progress.gap * (1.0 - _MUCH)
    if counts.size < active.room:  # noqa: SIM102
        if ANOTHER(example.rough, example, most, LEVELS) > 0:
            before = counts.size
            tl.debug_barrier()
            square = share(active, example.found, before, BLOCK)
            gap = _gap(example, active, before, own, BLOCK)
            if gap > progress.gap * _MUCH:
                independent, counts = admit(active, example.found, counts, square, gap, BLOCK)
                if independent > 0:
                    counts, _ = settle(active, counts, BLOCK)
                changes += 2 * independent + before - counts.size
    return counts, Progress(changes, progress.stalls, progress.calls, progress.gap, progress.rounding)


@jit(noinline=True)
def _gap(example, active, size, own, BLOCK: tl.constexpr):
    """<s - mu, z> - <s - mu, mu> for the structure z that was found, after `share`."""
    total = tl.zeros([BLOCK], tl.float64)
    for first in range(0, example.width, BLOCK):
        at = first + tl.arange(0, BLOCK)
        part = tl.load(example.found + at, mask=at < example.width, other=-1)
        total += tl.load(example.scores + part, mask=part >= 0, other=0.0)
    for first in range(0, size, BLOCK):
        vertex = first + tl.arange(0, BLOCK)
        shared = tl.load(line(active, VECTOR) + vertex, mask=vertex < size, other=1.0) - 1.0
        total -= shared * tl.load(active.weights + vertex, mask=vertex < size, other=0.0)
    return tl.sum(total, 0) - own
