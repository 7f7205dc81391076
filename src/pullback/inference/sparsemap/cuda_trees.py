"""Dependency trees for SparseMAP on a GPU, in Triton: their scores as the oracle sees them, warm starts, one oracle."""

from __future__ import annotations

from typing import Any, NamedTuple

from pullback.inference._triton.support import constant, jit, tl
from pullback.inference.chu_liu_edmonds.cuda_contraction import best_heads
from pullback.inference.sparsemap.cuda_state import length_of

_TILE = constant(32)  # heads, and words, looked at together
MULTIROOT, PROJECTIVE, COMPLETING = 1, 2, 4  # the bits of `flags`
_MULTIROOT, _PROJECTIVE, _COMPLETING = constant(MULTIROOT), constant(PROJECTIVE), constant(COMPLETING)


@jit(noinline=True)
def enter(scores, example, vertices, weights, size):
    """Write the scores shifted so that s - mu has a largest entry of zero for each word, with mu the mean at the start.

    Every word has one head, so that changes no projection; and near a solution s - mu is small then: after a small step from
    a tree it differs by as much as the step is long, which a rough oracle has to see.

    Args:
        scores: `[n, n]`.
        example: to write its scores: -inf for padding.
        vertices: the trees to start from.
        weights: their weights, float64.
        size: how many they are.

    Returns:
        1 if there is NaN or +inf, or if the length is out of range, else 0.
    """
    n, length = example.first, length_of(example)
    total = tl.full([], 0.0, tl.float64)
    for i in range(0, size):
        total += tl.load(weights + i)
    scale = 1.0 / tl.where(size > 0, total, 1.0)
    worst = tl.zeros([_TILE], tl.int32)
    for first_word in range(0, n, _TILE):
        word = first_word + tl.arange(0, _TILE)
        top = tl.full([_TILE], float("-inf"), tl.float64)
        for first_head in range(0, length, _TILE):
            part, score, garbled = _load(scores, first_head, word, length, n)
            mu = tl.zeros([_TILE, _TILE], tl.float64)
            for i in range(0, size):
                own = tl.load(vertices + i * n + word, mask=word < length, other=-1)
                mu += tl.where(part == own[None, :], tl.load(weights + i), 0.0)
            top = tl.maximum(top, tl.max(score - scale * mu, 0))
            worst = tl.maximum(worst, tl.max(garbled.to(tl.int32), 0))
        top = tl.where(top > float("-inf"), top, 0.0)
        for first_head in range(0, n, _TILE):
            part, score, _ = _load(scores, first_head, word, length, n)
            inside = (part < n * n) & (word < n)[None, :]
            tl.store(example.scores + part, score - top[None, :], mask=inside)
    tl.debug_barrier()
    return tl.where(tl.load(example.sizes) == length, tl.max(worst, 0), 1)


@jit()
def _load(scores, first_head, word, length, n):
    """The indices of a tile of arcs, their scores, -inf where there is none, and which are NaN or +inf."""
    head = first_head + tl.arange(0, _TILE)
    part = head[:, None] * n + word[None, :]
    real = (head < length)[:, None] & (word < length)[None, :]
    score = tl.load(scores + part, mask=real, other=float("-inf")).to(tl.float64)
    garbled = (score != score) | (score == float("inf"))
    return part, tl.where(garbled, float("-inf"), score), garbled


@jit(noinline=True)
def best_of_all(scores, example, LEVELS: tl.constexpr):
    """The oracle for all trees, projective or not."""
    n, length = example.first, length_of(example)
    columns: tl.constexpr = 1 << LEVELS
    rows: tl.constexpr = 2048 // columns if columns > 64 else 32
    word = tl.arange(0, columns)
    history = (example.scratch + 4 * n).to(tl.pointer_type(tl.int16))
    head, exists = best_heads(
        scores, length, n, example.options & _MULTIROOT, history, example.scratch, rows, columns, LEVELS
    )  # fmt: skip
    tl.store(example.found + word, tl.where(word < length, head * n + word, -1), mask=word < n)
    return exists


def scratch_of_all(n: int) -> int:
    """How many float64 `best_of_all` needs."""
    return 4 * n + (3 * n * n + 3) // 4


class Tensors(NamedTuple):
    """What `start` reads and writes."""

    scores: Any  # [B, n, n], -inf for forbidden arcs
    lengths: Any  # int64 [B]
    given: Any  # int32 [B, starts, n]: the arcs of trees, or not
    given_weights: Any  # float64 [B, starts]
    vertices: Any  # int32 [B, capacity, n], to write
    weights: Any  # float64 [B, capacity], to write
    records: Any  # int32 [3, B]; to write how many they are


@jit(do_not_specialize=["batch", "n", "capacity", "starts", "flags"])
def start(tensors, batch, n, capacity, starts, flags, LEVELS: tl.constexpr):
    """Copy the first trees of positive weight that are trees of this kind without forbidden arcs; 2^LEVELS is n at least."""
    word = tl.arange(0, 1 << LEVELS)
    for b in range(tl.program_id(0), batch, tl.num_programs(0)):
        at = tl.cast(b, tl.int64)
        length = tl.load(tensors.lengths + b)
        length = tl.where((length >= 0) & (length <= n), length, 0).to(tl.int32)
        kept = 0
        for i in range(0, tl.minimum(starts, capacity)):
            arc = tl.load(tensors.given + (at * starts + i) * n + word, mask=word < length, other=0)
            weight = tl.load(tensors.given_weights + at * starts + i)
            faults = _faults(tensors.scores + at * n * n, arc, length, n, flags, LEVELS)
            if (faults == 0) & (weight > 0.0):
                target = at * capacity + kept
                tl.store(tensors.vertices + target * n + word, tl.where(word < length, arc, -1), mask=word < n)
                tl.store(tensors.weights + target, weight)
                kept += 1
        tl.store(tensors.records + b, kept)


@jit()
def _faults(scores, arc, length, n, flags, LEVELS: tl.constexpr):
    """Why this is no tree of this kind: how many reasons there are."""
    word = tl.arange(0, 1 << LEVELS)
    real = word < length
    inside = (arc >= 0) & (arc < length * n) & (arc % n == word)
    score = tl.load(scores + arc, mask=real & inside, other=float("-inf"))
    wrong = real & (score == float("-inf"))
    head = tl.where(real & inside, arc // n, word)
    above = head
    for _ in range(LEVELS):
        above = tl.gather(above, above, 0)
    wrong = wrong | (real & (tl.gather(head, above, 0) != above))
    roots = tl.sum((real & (head == word)).to(tl.int32), 0)
    faults = tl.sum(wrong.to(tl.int32), 0) + tl.where((roots > 1) & ((flags & _MULTIROOT) == 0), 1, 0)
    if (flags & _PROJECTIVE) > 0:
        faults += _crossings(head, length, LEVELS)
    return faults


@jit()
def _crossings(head, length, LEVELS: tl.constexpr):
    """How many arcs are crossed by another; the root stands left of the first word."""
    word = tl.arange(0, 1 << LEVELS)
    low = tl.where(head == word, -1, tl.minimum(head, word))
    high = tl.maximum(head, word)
    count = tl.zeros([1 << LEVELS], tl.int32)
    for other in range(0, length):
        its_head = tl.sum(tl.where(word == other, head, 0), 0)
        its_low, its_high = tl.where(its_head == other, -1, tl.minimum(its_head, other)), tl.maximum(its_head, other)
        between = (its_low < word) & (word < its_high) & (word < length)
        count += (between & ((low < its_low) | (high > its_high))).to(tl.int32)
    return tl.sum(count, 0)
