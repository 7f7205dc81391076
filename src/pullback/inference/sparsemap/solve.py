"""SparseMAP of a batch: one kernel for all structures, which calls the oracle through a pointer."""

from __future__ import annotations

import numpy as np

from pullback.inference._numba.compile import called, no_alloc_kernel
from pullback.inference._numba.lanes import load
from pullback.inference._numba.records import Record
from pullback.inference._numba.rows import lowest_bit, nonzero
from pullback.inference._numba.scratch import take
from pullback.inference.front.checks import BAD_SIZE, BROKEN, FULL, INFEASIBLE, OK, WORSE
from pullback.inference.sparsemap.active_set import entries, padded
from pullback.inference.sparsemap.face import aim, enter_face, fail, is_accurate, is_new, on_face, tilt
from pullback.inference.sparsemap.oracle import Fixed, call_arrange, call_best, call_centre, call_rough, call_valid
from pullback.inference.sparsemap.search import AMPLIFIED, activate, improve, improvement, is_old, is_settled, judge
from pullback.inference.sparsemap.starts import (
    are_nearly_equal,
    enter,
    listed,
    settle_in,
    share,
    subtract_mean,
    suggest,
)
from pullback.inference.sparsemap.state import COUNT, FAILED, PHASE, SIZE, place, state_of

Problem = Record(
    "Problem",
    fixed=Fixed,
    scores=(np.float64, 2),  # [B, K]
    sizes=(np.int64, 2),  # [B, number of sizes]
    starts=(np.int32, 3),  # [B, k, L]
    start_weights=(np.float64, 2),  # [B, k]
    limit=int,  # of calls of the oracle for each example
    tolerance=(np.float64, 1),  # [1]: a gap that is small enough
    complete=int,  # whether active sets are completed (see face.py)
    order=(np.int64, 1),  # the examples to solve, long ones first
    taken=(np.int64, 1),  # [4]: how many workers have taken; whether the last come first; whether one is FULL, and one DONE
    found=(np.float64, 2),  # with an oracle in Python: its structures, in this order, `[any, K]`
)
Result = Record(
    "Result",
    mu=(np.float64, 2),  # [B, K]
    vertices=(np.int32, 3),  # [B, room, L]: only what is used is written
    weights=(np.float64, 2),  # [B, room]: likewise
    counts=(np.int32, 1),  # [B], as all others
    gap=(np.float64, 1),
    calls=(np.int32, 1),
    converged=(np.bool_, 1),
    status=(np.int64, 1),
    phase=(np.int64, 1),  # with an oracle in Python
)
problem_of, result_of = Problem.reader, Result.reader

NEW, ROUGH, EXACT, FACE, DONE = range(5)  # phases
WRONG = 1e10  # roundings: a structure that is worse than mu by more is no argmax, in float32 either


@no_alloc_kernel
def solve(worker, workers, problems, states, results):
    """Solve examples until none is left; or, with an oracle in Python, do one iteration for each of them.

    There is one state per worker; with an oracle in Python one per example, and that has to be called on `residual` next,
    and in the last phase on `tilted`. Results are written where they have room.
    """
    problem, result = problem_of(problems, 0), result_of(results, 0)
    stepping = problem.fixed.addresses[0] == 0
    while True:
        turn = take(problem.taken)
        if turn >= len(problem.order):
            return
        after = min(turn + workers, len(problem.order) - 1)
        if problem.taken[1] != 0:
            turn, after = len(problem.order) - 1 - turn, len(problem.order) - 1 - after
        b = problem.order[turn]
        state = state_of(states, b if stepping else worker)
        coming = state_of(states, problem.order[after] if stepping else worker)
        ahead = coming.inverse.base[: entries(padded(coming.numbers[SIZE])) if stepping else 0]
        if not stepping:
            state.numbers[PHASE] = NEW
        while state.numbers[PHASE] != DONE:
            if state.numbers[PHASE] == NEW:
                _begin(problem, state, b, result)
            else:
                count = _read(problem.found[turn], state) if stepping else _ask(problem, state, b)
                _react(problem, state, ahead, count, b, result)
            if state.numbers[PHASE] == FACE:
                aim(state)
                tilt(state, stepping)
            if stepping or result.status[b] == FULL:
                break
        result.phase[b] = state.numbers[PHASE]
        if result.status[b] == FULL:
            problem.taken[2] = 1
        elif state.numbers[PHASE] == DONE:
            problem.taken[3] = 1
        ended = state.numbers[PHASE] == DONE or (result.status[b] == FULL and not stepping)
        if ended and result.weights.shape[1] >= state.numbers[SIZE]:
            _write(state, b, result)


