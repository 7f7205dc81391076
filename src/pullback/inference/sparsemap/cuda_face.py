"""Completing the active set on a GPU, in Triton: vertices of mu's face, with weight 0, until they span it.

The twin of face.py, which says why the Jacobian needs it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from pullback.inference._triton.support import constant, jit, tl
from pullback.inference.sparsemap.cuda_active_set import PRODUCT, STEP, SUMS, VECTOR, extend, multiply
from pullback.inference.sparsemap.cuda_state import line, mix
from pullback.inference.sparsemap.cuda_weights import excess, gain, mean

_AHEAD = constant(8)
_TILT = constant(100.0)  # as face.py has it


class Face(NamedTuple):
    """How far a completion is."""

    slack: Any  # by how much less than mu structures of its face may seem to gain
    tilt: Any  # the size of the next step, in units of the slack
    attempt: Any  # the number of the direction
    failed: Any  # how many directions have found nothing, one after the other


@jit()
def complete(example, active, counts, progress, EXACT: tl.constexpr, LEVELS: tl.constexpr, BLOCK: tl.constexpr):
    """Add vertices of the face that mu lies in until the active set spans it, or has no more room.

    Returns:
        The counts of the active set, and the calls of the oracle.
    """
    face, calls = enter_face(progress), progress.calls * 0
    own, _ = mean(example, active, counts, BLOCK)
    clear(example, float("inf"), BLOCK)
    while (face.failed < 2) & (counts.size < active.room):
        tilt(example, active, counts, face, BLOCK)
        exists = EXACT(example.tilted, example, LEVELS)
        tl.debug_barrier()
        calls += 1
        counts, face = probe(example, active, counts, face, own, exists, BLOCK)
    return counts, calls


@jit()
def enter_face(progress):
    """Begin with the first direction."""
    slack = tl.maximum(100 * progress.rounding, 4 * progress.gap)
    return Face(slack, tl.full([], _TILT, tl.float64), progress.calls * 0, progress.calls * 0)


@jit()
def probe(example, active, counts, face, own, exists, BLOCK: tl.constexpr):
    """Activate the structure that the oracle found, if it is one of mu's face that the active ones do not span.

    If it is none of the face, the next tilt is smaller, or along another direction. Returns the counts and the face.
    """
    lead, _ = gain(example, exists, BLOCK)
    ties = (exists > 0) & (lead - own > -face.slack)
    found = counts.size * 0
    if ties:
        found, counts = extend(active, example.found, counts, tl.full([], 0.0, tl.float64), BLOCK)
    shorter = (ties == 0) & (face.tilt > 2.0)
    failing = tl.where(shorter | (found > 0), 0, 1)
    failed = tl.where(found > 0, 0, face.failed + failing)
    return counts, Face(face.slack, tl.where(shorter, 0.1 * face.tilt, face.tilt), face.attempt + failing, failed)


@jit(noinline=True)
def clear(example, penalty, BLOCK: tl.constexpr):
    """Take a penalty off s - mu, for all parts."""
    for first in range(0, example.parts, BLOCK):
        at = first + tl.arange(0, BLOCK)
        slack = tl.load(example.residual + at, mask=at < example.parts, other=0.0)
        tl.store(example.tilted + at, slack - penalty, mask=at < example.parts)
    tl.debug_barrier()


@jit(noinline=True)
def tilt(example, active, counts, face, BLOCK: tl.constexpr):
    """Write s - mu plus a small step along a direction that is constant on the active vertices, for parts that mu uses."""
    _project_noise(active, counts, face.attempt, BLOCK)
    total = tl.zeros([BLOCK], tl.float64)
    for first in range(0, counts.used, BLOCK):
        slot = first + tl.arange(0, BLOCK)
        real = slot < counts.used
        used = tl.load(active.mean + slot, mask=real, other=0.0) > 0.0
        q = tl.where(used, _noise(slot, face.attempt), 0.0) - mix(active, line(active, STEP), counts.size, slot, real, BLOCK)
        total += tl.where(real, q * q, 0.0)
        part = tl.load(active.part_of + slot, mask=used, other=0)
        tl.store(example.tilted + part, q, mask=used)
    tl.debug_barrier()
    scale = face.slack * face.tilt / tl.maximum(tl.sqrt(tl.sum(total, 0)), 1e-300)
    for first in range(0, counts.used, BLOCK):
        slot = first + tl.arange(0, BLOCK)
        used = tl.load(active.mean + slot, mask=slot < counts.used, other=0.0) > 0.0
        part = tl.load(active.part_of + slot, mask=used, other=0)
        q = tl.load(example.tilted + part, mask=used, other=0.0)
        slack = tl.load(example.residual + part, mask=used, other=0.0)
        tl.store(example.tilted + part, slack + scale * q, mask=used)
    tl.debug_barrier()


@jit()
def _project_noise(active, counts, attempt, BLOCK: tl.constexpr):
    """Write the weights of the vertices whose sum is nearest to the noise to the line STEP."""
    for first in range(0, counts.size, BLOCK):
        vertex = first + tl.arange(0, BLOCK)
        total = tl.zeros([BLOCK], tl.float64)
        for start in range(0, active.width, _AHEAD):
            for offset in tl.static_range(_AHEAD):
                at = start + offset
                used = (at < active.width) & (vertex < counts.size)
                part = tl.load(active.vertices + vertex * active.width + at, mask=used, other=-1)
                slot = tl.load(active.slot_of + part, mask=part >= 0, other=0)
                used = tl.load(active.mean + slot, mask=part >= 0, other=0.0) > 0.0
                total += tl.where(used, _noise(slot, attempt), 0.0)
        tl.store(line(active, VECTOR) + vertex, total, mask=vertex < counts.size)
    tl.debug_barrier()
    multiply(active, counts.size, counts.pending, BLOCK)
    write_step(active, counts.size, BLOCK)


@jit()
def write_step(active, size, BLOCK: tl.constexpr):
    """Write M e less a multiple of M 1, so that it adds up to zero, from the line PRODUCT to the line STEP."""
    level = excess(active, line(active, PRODUCT), size, BLOCK)
    for first in range(0, size, BLOCK):
        vertex = first + tl.arange(0, BLOCK)
        product = tl.load(line(active, PRODUCT) + vertex, mask=vertex < size, other=0.0)
        sums = tl.load(line(active, SUMS) + vertex, mask=vertex < size, other=0.0)
        tl.store(line(active, STEP) + vertex, product - level * sums, mask=vertex < size)
    tl.debug_barrier()


@jit()
def _noise(slot, attempt):
    """Numbers from -0.5 to 0.5 that look random, as face.py has them."""
    x = (slot + 1).to(tl.uint64) * 0x9E3779B97F4A7C15 + (attempt + 1).to(tl.uint64) * 0xD1B54A32D192ED03
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB
    return ((x ^ (x >> 31)) >> 11).to(tl.float64) * 1.1102230246251565e-16 - 0.5
