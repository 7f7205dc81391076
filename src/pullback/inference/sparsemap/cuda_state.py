"""What the active-set method keeps of one example on a GPU, and where it lies in a program's workspace. In Triton.

A vertex is a list of part indices, padded with -1. A part that a vertex has used has a slot, so that the mean costs as much as
the parts in use. For each slot, bit i of `bits` says whether vertex i has the part: no two vertices need be compared.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from pullback.inference._triton.support import constant, jit, tl

PENDING = 8  # changes of the inverse that come together, at most
LINES = 5 + PENDING  # vectors of one number per vertex
_SCALARS = constant(16)  # before them
_LINES = constant(LINES)


class Example(NamedTuple):
    """One example, as the oracle sees it."""

    scores: Any  # float64 [parts]: shifted; -inf where there is no part
    residual: Any  # float64 [parts]: s - mu
    rough: Any  # float32 or float64 [parts]: the same
    tilted: Any  # float64 [parts]: for the completion of a face
    found: Any  # int32 [width]: the oracle's result
    scratch: Any  # float64: the oracle's
    sizes: Any  # int64: its size
    first: Any  # the first dimension of the parts
    options: Any  # of the structure: bits
    parts: Any  # how many there are
    width: Any  # the most parts of one vertex


class Active(NamedTuple):
    """The active vertices, and the inverse M of their Gram matrix (see cuda_active_set.py)."""

    vertices: Any  # int32 [capacity, width]
    weights: Any  # float64 [capacity]
    inverse: Any  # float64 [room, room]
    scales: Any  # float64 [16]: of the pending changes, and scratch
    lines: Any  # float64 [LINES, room]
    bits: Any  # int32 [room / 32, parts]: by slot
    slot_of: Any  # int32 [parts]: the slot of a part, or -1
    part_of: Any  # int32 [parts]: the part of a slot
    mean: Any  # float64 [parts]: mu, by slot
    room: Any  # for how many vertices there is room
    parts: Any
    width: Any


class Counts(NamedTuple):
    """The numbers that change with the active set."""

    size: Any  # active vertices
    pending: Any  # changes of M
    used: Any  # slots


class Progress(NamedTuple):
    """How far a search is."""

    changes: Any  # of the inverse, since it was built
    stalls: Any  # how often the gap was tiny and did not shrink
    calls: Any  # of the oracle
    gap: Any  # of the last structure that it found
    rounding: Any  # how much of it may be rounding


def workspace(parts: int, width: int, room: int, scratch: int) -> int:
    """How many float64 a program needs."""
    words = (room + 31) // 32
    return room * room + 16 + LINES * room + 6 * parts + (words * parts + 1) // 2 + width + scratch


@jit()
def active_of(work, vertices, weights, room, parts, width):
    """The active set whose scratch begins at `work`, and where what follows it begins."""
    lines = work + room * room + _SCALARS
    mean = lines + room * _LINES
    slot_of = (mean + parts).to(tl.pointer_type(tl.int32))
    bits = slot_of + 2 * parts
    behind = mean + 2 * parts + ((room + 31) // 32 * parts + 1) // 2
    active = Active(
        vertices, weights, work, lines - _SCALARS, lines, bits, slot_of, slot_of + parts, mean, room, parts, width
    )  # fmt: skip
    return active, behind


@jit()
def example_of(work, sizes, n, options):
    """The sentence whose scratch begins at `work`."""
    parts, width = n * n, n
    rough = (work + 3 * parts).to(tl.pointer_type(tl.float32))
    found = (work + 4 * parts).to(tl.pointer_type(tl.int32))
    scratch = work + 4 * parts + width
    return Example(
        work, work + parts, rough, work + 2 * parts, found, scratch, sizes, n, options, parts, width
    )  # fmt: skip


@jit()
def length_of(example):
    """The size of an example; 0 for one that is out of range."""
    length = tl.load(example.sizes)
    return tl.where((length >= 0) & (length <= example.first), length, 0).to(tl.int32)


@jit()
def line(active, index: tl.constexpr):
    """A vector with one number per vertex."""
    return active.lines + index * active.room


@jit(noinline=True)
def forget(active, BLOCK: tl.constexpr):
    """Take the slots from all parts."""
    for first in range(0, active.parts, BLOCK):
        part = first + tl.arange(0, BLOCK)
        tl.store(active.slot_of + part, tl.full([BLOCK], -1, tl.int32), mask=part < active.parts)
    tl.debug_barrier()


@jit(noinline=True)
def restart(example, active, BLOCK: tl.constexpr):
    """Take the slots from all parts, where mu is zero then."""
    forget(active, BLOCK)
    for first in range(0, active.parts, BLOCK):
        part = first + tl.arange(0, BLOCK)
        score = tl.load(example.scores + part, mask=part < active.parts, other=0.0)
        tl.store(example.residual + part, score, mask=part < active.parts)
        tl.store(example.rough + part, score.to(example.rough.dtype.element_ty), mask=part < active.parts)
    tl.debug_barrier()


@jit(noinline=True)
def place(active, new, index, used, BLOCK: tl.constexpr):
    """Write a vertex to a place behind the active ones, and give slots to its parts; returns how many are in use."""
    word, bit = index // 32, 1 << (index % 32)
    if index % 32 == 0:
        for first in range(0, used, BLOCK):
            slot = first + tl.arange(0, BLOCK)
            tl.store(active.bits + word * active.parts + slot, tl.zeros([BLOCK], tl.int32), mask=slot < used)
        tl.debug_barrier()
    for first in range(0, active.width, BLOCK):
        at = first + tl.arange(0, BLOCK)
        part = tl.load(new + at, mask=at < active.width, other=-1)
        slot = tl.load(active.slot_of + part, mask=part >= 0, other=0)
        unknown = (part >= 0) & (slot < 0)
        slot = tl.where(unknown, used + tl.cumsum(unknown.to(tl.int32), 0) - 1, slot)
        tl.store(active.slot_of + part, slot, mask=unknown)
        tl.store(active.part_of + slot, part, mask=unknown)
        tl.store(active.mean + slot, tl.zeros([BLOCK], tl.float64), mask=unknown)
        for earlier in range(0, word):
            tl.store(active.bits + earlier * active.parts + slot, tl.zeros([BLOCK], tl.int32), mask=unknown)
        bits = tl.load(active.bits + word * active.parts + slot, mask=(part >= 0) & (unknown == 0), other=0)
        tl.store(active.bits + word * active.parts + slot, bits | bit, mask=part >= 0)
        tl.store(active.vertices + index * active.width + at, part, mask=at < active.width)
        used += tl.sum(unknown.to(tl.int32), 0)
    tl.debug_barrier()
    return used


@jit(noinline=True)
def replace(active, index, last, used, BLOCK: tl.constexpr):
    """Put the last vertex in the place of another."""
    tl.store(active.weights + index, tl.load(active.weights + last))
    for first in range(0, active.width, BLOCK):
        at = first + tl.arange(0, BLOCK)
        part = tl.load(active.vertices + last * active.width + at, mask=at < active.width, other=-1)
        tl.store(active.vertices + index * active.width + at, part, mask=at < active.width)
    source, target = active.bits + last // 32 * active.parts, active.bits + index // 32 * active.parts
    for first in range(0, used, BLOCK):
        slot = first + tl.arange(0, BLOCK)
        moved = tl.load(source + slot, mask=slot < used, other=0)
        tl.store(source + slot, moved & ~(1 << (last % 32)), mask=slot < used)
        tl.debug_barrier()
        bits = tl.load(target + slot, mask=slot < used, other=0) & ~(1 << (index % 32))
        own = (moved >> (last % 32)) & tl.where(index == last, 0, 1)
        tl.store(target + slot, bits | (own << (index % 32)), mask=slot < used)
    tl.debug_barrier()


@jit()
def mix(active, weights, size, slot, real, BLOCK: tl.constexpr):
    """The weighted sum of the vertices at a block of slots."""
    total = tl.zeros([BLOCK], tl.float64)
    other = total  # two sums, so that one addition need not wait for the other
    for start in range(0, size, 32):
        bits = tl.load(active.bits + start // 32 * active.parts + slot, mask=real, other=0)
        for i in range(start, tl.minimum(start + 32, size), 8):
            for offset in tl.static_range(0, 8, 2):  # so that eight weights are on the way at a time
                first = tl.load(weights + i + offset, mask=i + offset < size, other=0.0)
                second = tl.load(weights + i + offset + 1, mask=i + offset + 1 < size, other=0.0)
                total += tl.where(((bits >> (i + offset - start)) & 1) > 0, first, 0.0)
                other += tl.where(((bits >> (i + offset + 1 - start)) & 1) > 0, second, 0.0)
    return total + other