@called
def _begin(problem, state, b, result):
    """Read an example's scores and the structures suggested for it."""
    fixed, sizes = problem.fixed, problem.sizes[b]
    shape, options, oracle = fixed.shape, fixed.options, fixed.addresses
    for i in range(len(sizes)):
        if sizes[i] < 0 or sizes[i] > fixed.limits[i]:
            result.status[b], state.numbers[PHASE], state.numbers[SIZE], state.numbers[COUNT] = BAD_SIZE, DONE, 0, 0
            return
    if oracle[2] != 0:
        call_arrange(oracle[2], (shape, sizes, options, state.places))
    else:
        for part in range(len(state.places)):
            state.places[part] = part
    result.status[b] = enter(state, problem.scores[b])
    if result.status[b] != OK:
        state.numbers[PHASE] = DONE
        return
    for i in range(problem.start_weights.shape[1]):
        parts = problem.starts[b, i]
        count = listed(state, parts) if problem.start_weights[b, i] > 0.0 else -1
        if count >= 0 and oracle[3] != 0:
            count = count if call_valid(oracle[3], (shape, sizes, options, parts, count)) != 0 else -1
        elif count >= 0 and oracle[0] != 0:
            state.tilted[:] = -np.inf
            for at in range(count):
                state.tilted[state.places[parts[at]]] = 1.0
            state.numbers[PHASE] = FACE
            count = count if _ask(problem, state, b) == count else -1
        if count >= 0 and state.numbers[SIZE] < len(state.weights) - 1:
            suggest(state, parts, count, problem.start_weights[b, i])
    settle_in(state, fixed.groups, state.tilt)
    if state.numbers[SIZE] == 0 and oracle[5] != 0 and are_nearly_equal(state, problem.starts.shape[2]):
        while state.numbers[SIZE] < len(state.weights) - 1:
            count = call_centre(oracle[5], (shape, sizes, options, state.numbers[SIZE], state.found))
            if count < 0:
                break
            suggest(state, state.found, count, 1.0)
        share(state, state.tilt)
    subtract_mean(state)
    state.numbers[PHASE] = ROUGH if oracle[1] != 0 else EXACT


@called
def _ask(problem, state, b):
    """Call the oracle: how many parts its structure has, -1 if there is none."""
    fixed, sizes, phase = problem.fixed, problem.sizes[b], state.numbers[PHASE]
    shape, options, oracle = fixed.shape, fixed.options, fixed.addresses
    if phase == ROUGH:
        return call_rough(oracle[1], (state.roughly, shape, sizes, options, state.rough_work, state.found))
    scores = state.residual if phase == EXACT else state.tilted
    return call_best(oracle[0], (scores, shape, sizes, options, state.work, state.found))


