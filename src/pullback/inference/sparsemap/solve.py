"""SparseMAP of a batch: one kernel for all structures, which calls the oracle through a pointer."""

from __future__ import annotations

from collections import namedtuple

import numpy as np

from pullback.inference.checks import INFEASIBLE, OK
from pullback.inference.compile import lean_kernel, spliced
from pullback.inference.queues import take
from pullback.inference.sparsemap.face import enter_face, fail, on_face, tilt
from pullback.inference.sparsemap.oracle import call_arrange, call_best, call_rough, call_valid
from pullback.inference.sparsemap.search import AMPLIFIED, activate, improve, improvement, is_old, judge
from pullback.inference.sparsemap.starts import enter, listed, settle_in, subtract_mean, suggest
from pullback.inference.sparsemap.state import COUNT, FAILED, PHASE, SIZE, place, state_of
from pullback.inference.sparsemap.status import BROKEN, FULL, WORSE

Problem = namedtuple(
    "Problem",
    [
        "scores",  # [B, K]
        "shape",  # [d] int64: of the parts
        "sizes",  # [B, number of sizes] int64
        "options",  # int64
        "groups",  # [K] int32, or [0]: see Oracle
        "starts",  # [B, k, L] int32
        "start_weights",  # [B, k]
        "limit",  # int: of calls of the oracle for each example
        "complete",  # bool: whether active sets are completed (see face.py)
        "oracle",  # [4] int64: the addresses of its functions, or 0
        "order",  # [any] int64: the examples to solve, long ones first
    ],
)
Result = namedtuple("Result", ["mu", "vertices", "weights", "counts", "gap", "calls", "converged"])
"""Arrays to write; of vertices `[B, room, L]` and weights `[B, room]` only as much as is used."""

NEW, ROUGH, EXACT, FACE, DONE = range(5)  # phases
WRONG = 1e10  # roundings: a structure that is worse than mu by more is no argmax, in float32 either


@lean_kernel
def solve(worker, workers, taken, problem, states, found, result, status):
    """Solve examples until none is left; or, with an oracle in Python, do one iteration for each of them.

    Args:
        worker: which one this is.
        workers: how many there are.
        taken: how many examples have been taken by all workers, `[1]`.
        problem: see above.
        states: one for each worker; with an oracle in Python, one for each example.
        found: with an oracle in Python, its structures, in the problem's order, `[any, K]`. It has to be called on
            `residual` next, and in the last phase on `tilted`.
        result: to write, where it has room.
        status: `[B]`, to write.
    """
    stepping = problem.oracle[0] == 0
    while True:
        turn = take(taken)
        if turn >= len(problem.order):
            return
        b = problem.order[turn]
        state = state_of(states, b if stepping else worker)
        if not stepping:
            state.numbers[PHASE] = NEW
        while state.numbers[PHASE] != DONE:
            if state.numbers[PHASE] == NEW:
                _begin(problem, state, b, status)
            else:
                count = _read(found[turn], state) if stepping else _ask(problem, state, b)
                _react(problem, state, count, b, result, status)
            if state.numbers[PHASE] == FACE:
                tilt(state, stepping)
            if stepping or status[b] == FULL:
                break
        ended = state.numbers[PHASE] == DONE or (status[b] == FULL and not stepping)
        if ended and result.weights.shape[1] >= state.numbers[SIZE]:
            _write(state, b, result)


@spliced
def _begin(problem, state, b, status):
    """Read an example's scores and the structures suggested for it."""
    shape, sizes, options, oracle = problem.shape, problem.sizes[b], problem.options, problem.oracle
    if oracle[2] != 0:
        call_arrange(oracle[2], (shape, sizes, options, state.places))
    else:
        for part in range(len(state.places)):
            state.places[part] = part
    status[b] = enter(state, problem.scores[b])
    if status[b] != OK:
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
    settle_in(state, problem.groups, state.tilt)
    subtract_mean(state)
    state.numbers[PHASE] = ROUGH if oracle[1] != 0 else EXACT


@spliced
def _ask(problem, state, b):
    """Call the oracle: how many parts its structure has, -1 if there is none."""
    shape, sizes, options, phase = problem.shape, problem.sizes[b], problem.options, state.numbers[PHASE]
    if phase == ROUGH:
        return call_rough(problem.oracle[1], (state.roughly, shape, sizes, options, state.rough_work, state.found))
    scores = state.residual if phase == EXACT else state.tilted
    return call_best(problem.oracle[0], (scores, shape, sizes, options, state.work, state.found))


@spliced
def _react(problem, state, count, b, result, status):
    """Continue with the structure that the oracle found, of `count` parts: the next phase, and s - mu."""
    numbers = state.numbers
    phase = numbers[PHASE]
    if count == -FULL or numbers[SIZE] == len(state.weights):
        status[b] = FULL
        return
    result.calls[b] += 1
    if count < 0:
        # a rough oracle may find nothing where scores leave its range
        numbers[PHASE] = EXACT if phase == ROUGH else DONE
        status[b] = BROKEN if count == -BROKEN else INFEASIBLE if phase == EXACT else OK
        return
    gap, rounding = improvement(state, count)
    if phase == EXACT and numbers[SIZE] > 0 and gap < -WRONG * rounding:
        status[b], numbers[PHASE] = WORSE, DONE
        return
    if phase == FACE:
        wanted = on_face(state, gap)
    else:
        wanted = judge(state, gap, rounding, phase == EXACT, problem.limit, b, result)
    done = phase == EXACT and not wanted
    completing = done and problem.complete and result.converged[b]
    if wanted:
        place(state, state.found, count, 1.0 if numbers[SIZE] == 0 else 0.0)
    independent, rebuilt, size = True, False, numbers[SIZE]
    if wanted or (completing and is_old(state)):
        independent, rebuilt = activate(state, 1 if wanted else 0, phase != EXACT)
    if phase == FACE:
        if wanted and not independent:
            fail(state)
        elif wanted:
            numbers[FAILED] = 0
        numbers[PHASE] = DONE if numbers[FAILED] >= 2 else FACE
    elif wanted and not independent and not rebuilt and phase == EXACT:
        # without rounding its gap would be zero, the mean being the minimum on the affine hull
        result.converged[b] = not gap > AMPLIFIED * rounding
        numbers[PHASE] = FACE if problem.complete and result.converged[b] else DONE
    elif wanted or (completing and numbers[SIZE] < size):
        improve(state, gap, rounding, independent, rebuilt)
        subtract_mean(state)
        numbers[PHASE] = phase if independent or phase == EXACT else EXACT
    else:
        numbers[PHASE] = EXACT if phase == ROUGH else FACE if completing else DONE
    if phase != FACE and numbers[PHASE] == FACE:
        enter_face(state, gap, rounding)


@spliced
def _read(z, state):
    """The parts of a structure of zeros and ones, as many as are returned, or minus what is wrong with it."""
    count = 0
    for part in range(len(z)):
        if z[part] != 0.0:
            if z[part] != z[part]:
                return -1
            if z[part] != 1.0:
                return -BROKEN
            if count == len(state.found):
                return -FULL
            if state.residual[part] == -np.inf:
                return -1
            state.found[count] = part
            count += 1
    return count


@spliced
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
