"""Completing the active set: the Jacobian needs structures that span the whole face of the polytope that mu lies in.

README.md has the argument. Let q be a random direction that is constant on the active structures. If the argmax of s - mu +
t q, with a small t > 0, is of the face, it is a structure that they do not span, or they span the face. Two directions that
find nothing end the completion. Structures of the face tie up to the gap. If one is worse than that, the tilt t q has left
the face, and t is made smaller.
"""

from __future__ import annotations

import numpy as np

from pullback.inference._numba.compile import called
from pullback.inference._numba.random_kernels import uniform
from pullback.inference.sparsemap.active_set import direction, reordered
from pullback.inference.sparsemap.state import ATTEMPT, COUNT, FAILED, SIZE, TIE_SLACK, TILT_SIZE, scatter, slopes_of

_TILT = 100.0  # in units of what may be rounding
_ACCURATE = 1e-6  # slopes that an accurate inverse leaves after one projection
_GAIN = 1e-6  # of a structure along a direction of length 1, which is rounding if it is less


@called
def enter_face(state, gap, rounding):
    """Begin with the first direction."""
    state.levels[TIE_SLACK] = max(100 * rounding, 4 * gap)
    state.levels[TILT_SIZE] = _TILT
    state.numbers[ATTEMPT] = state.numbers[FAILED] = 0


@called
def on_face(state, gap):
    """Whether a structure ties with the active ones; if not, the next tilt is smaller, or along another direction."""
    if gap > -state.levels[TIE_SLACK]:
        return True
    if state.levels[TILT_SIZE] > 2.0:
        state.levels[TILT_SIZE] *= 0.1
    else:
        fail(state)
    return False


@called
def is_new(state):
    """Whether the active structures do not span the one behind them: the direction is constant on them, but not on that."""
    q, slots, behind, gain = state.tilt, state.slots, state.numbers[SIZE], 0.0
    for at in range(state.widths[behind]):
        gain += q[slots[behind, at]]
    for at in range(state.widths[0]):
        gain -= q[slots[0, at]]
    return gain > _GAIN * _norm(q, state.numbers[COUNT])


@called
def fail(state):
    """Nothing was found along a direction."""
    state.numbers[FAILED] += 1
    state.numbers[ATTEMPT] += 1


@called
def is_accurate(state):
    """Whether the inverse, after many updates, still finds directions that are constant on the active structures."""
    state.numbers[ATTEMPT] = 0
    return aim(state) < _ACCURATE


@called
def aim(state):
    """Write a direction that is constant on the active structures to `tilt`; returns how far from that it was at first."""
    numbers, q, worst = state.numbers, state.tilt, 0.0
    for slot in range(numbers[COUNT]):
        q[slot] = _noise(slot, numbers[ATTEMPT]) if state.mean[slot] > 0.0 else 0.0
    for _ in range(2):  # the second time for what rounding has left
        slopes_of(state.slots, state.widths, numbers[SIZE], q, state.slopes)
        worst = _norm(state.slopes, numbers[SIZE])
        direction(state.inverse, numbers[SIZE], state.slopes, False, state.step)
        for i in range(numbers[SIZE]):
            state.step[i] = -state.step[i]
        scatter(state, state.step, q)
    return worst


@called
def tilt(state, finite):
    """Write s - mu plus a small step along the direction; parts that mu does not use are forbidden.

    With `finite` they get a large penalty instead of -inf, which a user's argmax may not know.
    """
    numbers, q = state.numbers, state.tilt
    scale = state.levels[TIE_SLACK] * state.levels[TILT_SIZE] / max(_norm(q, numbers[COUNT]), 1e-300)
    penalty = 1.0 + 2.0 * _size(state.residual) if finite else np.inf
    for at in range(len(state.tilted)):
        state.tilted[at] = state.residual[at] - penalty
    for slot in range(numbers[COUNT]):
        if state.mean[slot] > 0.0:
            at = state.places[state.part_of[slot]]
            state.tilted[at] = state.residual[at] + scale * q[slot]


@reordered
def _norm(vector, count):
    total = 0.0
    for slot in range(count):
        total += vector[slot] * vector[slot]
    return np.sqrt(total)


@reordered
def _size(residual):
    total = 0.0
    for at in range(len(residual)):
        total += abs(residual[at]) if residual[at] > -np.inf else 0.0
    return total


@called
def _noise(slot, attempt):
    """Numbers from -0.5 to 0.5 that look random: sums of a few of them are not the same by accident."""
    return uniform(np.uint64(attempt + 1) * np.uint64(0xD1B54A32D192ED03), slot)[0] - 0.5
