"""SparseMAP on a GPU with an oracle of its own launches: one iteration of every example between two of its calls, in Triton.

The search is that of cuda_search.py; what it keeps of an example waits in memory for the next structure.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from pullback.inference._triton.support import constant, jit, tl
from pullback.inference.front import checks
from pullback.inference.sparsemap.cuda_face import Face, clear, enter_face, probe, tilt
from pullback.inference.sparsemap.cuda_search import CONVERGED, FULL, GOING, INFEASIBLE, first_progress, react
from pullback.inference.sparsemap.cuda_solve import write
from pullback.inference.sparsemap.cuda_state import Counts, Example, Progress, active_of, restart
from pullback.inference.sparsemap.cuda_weights import mean, rebuild, refine

DONE, NEW, SEARCH, FACE = range(4)  # phases: the largest one of a batch says whether there is anything left to do
PHASE, SIZE, WIDTH, PENDING, USED, CHANGES, STALLS, CALLS, ATTEMPT, FAILED, STATUS, SURE = range(12)
"""The columns of `records`, int32. WIDTH is how many parts the last structure has that was found."""
RECORDS, NUMBERS = 12, 6
_DONE, _NEW, _SEARCH, _FACE = constant(DONE), constant(NEW), constant(SEARCH), constant(FACE)
_PHASE, _SIZE, _WIDTH, _PENDING, _USED, _CHANGES = (constant(i) for i in range(6))
_STALLS, _CALLS, _ATTEMPT, _FAILED, _STATUS, _SURE = (constant(i) for i in range(6, 12))
_GAP, _ROUNDING, _OWN, _SCALE, _SLACK, _TILT = (constant(i) for i in range(6))  # the columns of `numbers`, float64
_RECORDS, _NUMBERS = constant(RECORDS), constant(NUMBERS)
_OK, _NAN, _INFEASIBLE, _INFINITE = (
    constant(x) for x in (checks.OK, checks.NAN, checks.INFEASIBLE, checks.INFINITE)
)  # fmt: skip
_WORSE, _BROKEN = constant(checks.WORSE), constant(checks.BROKEN)
_WRONG = constant(1e10)  # roundings: as solve.py has it


class Place(NamedTuple):
    """Where an example keeps what waits for the next structure."""

    records: Any
    numbers: Any


class Tensors(NamedTuple):
    """What a launch of `step` reads and writes."""

    scores: Any  # [B, parts]; -inf where there is no part
    z: Any  # float64 [B, parts]: the structures that the oracle found for `asked`
    asked: Any  # float64 [B, parts], to write: what to ask the oracle next
    vertices: Any  # int32 [B, room, width]: the active structures
    weights: Any  # float64 [B, room]
    numbers: Any  # float64 [B, NUMBERS]
    records: Any  # int32 [B, RECORDS]
    work: Any  # float64 [B, pitch]: the workspaces


@jit(do_not_specialize=["parts", "width", "room", "pitch", "limit", "completing", "last"])
def step(
    tensors, parts, width, room, pitch, limit, completing, last, BLOCK: tl.constexpr, READ: tl.constexpr
):  # fmt: skip
    """One iteration of each example that is not done.

    Args:
        tensors: see above.
        parts: how many there are.
        width: the most parts of a structure that there is room for. An example with a larger one waits.
        room: the most structures that there is room for. An example that needs more waits.
        pitch: of the workspaces.
        limit: how many calls of the oracle are enough.
        completing: whether to add structures at the end until they span the face that mu lies in.
        last: whether there will never be more room, so that nobody waits.
        BLOCK: how many structures, or slots, are looked at together.
        READ: how many parts of a structure are.
    """
    b = tl.program_id(0).to(tl.int64)
    place = Place(tensors.records + b * _RECORDS, tensors.numbers + b * _NUMBERS)
    phase = tl.load(place.records + _PHASE)
    if phase != _DONE:
        asked = tensors.asked + b * parts
        vertices, weights = tensors.vertices + b * room * width, tensors.weights + b * room
        active, behind = active_of(tensors.work + b * pitch, vertices, weights, room, parts, width)
        found = (behind + 2 * parts).to(tl.pointer_type(tl.int32))
        example = Example(
            behind, behind + parts, asked, asked, found, behind, behind, parts, parts, parts, width
        )  # fmt: skip
        if phase == _NEW:
            _begin(place, example, active, tensors.scores + b * parts, BLOCK)
        else:
            count, trouble = _read(example, tensors.z + b * parts, READ)
            tl.store(place.records + _WIDTH, count)
            if (count <= width) | (last != 0):
                trouble = tl.where(count <= width, trouble, _BROKEN)
                if phase == _SEARCH:
                    _search(place, example, active, trouble, limit, completing, last, BLOCK)
                else:
                    _complete(place, example, active, trouble, last, BLOCK)


@jit(noinline=True)
def _begin(place, example, active, scores, BLOCK: tl.constexpr):
    """Read an example's scores, and start from the structures that are suggested."""
    nan, infinite = tl.zeros([BLOCK], tl.int32), tl.zeros([BLOCK], tl.int32)
    for first in range(0, example.parts, BLOCK):
        part = first + tl.arange(0, BLOCK)
        score = tl.load(scores + part, mask=part < example.parts, other=0.0).to(tl.float64)
        nan |= (score != score).to(tl.int32)
        infinite |= (score == float("inf")).to(tl.int32)
        tl.store(example.scores + part, score, mask=part < example.parts)
    tl.debug_barrier()
    status = tl.where(tl.max(nan, 0) > 0, _NAN, tl.where(tl.max(infinite, 0) > 0, _INFINITE, _OK))
    size = tl.load(place.records + _SIZE)
    counts = Counts(size, size * 0, size * 0)
    restart(example, active, BLOCK)
    if (size > 0) & (status == _OK):
        counts = refine(example, active, rebuild(active, counts, BLOCK), 3 + size * 0, BLOCK)
    tl.store(place.records + _STATUS, status)
    _look(place, example, active, counts, BLOCK)
    _store(place, counts, first_progress(size * 0))
    tl.store(place.records + _PHASE, tl.where(status == _OK, _SEARCH, _DONE))


