"""SparseMAP on a GPU: one program per example, from its scores to its active set, in Triton."""

from __future__ import annotations

from pullback.inference.sparsemap.cuda_face import complete
from pullback.inference.sparsemap.cuda_search import CONVERGED, FULL, GARBLED, INFEASIBLE, search
from pullback.inference.sparsemap.cuda_state import active_of, example_of
from pullback.inference.triton_support import jit, tl

NUMBERS = ["batch", "first", "second", "parts", "width", "capacity", "room", "pitch", "limit", "flags", "completing"]


@jit(do_not_specialize=NUMBERS)
def solve(
    scores, sizes, mu, vertices, weights, gaps, records, work,
    batch, first, second, parts, width, capacity, room, pitch, limit, flags, completing,
    ENTER: tl.constexpr, ROUGH: tl.constexpr, EXACT: tl.constexpr, LEVELS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Project scores `[B, *parts]` onto the convex hull of the structures: those examples that are not finished.

    Args:
        scores: `[B, parts]`.
        sizes: `[B, k]`, int64: the sizes of each example.
        mu: `[B, parts]`, to write.
        vertices: `[B, capacity, width]`, int32: the active structures, some to start from; to write.
        weights: `[B, capacity]`, float64, likewise.
        gaps: `[B]`, float64, to write.
        records: `[3, B]`, int32: the size of the active set, the calls of the oracle, and how the search ended, FULL if it
            has not. To go on from, and to write.
        work: scratch, `pitch` of float64 for each program.
        batch: B.
        first: the first dimension of the parts.
        second: the second.
        parts: how many there are in all.
        width: the most parts of a structure.
        capacity: the pitch of the active sets.
        room: the most structures that fit into this launch's workspace.
        pitch: the size of a workspace.
        limit: how many calls of the oracle are enough.
        flags: of the structure, as bits.
        completing: whether to add structures at the end until they span the face that mu lies in.
        ENTER: from the scores of an example to those that the oracle sees: see cuda_trees.py.
        ROUGH: an oracle, or None: see cuda_search.py.
        EXACT: an oracle.
        LEVELS: of the oracles: the logarithm of their number of positions.
        BLOCK: how many structures, or slots, are looked at together.
    """
    work += tl.program_id(0).to(tl.int64) * pitch
    for b in range(tl.program_id(0), batch, tl.num_programs(0)):
        at = tl.cast(b, tl.int64)
        if tl.load(records + 2 * batch + b) == FULL:
            active, behind = active_of(work, vertices + at * capacity * width, weights + at * capacity, room, parts, width)
            example = example_of(behind, sizes + at, first, second, flags, parts, width)
            size, calls = tl.load(records + b), tl.load(records + batch + b)
            garbled = ENTER(scores + at * parts, example, active.vertices, active.weights, size, LEVELS)
            state = GARBLED + size * 0
            if garbled == 0:
                counts, progress, state = search(example, active, size, calls, limit, ROUGH, EXACT, LEVELS, BLOCK)
                calls = progress.calls
                if (completing != 0) & (state == CONVERGED):
                    counts, more = complete(example, active, counts, progress, EXACT, LEVELS, BLOCK)
                    calls += more
                size = counts.size
                tl.store(gaps + at, progress.gap)
            write(mu + at * parts, active, (state == GARBLED) | (state == INFEASIBLE), BLOCK)
            tl.store(records + b, size)
            tl.store(records + batch + b, calls)
            tl.store(records + 2 * batch + b, state)
            tl.debug_barrier()


@jit()
def write(mu, active, bad, BLOCK: tl.constexpr):
    """Write mu: zero where no vertex has a part, NaN for a bad example."""
    for first in range(0, active.parts, BLOCK):
        part = first + tl.arange(0, BLOCK)
        slot = tl.load(active.slot_of + part, mask=(part < active.parts) & (bad == 0), other=-1)
        value = tl.load(active.mean + slot, mask=slot >= 0, other=0.0)
        value = tl.where(bad, float("nan"), value)
        tl.store(mu + part, value.to(mu.dtype.element_ty), mask=part < active.parts)
