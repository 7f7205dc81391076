"""The Jacobian of SparseMAP on a GPU, applied: the projection onto the directions between active vertices, in Triton."""

from __future__ import annotations

from typing import Any, NamedTuple

from pullback.inference._triton.support import jit, tl
from pullback.inference.sparsemap.cuda_active_set import STEP, VECTOR, multiply
from pullback.inference.sparsemap.cuda_face import write_step
from pullback.inference.sparsemap.cuda_state import Counts, active_of, line, mix
from pullback.inference.sparsemap.cuda_weights import rebuild


class Tensors(NamedTuple):
    """What a launch reads and writes."""

    vertices: Any  # int32 [B, capacity, width]: the active structures
    sizes: Any  # int32 [B]: how many they are
    direction: Any  # [B, parts]
    out: Any  # [B, parts], to write
    scratch: Any  # int32 [programs, room, width]: the vertices that do not depend on others
    work: Any  # float64 [programs, pitch]: scratch


@jit(do_not_specialize=["batch", "parts", "width", "capacity", "room", "pitch", "smaller"])
def apply(tensors, batch, parts, width, capacity, room, pitch, smaller, BLOCK: tl.constexpr):
    """Project directions, one for each example; what no active vertex uses becomes zero.

    Args:
        tensors: see above.
        batch: B.
        parts: how many there are.
        width: the most parts of a structure.
        capacity: of the active sets.
        room: the most structures that fit into this launch's workspaces.
        pitch: of the workspaces.
        smaller: examples with so many vertices or less are left to another launch.
        BLOCK: how many structures, or slots, are looked at together.
    """
    program = tl.program_id(0).to(tl.int64)
    work = tensors.work + program * pitch
    scratch = tensors.scratch + program * room * width
    active, weights = active_of(work, scratch, work, room, parts, width)
    active, weights = active_of(work, scratch, weights, room, parts, width)
    for b in range(tl.program_id(0), batch, tl.num_programs(0)):
        at = tl.cast(b, tl.int64)
        size = tl.load(tensors.sizes + b)
        if (size > smaller) & (size <= room):
            _copy(tensors.vertices + at * capacity * width, scratch, size * width, BLOCK)
            counts = rebuild(active, Counts(size, size * 0, size * 0), BLOCK)
            for _ in range(0, 2):  # the second time for what rounding has left
                _measure(active, tensors.direction + at * parts, counts.size, BLOCK)
                multiply(active, counts.size, counts.pending, BLOCK)
                write_step(active, counts.size, BLOCK)
                _add(active, counts, BLOCK)
            _write(active, counts, tensors.out + at * parts, BLOCK)


@jit()
def _copy(source, target, count, BLOCK: tl.constexpr):
    for first in range(0, count, BLOCK):
        at = first + tl.arange(0, BLOCK)
        tl.store(target + at, tl.load(source + at, mask=at < count, other=-1), mask=at < count)
    tl.debug_barrier()


@jit(noinline=True)
def _measure(active, direction, size, BLOCK: tl.constexpr):
    """Write <v - mu, a_i - a_0> for each vertex a_i to the line VECTOR: v is the direction, mu its projection so far."""
    level = tl.full([], 0.0, tl.float64)
    for first in range(0, size, BLOCK):
        vertex = first + tl.arange(0, BLOCK)
        total = tl.zeros([BLOCK], tl.float64)
        for at in range(0, active.width):
            part = tl.load(active.vertices + vertex * active.width + at, mask=vertex < size, other=-1)
            slot = tl.load(active.slot_of + part, mask=part >= 0, other=0)
            total += tl.load(direction + part, mask=part >= 0, other=0.0).to(tl.float64)
            total -= tl.load(active.mean + slot, mask=part >= 0, other=0.0)
        level += tl.sum(tl.where(vertex == 0, total, 0.0), 0)
        tl.store(line(active, VECTOR) + vertex, total - level, mask=vertex < size)
    tl.debug_barrier()


@jit()
def _add(active, counts, BLOCK: tl.constexpr):
    """Add the vertices, times the line STEP, to the projection, which is zero at first."""
    for first in range(0, counts.used, BLOCK):
        slot = first + tl.arange(0, BLOCK)
        real = slot < counts.used
        total = mix(active, line(active, STEP), counts.size, slot, real, BLOCK)
        total += tl.load(active.mean + slot, mask=real, other=0.0)
        tl.debug_barrier()  # a block may have fewer slots than threads: then several warps read one, and one writes
        tl.store(active.mean + slot, total, mask=real)
    tl.debug_barrier()


@jit()
def _write(active, counts, out, BLOCK: tl.constexpr):
    for first in range(0, counts.used, BLOCK):
        slot = first + tl.arange(0, BLOCK)
        part = tl.load(active.part_of + slot, mask=slot < counts.used, other=0)
        total = tl.load(active.mean + slot, mask=slot < counts.used, other=0.0)
        tl.store(out + part, total.to(out.dtype.element_ty), mask=slot < counts.used)
    tl.debug_barrier()