@jit(noinline=True)
def _read(example, z, READ: tl.constexpr):
    """Write the parts of a structure as a list; returns how many they are, and what is wrong with them."""
    count = example.parts * 0
    trouble = tl.zeros([READ], tl.int32)
    for first in range(0, example.parts, READ):
        part = first + tl.arange(0, READ)
        value = tl.load(z + part, mask=part < example.parts, other=0.0)
        one = value != 0.0
        slack = tl.load(example.residual + part, mask=one & (part < example.parts), other=0.0)
        wrong = tl.where((value != value) | (slack == float("-inf")), _INFEASIBLE, tl.where(value == 1.0, _OK, _BROKEN))
        trouble = tl.maximum(trouble, tl.where(one, wrong, _OK))
        at = count + tl.cumsum(one.to(tl.int32), 0) - 1
        tl.store(example.found + at, part, mask=one & (at < example.width))
        count += tl.sum(one.to(tl.int32), 0)
    for first in range(count, example.width, READ):
        at = first + tl.arange(0, READ)
        tl.store(example.found + at, tl.full([READ], -1, tl.int32), mask=at < example.width)
    tl.debug_barrier()
    return count, tl.max(trouble, 0)


@jit(noinline=True)
def _search(place, example, active, trouble, limit, completing, last, BLOCK: tl.constexpr):
    """One iteration of the search."""
    counts, progress = _load(place)
    own, scale = tl.load(place.numbers + _OWN), tl.load(place.numbers + _SCALE)
    exists, never = tl.where(trouble == _OK, 1, 0), counts.size * 0
    state, counts, progress, _ = react(example, active, counts, progress, own, scale, exists, limit, never, BLOCK)
    worse = (state == CONVERGED) & (progress.gap < progress.rounding * -_WRONG)
    failure = tl.where(worse, _WORSE, tl.where(state == INFEASIBLE, trouble, _OK))
    sure = tl.where((state == CONVERGED) & (worse == 0), 1, 0)
    if state == GOING:
        _look(place, example, active, counts, BLOCK)
    waits = (state == FULL) & (last == 0)
    if waits == 0:
        faces = (sure > 0) & (completing != 0)
        if faces:
            face = enter_face(progress)
            clear(example, _penalty(example, BLOCK), BLOCK)
            tilt(example, active, counts, face, BLOCK)
            _store_face(place, face)
        _store(place, counts, progress)
        tl.store(place.records + _STATUS, failure)
        tl.store(place.records + _SURE, sure)
        tl.store(place.records + _PHASE, tl.where(faces, _FACE, tl.where(state == GOING, _SEARCH, _DONE)))