@called
def _react(problem, state, ahead, count, b, result):
    """Continue with the structure that the oracle found, of `count` parts: the next phase, and s - mu."""
    numbers = state.numbers
    phase = numbers[PHASE]
    if count == -FULL or numbers[SIZE] == len(state.weights):
        result.status[b] = FULL
        return
    result.calls[b] += 1
    if count < 0:
        # a rough oracle may find nothing where scores leave its range
        numbers[PHASE] = EXACT if phase == ROUGH else DONE
        result.status[b] = BROKEN if count == -BROKEN else INFEASIBLE if phase == EXACT else OK
        return
    gap, rounding = improvement(state, count)
    if phase == EXACT and numbers[SIZE] > 0 and gap < -WRONG * rounding:
        result.status[b], numbers[PHASE] = WORSE, DONE
        return
    if phase == FACE:
        wanted = on_face(state, gap)
    else:
        wanted = judge(state, gap, rounding, phase == EXACT, problem.limit, problem.tolerance[0], b, result)
    done = phase == EXACT and not wanted
    completing = done and problem.complete != 0 and result.converged[b] and not gap > AMPLIFIED * rounding
    if wanted:
        place(state, state.found, count, 1.0 if numbers[SIZE] == 0 else 0.0)
    independent, rebuilt, size = True, False, numbers[SIZE]
    if phase == FACE and wanted and not is_new(state):
        independent = False
    elif wanted or (completing and (is_old(state) or not is_accurate(state))):
        independent, rebuilt = activate(state, 1 if wanted else 0, phase != EXACT)
    if phase == FACE:
        if wanted and not independent:
            fail(state)
        elif wanted:
            numbers[FAILED] = 0
        unfinished = numbers[FAILED] < 2 and result.calls[b] >= problem.limit
        result.converged[b] = not unfinished
        numbers[PHASE] = DONE if numbers[FAILED] >= 2 or unfinished else FACE
    elif wanted and not independent and not rebuilt and phase == EXACT and is_settled(state, gap, rounding):
        # without rounding its gap would be zero, the mean being the minimum on the affine hull
        result.converged[b] = not gap > max(AMPLIFIED * rounding, problem.tolerance[0])
        spanning = problem.complete != 0 and not gap > AMPLIFIED * rounding
        numbers[PHASE] = FACE if spanning else DONE
    elif wanted or (completing and numbers[SIZE] < size):
        improve(state, ahead, gap, rounding, independent, rebuilt)
        subtract_mean(state)
        numbers[PHASE] = phase if independent or phase == EXACT else EXACT
    else:
        numbers[PHASE] = EXACT if phase == ROUGH else FACE if completing else DONE
    if phase != FACE and numbers[PHASE] == FACE:
        enter_face(state, gap, rounding)


@called
def _read(z, state):
    """The parts of a structure of zeros and ones, as many as are returned, or minus what is wrong with it."""
    count, room, vectors = 0, len(state.found), len(z) & -8
    for first in range(0, len(z), 64):
        ones = 0
        for at in range(first, min(first + 64, vectors), 8):
            ones |= nonzero(load(z, at)) << (at - first)
        for at in range(max(first, vectors), min(first + 64, len(z))):
            ones |= np.int64(z[at] != 0.0) << (at - first)
        while ones != 0:
            if count < room:
                state.found[count] = first + lowest_bit(ones)
            count += 1
            ones &= ones - 1
    for at in range(min(count, room)):
        part = state.found[at]
        if z[part] != z[part] or (z[part] == 1.0 and state.residual[part] == -np.inf):
            return -1
        if z[part] != 1.0:
            return -BROKEN
    return count if count <= room else -FULL


@called
def _write(state, b, result):
    """Hand out the active set and its mean as example b's."""
    size = state.numbers[SIZE]
    result.counts[b] = size
    for i in range(size):
        result.weights[b, i] = state.weights[i]
        for at in range(result.vertices.shape[2]):
            result.vertices[b, i, at] = state.part_of[state.slots[i, at]] if at < state.widths[i] else -1
    for slot in range(state.numbers[COUNT]):
        result.mu[b, state.part_of[slot]] = state.mean[slot]


@no_alloc_kernel
def list_parts(z, columns, lists):
    """Write the parts of structures `[R, K]` to `[R, most]`, padded with -1; what is no structure has no parts.

    They are listed column by column of a matrix with `columns` columns: in their own order for one column.
    """
    most, height = lists.shape[1], z.shape[1] // max(columns, 1)
    for r in range(len(z)):
        count, right = 0, True
        for column in range(columns):
            for row in range(height):
                part = row * columns + column
                if z[r, part] != 0.0:
                    right = right and z[r, part] == 1.0 and count < most
                    if right:
                        lists[r, count] = part
                        count += 1
        for at in range(count if right else 0, most):
            lists[r, at] = -1
