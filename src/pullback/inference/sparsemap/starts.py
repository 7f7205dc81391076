"""Where a search starts: the example's scores, and structures that a caller suggests."""

from __future__ import annotations

import numpy as np

from pullback.inference._numba.compile import called
from pullback.inference.front.checks import INFINITE, NAN, OK
from pullback.inference.sparsemap.active_set import reordered
from pullback.inference.sparsemap.state import CHANGES, COUNT, MEAN_GAIN, MEAN_TERMS, NEVER_BUILT, SIZE, STALLS, mix, place

_LITTLE = 2.0  # differences of scores, in units of one over the number of parts of a structure


@called
def enter(state, scores):
    """Begin with an example: no structure is active, no part has a slot. Returns its status."""
    state.numbers[SIZE] = state.numbers[STALLS] = state.numbers[COUNT] = 0
    state.numbers[CHANGES] = NEVER_BUILT
    state.residual[:] = -np.inf
    status = OK
    for part in range(len(scores)):
        state.slot_of[part] = -1
        if state.places[part] >= 0:
            state.residual[state.places[part]] = scores[part]
            if not scores[part] < np.inf:
                status = NAN if status == NAN or scores[part] != scores[part] else INFINITE
    return status


@called
def listed(state, parts):
    """How many parts a suggested structure has; -1 if one is forbidden or no part, or if their sum leaves the range."""
    count, total = 0, 0.0
    while count < len(parts) and parts[count] >= 0:
        if parts[count] >= len(state.places):
            return -1
        at = state.places[parts[count]]
        if at < 0 or state.residual[at] == -np.inf:
            return -1
        total += state.residual[at]
        count += 1
    return -1 if total == -np.inf else count


@called
def suggest(state, parts, count, weight):
    """Activate a structure; the inverse is built when it is needed."""
    place(state, parts, count, weight)
    state.numbers[SIZE] += 1


@called
def settle_in(state, groups, tops):
    """The mean of the suggested structures; and shift scores so that s - mu has a largest entry of zero in each group.

    After a small step from a structure it then differs by as much as the step is long, which a rough oracle has to see.
    """
    share(state, tops)
    tops[:] = -np.inf
    for part in range(len(groups)):
        if groups[part] >= 0 and state.places[part] >= 0:
            slot = state.slot_of[part]
            slack = state.residual[state.places[part]] - (state.mean[slot] if slot >= 0 else 0.0)
            tops[groups[part]] = max(tops[groups[part]], slack)
    for part in range(len(groups)):
        if groups[part] >= 0 and state.places[part] >= 0 and tops[groups[part]] > -np.inf:
            state.residual[state.places[part]] -= tops[groups[part]]
            if state.slot_of[part] >= 0:
                state.scores[state.slot_of[part]] -= tops[groups[part]]
    for at in range(len(state.roughly)):
        state.roughly[at] = state.residual[at]


@called
def share(state, scratch):
    """The mean of the suggested structures, whose weights are made to sum to one."""
    total = 0.0
    for i in range(state.numbers[SIZE]):
        total += state.weights[i]
    for i in range(state.numbers[SIZE]):
        state.weights[i] /= total
    mix(state, scratch[:0])


@called
def are_nearly_equal(state, longest):
    """Whether the scores of each group differ by little, compared with the weights of a mean of all structures."""
    least = 0.0
    for part in range(len(state.places)):
        if state.places[part] >= 0:
            least = min(least, state.residual[state.places[part]])
    return least * longest >= -_LITTLE


@called
def subtract_mean(state):
    """Write s - mu where structures have had parts, elsewhere mu is zero; and <s - mu, mu>."""
    count = state.numbers[COUNT]
    state.levels[MEAN_GAIN], state.levels[MEAN_TERMS] = _of_the_mean(state.scores, state.mean, count)
    _subtract(state.scores, state.mean, count, state.part_of, state.places, state.residual, state.roughly)


@reordered
def _of_the_mean(scores, mean, count):
    own, size = 0.0, 0.0
    for slot in range(count):
        term = (scores[slot] - mean[slot]) * mean[slot]
        own += term
        size += abs(term)
    return own, size


@reordered
def _subtract(scores, mean, count, part_of, places, residual, roughly):
    rough = len(roughly) > 0
    for slot in range(count):
        at, value = np.uint64(places[np.uint64(part_of[slot])]), scores[slot] - mean[slot]
        residual[at] = value
        if rough:
            roughly[at] = value
