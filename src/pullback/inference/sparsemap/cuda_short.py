"""The best projective tree of a short sentence, inside a larger GPU program: Eisner's algorithm in registers, in Triton.

The root is position 0 and word m position m + 1; eisner/README.md names the items. A chart is a square tile whose columns are
splits k. Its rows are either starts i, or ends j = i + width, which takes a shift by one row from width to width. So
the two halves of all splits of all spans of a width stand next to each other, and nothing waits for memory.

A split is kept together with the gap of the arc that it makes, as 64 * child + gap: what it takes to go on from there.
"""

from __future__ import annotations

from pullback.inference.triton_support import jit, tl


@jit()
def best_tree(scores, length, n, multiroot, heads, POSITIONS: tl.constexpr):
    """Write the heads of the tree of largest score.

    Args:
        scores: `[n, n]`, packed: head x modifier, the root on the diagonal; finite or -inf among the words. Their
            precision is that of the charts.
        length: the number of words, from 1 to n.
        n: the pitch of the scores, less than POSITIONS.
        multiroot: whether several words may attach to the root.
        heads: `[n]`, int16, to write if there is a tree: a word's own index is the root, -1 padding.
        POSITIONS: a power of two, at most 64.

    Returns:
        1, or 0 if there is no tree.
    """
    row, column = tl.arange(0, POSITIONS), tl.arange(0, POSITIONS)[None, :]
    own = row[:, None] == column
    nothing = tl.full([POSITIONS, POSITIONS], float("-inf"), scores.dtype.element_ty)
    empty = tl.where(own, 0.0, nothing)
    none = tl.zeros([POSITIONS, POSITIONS], tl.int32)
    right_from, left_from, right_arc = empty, empty, nothing  # right(i, k), left(i, k), right_arc(i, k)
    left_after, right_to, left_arc = empty, nothing, nothing  # left(k + 1, j), right(k, j), left_arc(k, j)
    down_gap, up_gap = none, none  # 64 k + the gap of the arc from i to k, and of that from j to k
    right_split, left_split = none, none  # of right(i, k) and left(i, k)
    following = tl.broadcast_to(tl.minimum(row + 1, POSITIONS - 1)[:, None], [POSITIONS, POSITIONS])
    index = tl.broadcast_to(column, [POSITIONS, POSITIONS])
    right = tl.zeros([POSITIONS], scores.dtype.element_ty)
    down, up = arcs_of(scores, 1, length, n, POSITIONS)
    for width in range(1, length + 1):
        next_down, next_up = arcs_of(scores, width + 1, length, n, POSITIONS)  # on the way while the others are in use
        gaps = right_from + left_after
        if multiroot == 0:
            gaps = tl.where((row[:, None] > 0) | (column == 0), gaps, float("-inf"))
        # one reduction instead of three, for the sake of its barriers
        gap, gap_at, right, right_at, left, left_at = tl.reduce(
            (gaps, index, right_arc + right_to, down_gap, left_from + left_arc, up_gap), 1, _larger
        )
        new_down, new_up = gap + down, gap + up
        end = row + width
        down_at, up_at = 64 * end + gap_at, 64 * row + gap_at
        right_at, left_at = tl.where(new_down > right, down_at, right_at), tl.where(new_up > left, up_at, left_at)
        right, left = tl.maximum(new_down, right), tl.maximum(new_up, left)

        newest = column == end[:, None]
        right_from = tl.where(newest, right[:, None], right_from)
        left_from = tl.where(newest, left[:, None], left_from)
        right_arc = tl.where(newest, new_down[:, None], right_arc)
        down_gap = tl.where(newest, down_at[:, None], down_gap)
        right_split = tl.where(newest, right_at[:, None], right_split)
        left_split = tl.where(newest, left_at[:, None], left_split)
        left_after = tl.gather(tl.where(column + 1 == row[:, None], left[:, None], left_after), following, 0)
        right_to = tl.gather(tl.where(own, right[:, None], right_to), following, 0)
        left_arc = tl.gather(tl.where(own, new_up[:, None], left_arc), following, 0)
        up_gap = tl.gather(tl.where(own, up_at[:, None], up_gap), following, 0)
        down, up = next_down, next_up
    best = tl.max(tl.where(row == 0, right, float("-inf")), 0)
    exists = tl.where(best > float("-inf"), 1, 0)
    if exists > 0:
        _follow(right_split, left_split, length, n, heads, POSITIONS)
    return exists


@jit()
def arcs_of(scores, width, length, n, POSITIONS: tl.constexpr):
    """The scores of the arcs of all spans of a width: from the start to the end, and from the end to the start."""
    start = tl.arange(0, POSITIONS)
    word = start + width - 1
    real = word < length
    down = tl.load(scores + tl.where(start == 0, word, start - 1) * n + word, mask=real, other=float("-inf"))
    up = tl.load(scores + word * n + start - 1, mask=real & (start > 0), other=float("-inf"))
    return down, up


@jit()
def _larger(a, a_at, b, b_at, c, c_at, other_a, other_a_at, other_b, other_b_at, other_c, other_c_at):
    """The larger of each pair of values, with what belongs to it."""
    keep_a, keep_b, keep_c = a >= other_a, b >= other_b, c >= other_c
    a, a_at = tl.where(keep_a, a, other_a), tl.where(keep_a, a_at, other_a_at)
    b, b_at = tl.where(keep_b, b, other_b), tl.where(keep_b, b_at, other_b_at)
    c, c_at = tl.where(keep_c, c, other_c), tl.where(keep_c, c_at, other_c_at)
    return a, a_at, b, b_at, c, c_at


@jit()
def _follow(right_split, left_split, length, n, heads, POSITIONS: tl.constexpr):
    """Build the tree from the top: in a round every position that has one finds its outermost child on either side.

    A position knows where its right item ends and where its left item starts; it tells the child its own.
    """
    at, other = tl.arange(0, POSITIONS), tl.arange(0, POSITIONS)[None, :]
    above = at
    right, left = tl.where(at == 0, length, at), at
    going = 1
    while going > 0:
        down, up = right > at, left < at
        on_right = tl.sum(tl.where(other == right[:, None], right_split, 0), 1)
        on_left = tl.sum(tl.where(at[:, None] == left[None, :], left_split, 0), 0)
        gap, left_gap = on_right & 63, on_left & 63
        child, left_child = tl.where(down, on_right >> 6, -1), tl.where(up, on_left >> 6, -1)
        message, left_message = (64 * at + right) * 64 + gap + 1, (64 * at + left_gap) * 64 + left
        told = tl.where(child[None, :] == at[:, None], message[None, :], -1)
        told = tl.max(tl.where(left_child[None, :] == at[:, None], left_message[None, :], told), 1)
        above = tl.where(told >= 0, told >> 12, above)
        right = tl.where(told >= 0, (told >> 6) & 63, tl.where(down, gap, right))
        left = tl.where(told >= 0, told & 63, tl.where(up, left_gap + 1, left))
        going = tl.max(((right > at) | (left < at)).to(tl.int32), 0)
    head = tl.where(at > length, -1, tl.where(above == 0, at - 1, above - 1))
    tl.store(heads + at - 1, head.to(tl.int16), mask=(at > 0) & (at <= n))
