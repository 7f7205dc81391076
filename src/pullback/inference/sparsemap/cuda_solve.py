"""SparseMAP on a GPU: one program per example, from its scores to its active set, in Triton."""

from __future__ import annotations

from typing import Any, NamedTuple

from pullback.inference._triton.support import jit, tl
from pullback.inference.sparsemap.cuda_face import complete
from pullback.inference.sparsemap.cuda_search import CONVERGED, FULL, GARBLED, INFEASIBLE, search
from pullback.inference.sparsemap.cuda_state import active_of, example_of
from pullback.inference.sparsemap.cuda_trees import _COMPLETING, enter


class Tensors(NamedTuple):
    """What a launch reads and writes."""

    scores: Any  # [B, n, n]
    sizes: Any  # int64 [B]: the length of each sentence
    mu: Any  # [B, n, n], to write
    vertices: Any  # int32 [B, capacity, n]: the active trees, some to start from; to write
    weights: Any  # float64 [B, capacity], likewise
    gaps: Any  # float64 [B], to write
    records: Any  # int32 [3, B]: sizes, calls of the oracle, how the search ended, FULL if it has not; to go on from, to write
    work: Any  # float64 [programs, pitch]: scratch


NUMBERS = ["batch", "n", "capacity", "room", "pitch", "limit", "flags"]


@jit(do_not_specialize=NUMBERS)
def solve(
    tensors, batch, n, capacity, room, pitch, limit, flags,
    ROUGH: tl.constexpr, ANOTHER: tl.constexpr, EXACT: tl.constexpr, SHAPE: tl.constexpr,
):  # fmt: skip
    """Project scores onto the convex hull of the trees: those of sentences that are not finished.

    Args:
        tensors: see above.
        batch: B.
        n: the most words of a sentence.
        capacity: the most trees of an active set.
        room: the most trees that fit into this launch's workspaces.
        pitch: of the workspaces.
        limit: how many calls of the oracle are enough.
        flags: the kind of tree, as bits: see cuda_trees.py; and whether to add trees at the end until they span mu's face.
        ROUGH: an oracle, or None: see cuda_search.py.
        ANOTHER: finds a second tree after a call of the rough one, or None.
        EXACT: an oracle.
        SHAPE: the logarithm of the oracles' number of positions, and how many trees, or slots, are looked at together.
    """
    parts = n * n
    LEVELS: tl.constexpr = SHAPE[0]
    BLOCK: tl.constexpr = SHAPE[1]
    work = tensors.work + tl.program_id(0).to(tl.int64) * pitch
    for b in range(tl.program_id(0), batch, tl.num_programs(0)):
        at = tl.cast(b, tl.int64)
        records = tensors.records + b
        if tl.load(records + 2 * batch) == FULL:
            vertices, weights = tensors.vertices + at * capacity * n, tensors.weights + at * capacity
            active, behind = active_of(work, vertices, weights, room, parts, n)
            example = example_of(behind, tensors.sizes + at, n, flags)
            size, calls = tl.load(records), tl.load(records + batch)
            garbled = enter(tensors.scores + at * parts, example, active.vertices, active.weights, size)
            state = size * 0 + GARBLED
            if garbled == 0:
                counts, progress, state = search(
                    example, active, size, calls, limit, ROUGH, ANOTHER, EXACT, LEVELS, BLOCK
                )  # fmt: skip
                calls = progress.calls
                if ((flags & _COMPLETING) > 0) & (state == CONVERGED):
                    counts, more = complete(example, active, counts, progress, EXACT, LEVELS, BLOCK)
                    calls += more
                    state = tl.where((counts.size == room) & (room < capacity), FULL, state)  # the next launch has more room
                size = counts.size
                tl.store(tensors.gaps + at, progress.gap)
            write(tensors.mu + at * parts, active, (state == GARBLED) | (state == INFEASIBLE), BLOCK)
            tl.store(records, size)
            tl.store(records + batch, calls)
            tl.store(records + 2 * batch, state)
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
