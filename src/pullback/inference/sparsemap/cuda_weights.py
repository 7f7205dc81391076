"""The weights of an active set on a GPU, in Triton: the mean that they make of its vertices, and their move to a better one."""

from __future__ import annotations

from pullback.inference._triton.support import constant, jit, tl
from pullback.inference.sparsemap.cuda_active_set import (
    DRIVE,
    PRODUCT,
    SUMS,
    VECTOR,
    add_both,
    extend,
    multiply,
    remove,
)
from pullback.inference.sparsemap.cuda_state import Counts, forget, line, mix

_ROUNDING = constant(4 * 2.0**-52)
_AHEAD = constant(8)  # how many loads are on the way at a time


@jit(noinline=True)
def mean(example, active, counts, BLOCK: tl.constexpr):
    """Write mu, the mean of the active vertices, and s - mu, which the oracle sees.

    Returns:
        <s - mu, mu>, and the sum of its terms' sizes.
    """
    own = tl.zeros([2 * BLOCK], tl.float64)  # two slots per thread: fewer instructions for each
    scale = own
    for first in range(0, counts.used, 2 * BLOCK):
        slot = first + tl.arange(0, 2 * BLOCK)
        real = slot < counts.used
        part = tl.load(active.part_of + slot, mask=real, other=0)
        mu = mix(active, active.weights, counts.size, slot, real, 2 * BLOCK)
        slack = tl.load(example.scores + part, mask=real, other=0.0) - mu
        own += slack * mu
        scale += tl.abs(slack * mu)
        tl.store(active.mean + slot, mu, mask=real)
        tl.store(example.residual + part, slack, mask=real)
        tl.store(example.rough + part, slack.to(example.rough.dtype.element_ty), mask=real)
    tl.debug_barrier()
    return tl.reduce((own, scale), 0, add_both)


@jit(noinline=True)
def gain(example, exists, BLOCK: tl.constexpr):
    """<s - mu, z> for the structure z that was found, if there is one, and how much of it may be rounding."""
    total = tl.zeros([BLOCK], tl.float64)
    scale = total
    for first in range(0, example.width, BLOCK):
        at = first + tl.arange(0, BLOCK)
        part = tl.load(example.found + at, mask=(at < example.width) & (exists > 0), other=-1)
        slack = tl.load(example.residual + part, mask=part >= 0, other=0.0)
        total += slack
        scale += tl.where(part >= 0, 1.0 + tl.abs(slack), 0.0)
    total, scale = tl.reduce((total, scale), 0, add_both)
    return total, scale * _ROUNDING


@jit(noinline=True)
def rebuild(active, counts, BLOCK: tl.constexpr):
    """Build the inverse anew from the vertices, without those that depend on others; returns the counts."""
    forget(active, BLOCK)
    kept = Counts(counts.size * 0, counts.size * 0, counts.size * 0)
    total = tl.full([], 0.0, tl.float64)
    for i in range(0, counts.size):
        weight = tl.load(active.weights + i)
        before = kept.size
        independent, kept = extend(active, active.vertices + i * active.width, kept, weight, BLOCK)
        if independent > 0:
            tl.store(active.weights + before, weight)
            total += weight
    tl.debug_barrier()
    for first in range(0, kept.size, BLOCK):
        vertex = first + tl.arange(0, BLOCK)
        weight = tl.load(active.weights + vertex, mask=vertex < kept.size, other=0.0)
        tl.store(active.weights + vertex, weight / total, mask=vertex < kept.size)
    tl.debug_barrier()
    return kept


@jit(noinline=True)
def refine(example, active, counts, passes, BLOCK: tl.constexpr):
    """Move the weights to the minimum on the affine hull, from wherever they are; returns the counts."""
    for _ in range(0, passes):
        mean(example, active, counts, BLOCK)
        measure(active, example.residual, counts.size, BLOCK)
        multiply(active, counts.size, counts.pending, BLOCK)
        for first in range(0, counts.size, BLOCK):
            vertex = first + tl.arange(0, BLOCK)
            drive = tl.load(line(active, PRODUCT) + vertex, mask=vertex < counts.size, other=0.0)
            tl.store(line(active, DRIVE) + vertex, drive, mask=vertex < counts.size)
        tl.debug_barrier()
        counts, _ = settle(active, counts, BLOCK)
    return counts


