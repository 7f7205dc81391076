"""Completing the active set on a GPU, in Triton: vertices of mu's face, with weight 0, until they span it.

The twin of face.py, which says why the Jacobian needs it.
"""

from __future__ import annotations

from pullback.inference.sparsemap.cuda_active_set import PRODUCT, STEP, SUMS, VECTOR, excess, extend, multiply
from pullback.inference.sparsemap.cuda_state import line, mix
from pullback.inference.sparsemap.cuda_weights import gain, mean
from pullback.inference.triton_support import constant, jit, tl

_GOLDEN = constant(0.6180339887498949)
_AHEAD = constant(8)


@jit()
def complete(
    example, active, counts, gap, rounding, EXACT: tl.constexpr, LEVELS: tl.constexpr, BLOCK: tl.constexpr
):  # fmt: skip
    """Add vertices of the face that mu lies in until the active set spans it, or has no more room.

    Returns:
        The counts of the active set, and the calls of the oracle.
    """
    slack = tl.maximum(100 * rounding, 4 * gap)  # by how much less than mu vertices of its face may seem to gain
    own, _ = mean(example, active, counts, BLOCK)
    attempt, failed, calls = counts.size * 0, counts.size * 0, counts.size * 0
    clear(example, BLOCK)
    while (failed < 2) & (counts.size < active.room):
        tilt(example, active, counts, attempt, 100 * slack, BLOCK)
        exists = EXACT(example.tilted, example, LEVELS)
        tl.debug_barrier()
        calls += 1
        lead, _ = gain(example, exists, BLOCK)
        found = counts.size * 0
        if (exists > 0) & (lead - own > -slack):
            found, counts = extend(active, example.found, counts, gap, BLOCK)
        failed = tl.where(found > 0, 0, failed + 1)
        attempt += tl.where(found > 0, 2 - attempt % 2, 1)  # after a success, a new direction
    return counts, calls


@jit(noinline=True)
def clear(example, BLOCK: tl.constexpr):
    """Forbid all parts."""
    for first in range(0, example.parts, BLOCK):
        at = first + tl.arange(0, BLOCK)
        tl.store(example.tilted + at, tl.full([BLOCK], float("-inf"), tl.float64), mask=at < example.parts)
    tl.debug_barrier()


@jit(noinline=True)
def tilt(example, active, counts, attempt, step_size, BLOCK: tl.constexpr):
    """Write s - mu plus a small step along a direction that is constant on the active vertices; mu's parts alone are allowed.

    Each pair of attempts has a direction of its own, the second of the pair its opposite.
    """
    seed = attempt // 2 + 1
    _project_noise(active, counts, seed, BLOCK)
    sign = tl.where(attempt % 2 == 0, step_size, -step_size)
    for first in range(0, counts.used, BLOCK):
        slot = first + tl.arange(0, BLOCK)
        real = slot < counts.used
        part = tl.load(active.part_of + slot, mask=real, other=0)
        direction = _noise(slot, seed) - mix(active, line(active, STEP), counts.size, slot, real, BLOCK)
        slack = tl.load(example.residual + part, mask=real, other=0.0) + sign * direction
        used = tl.load(active.mean + slot, mask=real, other=0.0) > 0.0
        tl.store(example.tilted + part, tl.where(used, slack, float("-inf")), mask=real)
    tl.debug_barrier()


@jit()
def _project_noise(active, counts, seed, BLOCK: tl.constexpr):
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
                total += tl.where(part >= 0, _noise(slot, seed), 0.0)
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
def _noise(slot, seed):
    """Numbers from -0.5 to 0.5 without a pattern."""
    x = ((slot + 1) * seed).to(tl.float64) * _GOLDEN
    return x - tl.floor(x) - 0.5
