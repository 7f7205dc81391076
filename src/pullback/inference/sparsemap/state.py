"""What the active-set method keeps of an example: the parts that its structures have used, and the active structures.

A part that a structure has used has a slot. Scores and mean are kept for slots only, so that they cost as much as the
parts in use. A structure is a list of slots, and a set of bits: the entries of the Gram matrix are the numbers of
bits that two of them share.
"""

from __future__ import annotations

from collections import namedtuple

import numpy as np
from numba.core import types
from numba.extending import intrinsic

from pullback.inference.compile import spliced
from pullback.inference.sparsemap.active_set import inverse_of, make_inverse, reordered

State = namedtuple(
    "State",
    [
        "slot_of",  # [K] int32: the slot of a part, or -1
        "part_of",  # [K] int32: the part of a slot
        "places",  # [K] int32: where the oracle has a part, -1 where an entry is no part
        "scores",  # [K]: of each slot, less its group's shift
        "mean",  # [K]: mu at each slot
        "tilt",  # [K]: a direction, at each slot (see face.py), and scratch
        "residual",  # [places]: s - mu, less the shifts, as the oracle sees it
        "roughly",  # [places] float32: the same, if there is a rough oracle
        "tilted",  # [places]: a little beside it
        "found",  # [L] int32: the parts of the oracle's last structure
        "work",  # [bytes]: the oracle's scratch
        "rough_work",
        "slots",  # [room, L] int32: of each active structure
        "widths",  # [room] int32: how many parts each has
        "bits",  # [K / 64, room] uint64: its slots as bits
        "weights",  # [room]
        "inverse",  # of the Gram matrix of <a_i, a_j> + 1: see active_set.py
        "gram",  # [room]: scratch, as the next two
        "step",
        "slopes",
        "levels",  # [2]: the slack and the size of tilts
        "numbers",  # [7] int64:
    ],
)
COUNT, SIZE, CHANGES, STALLS, PHASE, ATTEMPT, FAILED = range(7)
"""Numbers: of slots, of active structures, of updates since the inverse was built, of tiny gaps that did not shrink, ..."""
NEVER_BUILT = 1 << 30  # so many changes that the inverse is built before it is used


def make_states(count: int, parts: int, places: int, width: int, room: int, rough: bool, work: int) -> State:
    """States of several examples: arrays with a leading dimension."""
    room = room // 16 * 16 + 24  # rows of an odd number of cache lines spread over its sets

    def empty(*shape: int, dtype: type = np.float64) -> np.ndarray:
        return np.empty((count, *shape), dtype)

    def scratch(size: int) -> np.ndarray:
        row = -(-(size + 64) // 64) * 64
        raw = np.zeros(count * row + 64, np.uint8)
        start = -raw.ctypes.data % 64
        return raw[start : start + count * row].reshape(count, row)

    return State(
        empty(parts, dtype=np.int32),
        empty(parts, dtype=np.int32),
        empty(parts, dtype=np.int32),
        empty(parts),
        empty(parts),
        empty(parts),
        empty(places),
        empty(places if rough else 0, dtype=np.float32),
        empty(places),
        empty(width, dtype=np.int32),
        scratch(work),
        scratch(work if rough else 0),
        empty(room, width, dtype=np.int32),
        empty(room, dtype=np.int32),
        empty(-(-parts // 64), room, dtype=np.uint64),
        empty(room),
        make_inverse(count, room),
        empty(room),
        empty(room),
        empty(room),
        empty(2),
        np.zeros((count, 7), np.int64),
    )


@spliced
def state_of(states, at):
    """One of several states."""
    return State(
        states.slot_of[at], states.part_of[at], states.places[at], states.scores[at], states.mean[at], states.tilt[at],
        states.residual[at], states.roughly[at], states.tilted[at], states.found[at], states.work[at],
        states.rough_work[at], states.slots[at], states.widths[at], states.bits[at], states.weights[at],
        inverse_of(states.inverse, at), states.gram[at], states.step[at], states.slopes[at], states.levels[at],
        states.numbers[at],
    )  # fmt: skip


@spliced
def place(state, parts, count, weight):
    """Put a structure behind the active ones, in the room there is for it, and give slots to its new parts."""
    behind = state.numbers[SIZE]
    for word in range((state.numbers[COUNT] + 63) // 64):
        state.bits[word, behind] = 0
    for at in range(count):
        part = parts[at]
        slot = state.slot_of[part]
        if slot < 0:
            slot = state.numbers[COUNT]
            state.numbers[COUNT] += 1
            state.slot_of[part], state.part_of[slot] = slot, part
            state.scores[slot], state.mean[slot] = state.residual[state.places[part]], 0.0
            if slot % 64 == 0:
                for i in range(behind + 1):
                    state.bits[slot // 64, i] = 0
        state.slots[behind, at] = slot
        state.bits[slot // 64, behind] |= np.uint64(1) << np.uint64(slot % 64)
    state.widths[behind] = count
    state.weights[behind] = weight


@spliced
def copy(state, i, j):
    """Put the j-th structure in the place of the i-th."""
    if i != j:
        state.weights[i] = state.weights[j]
        _copy(state.slots, state.widths, state.bits, state.numbers[COUNT], i, j)


@reordered
def _copy(slots, widths, bits, count, i, j):
    widths[i] = widths[j]
    for at in range(widths[j]):
        slots[i, at] = slots[j, at]
    for word in range((count + 63) // 64):
        bits[word, i] = bits[word, j]


@spliced
def mix(state):
    """The mean of the active structures."""
    for slot in range(state.numbers[COUNT]):
        state.mean[slot] = 0.0
    scatter(state.slots, state.widths, state.numbers[SIZE], state.weights, state.mean)


@reordered
def scatter(slots, widths, size, coefficients, into):
    """Add the sum of the structures, each times its coefficient."""
    for i in range(size):
        coefficient = coefficients[i]
        for at in range(widths[i]):
            into[np.uint64(slots[i, at])] += coefficient


@reordered
def slopes_of(slots, widths, size, values, slopes):
    """The sum of values over the slots of each structure, less the first one's."""
    for i in range(size):
        total = 0.0
        for at in range(widths[i]):
            total += values[np.uint64(slots[i, at])]
        slopes[i] = total - slopes[0] if i > 0 else total
    slopes[0] = 0.0


@reordered
def overlap(bits, count, size, gram):
    """<a_i, z> + 1 for each active structure and the one behind them, of bits of `count` slots."""
    for i in range(size):
        gram[i] = 1.0
    for word in range((count + 63) // 64):
        mask, row = bits[word, size], bits[word]
        if mask != 0:
            for i in range(size):
                gram[i] += _ones(mask & row[i])


@intrinsic
def _ones(typingctx, word):
    """How many bits of a word are set."""

    def generate(context, builder, signature, args):
        return builder.ctpop(args[0])

    return types.int64(types.uint64), generate