@jit(noinline=True)
def measure(active, values, size, BLOCK: tl.constexpr):
    """Write <v, a_i - a_0> for each vertex a_i to the line VECTOR, with v the values `[parts]`."""
    level = tl.full([], 0.0, tl.float64)
    for first in range(0, size, BLOCK):
        vertex = first + tl.arange(0, BLOCK)
        total = tl.zeros([BLOCK], tl.float64)
        for start in range(0, active.width, _AHEAD):
            for offset in tl.static_range(_AHEAD):
                at = start + offset
                used = (at < active.width) & (vertex < size)
                part = tl.load(active.vertices + vertex * active.width + at, mask=used, other=-1)
                total += tl.load(values + part, mask=part >= 0, other=0.0).to(tl.float64)
        level += tl.sum(tl.where(vertex == 0, total, 0.0), 0)
        tl.store(line(active, VECTOR) + vertex, total - level, mask=vertex < size)
    tl.debug_barrier()


@jit(noinline=True)
def settle(active, counts, BLOCK: tl.constexpr):
    """Step to the minimum on the affine hull, dropping the vertices whose weight vanishes on the way.

    Returns:
        The counts, and by how much the vertices' slope <s - mu, a_i> has risen.
    """
    moving = counts.size * 0 + 1
    rise = tl.full([], 0.0, tl.float64)
    while moving > 0:
        level = excess(active, line(active, DRIVE), counts.size, BLOCK)
        far, index = _reach(active, counts.size, level, BLOCK)
        moving = tl.where(far < 2.0, 1, 0)
        far = tl.minimum(far, 1.0)
        rise += far * level
        _move(active, counts.size, level, far, moving, BLOCK)
        if moving > 0:
            counts = remove(active, index, counts, BLOCK)
    return counts, rise


@jit()
def excess(active, vector, size, BLOCK: tl.constexpr):
    """The multiple of the sums of M that makes a vector add up to zero if it is taken off."""
    total = tl.zeros([BLOCK], tl.float64)
    norm = total
    for first in range(0, size, BLOCK):
        at = first + tl.arange(0, BLOCK)
        total += tl.load(vector + at, mask=at < size, other=0.0)
        norm += tl.load(line(active, SUMS) + at, mask=at < size, other=0.0)
    total, norm = tl.reduce((total, norm), 0, add_both)
    return total / tl.where(norm > 0.0, norm, 1.0)


@jit()
def _reach(active, size, level, BLOCK: tl.constexpr):
    """How far the step goes before a weight vanishes, 2 if none does, and whose it is."""
    far, index = tl.full([], 2.0, tl.float64), size * 0
    for first in range(0, size, BLOCK):
        vertex = first + tl.arange(0, BLOCK)
        weight = tl.load(active.weights + vertex, mask=vertex < size, other=1.0)
        drive = tl.load(line(active, DRIVE) + vertex, mask=vertex < size, other=0.0)
        step = drive - level * tl.load(line(active, SUMS) + vertex, mask=vertex < size, other=0.0)
        vanishing = (weight + step <= 0.0) & (step < 0.0)
        if tl.max(vanishing.to(tl.int32), 0) > 0:  # a division is slow
            reach = tl.where(vanishing, weight / tl.where(vanishing, -step, 1.0), 2.0)
            near, at = tl.min(reach, 0, return_indices=True)
            index = tl.where(near < far, first + at, index)
            far = tl.minimum(near, far)
    return far, index


@jit()
def _move(active, size, level, far, moving, BLOCK: tl.constexpr):
    """Take a part of the step; after a whole one the weights are made to sum to one, which large slopes prevent."""
    total = tl.zeros([BLOCK], tl.float64)
    for first in range(0, size, BLOCK):
        vertex = first + tl.arange(0, BLOCK)
        weight = tl.load(active.weights + vertex, mask=vertex < size, other=0.0)
        drive = tl.load(line(active, DRIVE) + vertex, mask=vertex < size, other=0.0)
        step = drive - level * tl.load(line(active, SUMS) + vertex, mask=vertex < size, other=0.0)
        weight += far * step
        total += tl.where(vertex < size, weight, 0.0)
        tl.debug_barrier()  # a block may have fewer vertices than threads: then several warps read them, and one writes
        tl.store(active.weights + vertex, weight, mask=vertex < size)
        tl.store(line(active, DRIVE) + vertex, drive * (1.0 - far), mask=vertex < size)
    tl.debug_barrier()
    total = tl.sum(total, 0)
    if (moving == 0) & (tl.abs(total - 1.0) > _ROUNDING):
        for first in range(0, size, BLOCK):
            vertex = first + tl.arange(0, BLOCK)
            weight = tl.load(active.weights + vertex, mask=vertex < size, other=0.0)
            tl.store(active.weights + vertex, weight / total, mask=vertex < size)
        tl.debug_barrier()
