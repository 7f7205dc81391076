"""The state of the active-set method for an example: the parts that its structures have used, and the active structures.

A part that a structure has used has a slot. Scores and mean are kept for slots only, so that they cost as much as the
parts in use. A structure is a list of slots, and a set of bits: the entries of the Gram matrix are the numbers of
bits that two of them share.
"""

from __future__ import annotations

import functools

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from pullback.inference._numba.compile import called
from pullback.inference._numba.lanes import floats, lanewise, load, splat, store, vector_of
from pullback.inference._numba.records import Arrangement, Record, Shapes
from pullback.inference._numba.rows import keep_first, prefetch_beside, shift_down
from pullback.inference.sparsemap.active_set import Inverse, inverse_shapes, reordered

State = Record(
    "State",
    numbers=(np.int64, 1),  # [7]: see below
    work=(np.uint8, 1),  # the oracle's scratch
    rough_work=(np.uint8, 1),
    slot_of=(np.int32, 1),  # [K]: the slot of a part, or -1
    part_of=(np.int32, 1),  # [K]: the part of a slot
    places=(np.int32, 1),  # [K]: where the oracle has a part, -1 where an entry is no part
    scores=(np.float64, 1),  # [K]: of each slot, less its group's shift
    mean=(np.float64, 1),  # [K]: mu at each slot
    tilt=(np.float64, 1),  # [K]: a direction, at each slot (see face.py), and scratch
    residual=(np.float64, 1),  # [places]: s - mu, less the shifts, as the oracle sees it
    roughly=(np.float32, 1),  # [places]: the same, if there is a rough oracle
    tilted=(np.float64, 1),  # [places]: a little beside it
    found=(np.int32, 1),  # [L]: the parts of the oracle's last structure
    slots=(np.int32, 2),  # [room, L]: of each active structure
    widths=(np.int32, 1),  # [room]: how many parts each has
    bits=(np.int64, 3),  # [room / 8, K / 64, 8]: its slots as bits, of 8 structures side by side
    weights=(np.float64, 1),  # [room]
    inverse=Inverse,  # of the Gram matrix of <a_i, a_j> + 1
    gram=(np.float64, 1),  # [room]: scratch, as the next two
    step=(np.float64, 1),
    slopes=(np.float64, 1),
    levels=(np.float64, 1),  # [4]: see below
)
state_of = State.reader
COUNT, SIZE, CHANGES, STALLS, PHASE, ATTEMPT, FAILED = range(7)
"""Numbers: of slots, of active structures, of updates since the inverse was built, of tiny gaps that did not shrink, ..."""
TIE_SLACK, TILT_SIZE, MEAN_GAIN, MEAN_TERMS = range(4)
"""Levels: the gap up to which structures tie and the size of tilts in it; <s - mu, mu>, and the sum of its terms' sizes."""
NEVER_BUILT = 1 << 30  # a number of changes after which the inverse is built before it is used