@jit(noinline=True)
def _complete(place, example, active, trouble, last, BLOCK: tl.constexpr):
    """One iteration of the completion of the face."""
    counts, progress = _load(place)
    if counts.size < active.room:
        face = Face(
            tl.load(place.numbers + _SLACK), tl.load(place.numbers + _TILT),
            tl.load(place.records + _ATTEMPT), tl.load(place.records + _FAILED),
        )  # fmt: skip
        own, exists = tl.load(place.numbers + _OWN), tl.where(trouble == _OK, 1, 0)
        counts, face = probe(example, active, counts, face, own, exists, BLOCK)
        progress = Progress(progress.changes, progress.stalls, progress.calls + 1, progress.gap, progress.rounding)
        tilt(example, active, counts, face, BLOCK)
        _store(place, counts, progress)
        _store_face(place, face)
        tl.store(place.records + _PHASE, tl.where(face.failed < 2, _FACE, _DONE))
    elif last != 0:
        tl.store(place.records + _PHASE, _DONE)


@jit(noinline=True)
def _penalty(example, BLOCK: tl.constexpr):
    """More than what the scores of two structures can differ by: a user's argmax may not know -inf."""
    total = tl.zeros([BLOCK], tl.float64)
    for first in range(0, example.parts, BLOCK):
        part = first + tl.arange(0, BLOCK)
        slack = tl.load(example.residual + part, mask=part < example.parts, other=0.0)
        total += tl.where(slack > float("-inf"), tl.abs(slack), 0.0)
    return 1.0 + 2.0 * tl.sum(total, 0)


@jit()
def _look(place, example, active, counts, BLOCK: tl.constexpr):
    """Write s - mu, which the oracle sees next, and <s - mu, mu>."""
    own, scale = mean(example, active, counts, BLOCK)
    tl.store(place.numbers + _OWN, own)
    tl.store(place.numbers + _SCALE, scale)


@jit()
def _load(place):
    """What an example has kept: the counts and the progress."""
    counts = Counts(
        tl.load(place.records + _SIZE), tl.load(place.records + _PENDING), tl.load(place.records + _USED)
    )  # fmt: skip
    progress = Progress(
        tl.load(place.records + _CHANGES), tl.load(place.records + _STALLS), tl.load(place.records + _CALLS),
        tl.load(place.numbers + _GAP), tl.load(place.numbers + _ROUNDING),
    )  # fmt: skip
    return counts, progress


@jit()
def _store(place, counts, progress):
    tl.store(place.records + _SIZE, counts.size)
    tl.store(place.records + _PENDING, counts.pending)
    tl.store(place.records + _USED, counts.used)
    tl.store(place.records + _CHANGES, progress.changes)
    tl.store(place.records + _STALLS, progress.stalls)
    tl.store(place.records + _CALLS, progress.calls)
    tl.store(place.numbers + _GAP, progress.gap)
    tl.store(place.numbers + _ROUNDING, progress.rounding)


@jit()
def _store_face(place, face):
    tl.store(place.numbers + _SLACK, face.slack)
    tl.store(place.numbers + _TILT, face.tilt)
    tl.store(place.records + _ATTEMPT, face.attempt)
    tl.store(place.records + _FAILED, face.failed)


@jit(do_not_specialize=["parts", "room", "pitch"])
def finish(mu, records, work, parts, room, pitch, BLOCK: tl.constexpr):
    """Write mu `[B, parts]`."""
    b = tl.program_id(0).to(tl.int64)
    active, _ = active_of(work + b * pitch, work, work, room, parts, parts)
    bad = tl.load(records + b * _RECORDS + _STATUS) != _OK
    write(mu + b * parts, active, bad, BLOCK)
