"""Where a search on a GPU starts: from the trees that a caller suggests, as far as they can be used. In Triton."""

from __future__ import annotations

from pullback.inference.triton_support import jit, tl


@jit()
def copy_usable(
    scores, given, given_weights, count, heads, weights, length, n, multiroot,
    PROJECTIVE: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, LEVELS: tl.constexpr,
):  # fmt: skip
    """Copy the first trees of positive weight that are trees of this kind without forbidden arcs.

    Args:
        scores: `[n, n]`, -inf for forbidden arcs.
        given: `[count, n]`, int16, heads of trees, or not.
        given_weights: `[count]`, float64.
        count: how many to look at.
        heads: `[>= count, n]`, int16, to write.
        weights: `[>= count]`, float64, to write.
        length: the number of words.
        n: the pitch of scores and heads.
        multiroot: whether several words may attach to the root.
        PROJECTIVE: whether arcs may not cross.
        ROWS: arcs looked at together.
        COLUMNS: a power of two, at least n.
        LEVELS: its logarithm.

    Returns:
        How many they are.
    """
    word = tl.arange(0, COLUMNS)
    real = word < length
    kept = 0
    for i in range(0, count):
        head = tl.load(given + i * n + word, mask=real, other=0).to(tl.int32)
        inside = (head >= 0) & (head < length)
        score = tl.load(scores + head * n + word, mask=real & inside, other=float("-inf"))
        wrong = real & ((score == float("-inf")) | (inside == 0))
        head = tl.where(real & inside, head, word)
        above = head
        for _ in range(LEVELS):
            above = tl.gather(above, above, 0)
        wrong = wrong | (real & (tl.gather(head, above, 0) != above))
        faults = tl.sum(wrong.to(tl.int32), 0)
        roots = tl.sum((real & (head == word)).to(tl.int32), 0)
        faults += tl.where((roots > 1) & (multiroot == 0), 1, 0)
        if PROJECTIVE:
            faults += _crossings(given + i * n, head, length, ROWS, COLUMNS)
        weight = tl.load(given_weights + i)
        if (faults == 0) & (weight > 0.0):
            tl.store(heads + kept * n + word, tl.where(real, head, -1).to(tl.int16), mask=word < n)
            tl.store(weights + kept, weight)
            kept += 1
    return kept


@jit()
def _crossings(heads, head, length, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """How many pairs of arcs cross; the root stands left of the first word."""
    word = tl.arange(0, COLUMNS)
    low = tl.where(head == word, -1, tl.minimum(head, word))
    high = tl.maximum(head, word)
    count = 0
    for start in range(0, length, ROWS):
        other = start + tl.arange(0, ROWS)
        its_head = tl.load(heads + other, mask=other < length, other=0).to(tl.int32)
        its_low = tl.where(its_head == other, -1, tl.minimum(its_head, other))[:, None]
        its_high = tl.maximum(its_head, other)[:, None]
        between = (its_low < word[None, :]) & (word[None, :] < its_high)
        outside = (low[None, :] < its_low) | (high[None, :] > its_high)
        crossing = between & outside & (word < length)[None, :] & (other < length)[:, None]
        count += tl.sum(tl.sum(crossing.to(tl.int32), 1), 0)
    return count