@functools.lru_cache(maxsize=64)
def state_plan(parts: int, places: int, width: int, room: int, rough: bool = False, work: int = 0) -> Arrangement:
    """States for numbers of parts, places of the oracle, parts of a structure and active structures."""
    room = room // 16 * 16 + 24  # rows of an odd number of cache lines spread over its sets
    shapes: Shapes = dict.fromkeys(["slot_of", "part_of", "places", "scores", "mean", "tilt"], (parts,))
    shapes |= dict.fromkeys(["widths", "weights", "gram", "step", "slopes"], (room,))
    shapes |= dict.fromkeys(["residual", "tilted"], (places,))
    shapes |= {"roughly": (places if rough else 0,), "found": (width,), "work": (work,), "rough_work": (work if rough else 0,)}
    shapes |= {"slots": (room, width), "bits": (room // 8, -(-parts // 64), 8), "levels": (4,), "numbers": (7,)}
    return Arrangement(State, shapes | inverse_shapes(room, "inverse."), zeros=3)


def room_of(plan: Arrangement) -> int:
    """For how many active structures states have room: for more than were asked for."""
    return plan.arrays["weights"][1][0]


@called
def place(state, parts, count, weight):
    """Put a structure behind the active ones, in the room there is for it, and give slots to its new parts."""
    behind = state.numbers[SIZE]
    for word in range((state.numbers[COUNT] + 63) // 64):
        state.bits[behind // 8, word, behind % 8] = 0
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
                    state.bits[i // 8, slot // 64, i % 8] = 0
        state.slots[behind, at] = slot
        state.bits[behind // 8, slot // 64, behind % 8] |= np.int64(1) << np.int64(slot % 64)
    state.widths[behind] = count
    state.weights[behind] = weight


@called
def copy(state, i, j):
    """Put the j-th structure in the place of the i-th."""
    if i != j:
        state.weights[i] = state.weights[j]
        _copy(state.slots, state.widths, state.bits, state.numbers[COUNT], i, j)


@called
def drop(state, index, last):
    """Take a structure out; those behind it, up to the last one, move up."""
    for i in range(index, last):
        state.weights[i], state.slopes[i] = state.weights[i + 1], state.slopes[i + 1]
    _move_up(state.slots, state.widths, state.bits, state.numbers[COUNT], index, last)


@reordered
def _move_up(slots, widths, bits, count, index, last):
    for i in range(index, last):
        widths[i] = widths[i + 1]
        for at in range(widths[i]):
            slots[i, at] = slots[i + 1, at]
    groups, words = bits.shape[0], bits.shape[1]
    for first in range(index & -8, last, 8):
        for word in range((count + 63) // 64):
            at, entering = first * words + 8 * word, bits[min(first // 8 + 1, groups - 1), word, 0]
            eight = load(bits, at)
            store(bits, at, keep_first(eight, index - first, shift_down(eight, entering)))


@reordered
def _copy(slots, widths, bits, count, i, j):
    widths[i] = widths[j]
    for at in range(widths[j]):
        slots[i, at] = slots[j, at]
    for word in range((count + 63) // 64):
        bits[i // 8, word, i % 8] = bits[j // 8, word, j % 8]


@called
def mix(state, ahead):
    """The mean of the active structures. Meanwhile memory that is needed next, `ahead`, comes into the cache."""
    for slot in range(state.numbers[COUNT]):
        state.mean[slot] = 0.0
    _scatter(state.slots, state.widths, state.numbers[SIZE], state.weights, state.mean, ahead)


@called
def scatter(state, coefficients, into):
    """Add the sum of the structures, each times its coefficient."""
    _scatter(state.slots, state.widths, state.numbers[SIZE], coefficients, into, coefficients[:0])


@reordered
def _scatter(slots, widths, size, coefficients, into, ahead):
    lines, next_line = -(-len(ahead) // (8 * max(size, 1))), 0
    for i in range(size):
        for _ in range(lines):
            prefetch_beside(ahead, next_line)
            next_line += 8
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
    words = bits.shape[1]
    for first in range(0, size, 8):
        total = splat(bits, 1)
        for word in range((count + 63) // 64):
            total = _add_shared(load(bits, first * words + 8 * word), splat(bits, bits[size // 8, word, size % 8]), total)
        store(gram, first, _as_floats(total))


def _shared(builder, a, b, total):
    ones = cgutils.get_or_insert_function(builder.module, ir.FunctionType(a.type, [a.type]), f"llvm.ctpop.v{a.type.count}i64")
    return builder.add(total, builder.call(ones, [builder.and_(a, b)]))


_add_shared = lanewise(_shared, 3)
"""`_add_shared(a, b, total)`: add the numbers of bits that are set in both."""


@intrinsic
def _as_floats(typingctx, vector):
    """Whole numbers as float64."""
    kind = floats(types.float64)
    return kind(vector), lambda context, builder, signature, args: builder.sitofp(args[0], vector_of(kind))
