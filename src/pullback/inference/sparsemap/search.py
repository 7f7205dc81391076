"""The active-set method, apart from the oracle: one iteration at a time. See README.md.

Large functions have one caller each: what is inlined twice is compiled twice.
"""

from __future__ import annotations

from pullback.inference._numba.compile import called
from pullback.inference.sparsemap.active_set import append, direction, move, normalize, remove
from pullback.inference.sparsemap.state import (
    CHANGES,
    COUNT,
    MEAN_GAIN,
    MEAN_TERMS,
    SIZE,
    STALLS,
    copy,
    drop,
    mix,
    overlap,
    slopes_of,
)

_ROUNDING = 4 * 2.0**-52
_CLOSE = 1e2  # gaps of fewer roundings than this are as small as errors of the weights, which are then refined
AMPLIFIED = 1e4  # the same for a structure that depends on active ones, with coefficients that multiply their errors
_PATIENCE = 5  # how many such gaps need not be half of the one before


@called
def judge(state, gap, rounding, exact, limit, tolerance, b, result):
    """Whether the structure z = argmax <s - mu, z> is worth adding: if not, the search is over.

    `gap` is <s - mu, z - mu>, of which `rounding` may be rounding; a gap of `tolerance` is small enough. A rough oracle (not
    `exact`) is not called again when it finds nothing new. Writes the gap, and whether example b has converged.
    """
    if state.numbers[SIZE] == 0:
        return True
    close = not gap > _CLOSE * rounding
    state.numbers[STALLS] += close and gap > 0.5 * result.gap[b]
    result.gap[b] = gap
    result.converged[b] = not gap > (max(rounding, tolerance) if exact else rounding) or state.numbers[STALLS] > _PATIENCE
    return not (result.converged[b] or result.calls[b] >= limit or ((close or gap <= tolerance) and not exact))


@called
def is_settled(state, gap, rounding):
    """Whether the weights need not be refined for a gap on the affine hull of the active structures, or often were."""
    state.numbers[STALLS] += 1
    return not gap > _CLOSE * rounding or state.numbers[STALLS] > _PATIENCE


@called
def activate(state, new, keep):
    """Activate the structure behind the active ones, unless it is affinely dependent; build an old inverse anew.

    `new` is 0 if there is none, to build the inverse anew. With `keep`, an inverse that says "dependent" is believed,
    though it may be inaccurate. Returns whether the last structure is independent, and whether the inverse was built anew.
    """
    numbers = state.numbers
    size = numbers[SIZE]
    first = 0 if new == 0 or is_old(state) else size
    while True:
        independent = _extend(state, first, size + new)
        if independent or keep or first == 0 or numbers[CHANGES] == 0:
            return independent, first == 0
        first = 0


@called
def is_old(state):
    """Whether the inverse was updated too often."""
    return state.numbers[SIZE] == 0 or state.numbers[CHANGES] > 64 + 4 * state.numbers[SIZE]


@called
def _extend(state, first, end):
    """Extend the inverse, which has the structures before `first`, by the next ones; whether the last is independent."""
    numbers, total = state.numbers, 0.0
    if first == 0:
        numbers[CHANGES] = 0
    numbers[SIZE] = first
    independent = False
    for i in range(first, end):
        kept = numbers[SIZE]
        copy(state, kept, i)
        overlap(state.bits, numbers[COUNT], kept, state.gram)
        independent = append(state.inverse, kept, state.gram, state.widths[kept] + 1.0, state.step)
        total += state.weights[kept] if independent else 0.0
        numbers[SIZE] += independent
    if first == 0:
        for i in range(numbers[SIZE]):
            state.weights[i] /= total
    else:
        numbers[CHANGES] += independent
    return independent


@called
def improve(state, ahead, gap, rounding, independent, rebuilt):
    """Move to the minimum on the hull of the active structures, of which the last one is new."""
    refined = rebuilt or not independent or not gap > _CLOSE * rounding
    for repeat in range(3 if rebuilt else 2 if refined else 1):
        size = state.numbers[SIZE]
        if refined:
            if rebuilt and repeat == 0:
                mix(state, ahead)
            for slot in range(state.numbers[COUNT]):
                state.tilt[slot] = state.scores[slot] - state.mean[slot]
            slopes_of(state.slots, state.widths, size, state.tilt, state.slopes)
        else:
            for i in range(size - 1):
                state.slopes[i] = 0.0
            state.slopes[size - 1] = gap
        _settle(state, not refined)
        mix(state, ahead)


@called
def improvement(state, count):
    """`<s - mu, z - mu>` for the structure z that was found last, and how much of it may be rounding."""
    gain, size = 0.0, float(count)
    for at in range(count):
        slack = state.residual[state.places[state.found[at]]]
        gain += slack
        size += abs(slack)
    return gain - state.levels[MEAN_GAIN], _ROUNDING * (size + state.levels[MEAN_TERMS])


@called
def _settle(state, newest):
    """Step to the minimum on the affine hull, dropping the structures whose weight vanishes on the way.

    If `newest`, all slopes but the last structure's are zero. They stay so when a part of the step is made.
    """
    while True:
        size = state.numbers[SIZE]
        direction(state.inverse, size, state.slopes, newest, state.step)
        far, blocking = move(state.weights, size, state.step)
        if blocking < 0:
            normalize(state.weights, size)  # large slopes make large rounding errors of a step that should sum to zero
            return
        state.weights[blocking] = 0.0
        for i in range(size - 1, -1, -1):
            state.slopes[i] *= 1.0 - far  # up to a constant, which does not matter
            if state.weights[i] <= 0.0:
                remove(state.inverse, size, i, state.step)
                size -= 1
                newest = newest and i < size
                drop(state, i, size)
                state.numbers[CHANGES] += 1
        state.numbers[SIZE] = size
