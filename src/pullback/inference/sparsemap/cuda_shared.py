"""The best projective tree of a sentence of up to 50 words, inside a larger GPU program, in Triton: charts in shared memory.

In float32: for the exact search in float64, there is cuda_projective.py.
"""

from __future__ import annotations

from pullback.inference._triton.support import jit, tl
from pullback.inference.eisner.cuda_charts import (
    RIGHT,
    RIGHT_ARC,
    RIGHT_TO,
    charts_of,
    follow,
    packed,
    place,
    read,
    scratch_of_charts,
    spans,
)
from pullback.inference.sparsemap.cuda_projective import scratch_of_projective
from pullback.inference.sparsemap.cuda_state import length_of
from pullback.inference.sparsemap.cuda_trees import _MULTIROOT as MULTIROOT


@jit(noinline=True)
def best_shared(scores, example, LEVELS: tl.constexpr):
    """The oracle for projective trees of fewer than 2^LEVELS words, at most 50: see cuda_search.py."""
    n, length, splits = example.first, length_of(example), example.scratch.to(tl.pointer_type(tl.int32))
    charts = charts_of(splits, LEVELS)
    spans(scores, charts, splits, length, n, example.options & MULTIROOT, False, LEVELS)
    exists = tl.where(read(charts, place(RIGHT, 0, length, LEVELS)) > float("-inf"), 1, 0)
    if exists > 0:
        _find(length, n, splits, example, LEVELS)
    return exists


@jit(noinline=True)
def another_shared(scores, example, most, LEVELS: tl.constexpr):
    """After `best_shared`, the best tree with another last child of the root, if it is worse by less than `most`.

    Returns 1, or 0 if there is none.
    """
    n, length, splits = example.first, length_of(example), example.scratch.to(tl.pointer_type(tl.int32))
    charts, child = charts_of(splits, LEVELS), tl.arange(0, 1 << LEVELS)
    arc = read(charts, place(RIGHT_ARC, 0 * child, tl.minimum(child, length), LEVELS))
    rest = read(charts, place(RIGHT_TO, 0 * child + length, tl.minimum(child, length - 1), LEVELS))
    value = arc + tl.where(child < length, rest, 0.0)
    value = tl.where((child > 0) & (child <= length), value, float("-inf"))
    best = tl.max(value, 0)
    second, at = tl.max(tl.where(value < best, value, float("-inf")), 0, return_indices=True)
    exists = tl.where(second > best - most, 1, 0)
    if exists > 0:
        gap = tl.load(splits + length) & 1023
        tl.store(splits + length, packed(gap, at - 1, gap))
        tl.debug_barrier()
        _find(length, n, splits, example, LEVELS)
    return exists


@jit()
def _find(length, n, splits, example, LEVELS: tl.constexpr):
    """Write the arcs of the tree that the splits tell."""
    above, at = follow(length, splits, LEVELS), tl.arange(0, 1 << LEVELS)
    arc = tl.where(above == 0, at - 1, above - 1) * n + at - 1
    tl.store(example.found + at - 1, tl.where(at <= length, arc, -1), mask=(at > 0) & (at <= n))


def scratch_of_shared(n: int) -> int:
    """How many float64 it needs, or the exact oracle."""
    return max(scratch_of_charts(6) // 2, scratch_of_projective(n))
