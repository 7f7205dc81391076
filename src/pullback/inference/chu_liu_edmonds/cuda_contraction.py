"""The maximum spanning arborescence of one sentence on a GPU: rounds of contractions, in Triton.

In a round every node takes its best incoming arc, and all cycles that this makes are contracted at once; most
sentences take a few rounds, none more than n - 1. A node is named by its first word. An arc into a contracted cycle
is worth what it adds to the arc of the cycle it replaces, so each word keeps the sum of what its arcs have been
reduced by, and the scores stay as they are. With a single root its arc is the last resort: only a node that no other
word can reach takes it.
"""

from __future__ import annotations

from pullback.inference._triton.support import jit, tl


@jit()
def best_heads(
    scores, length, n, multiroot, history, nodes, ROWS: tl.constexpr, COLUMNS: tl.constexpr, LEVELS: tl.constexpr
):  # fmt: skip
    """The heads of the tree of largest score.

    Args:
        scores: `[n, n]`, packed: head x modifier, the root on the diagonal; finite or -inf among the words.
        length: the number of words.
        n: the pitch of the scores.
        multiroot: whether several words may attach to the root; otherwise exactly one does.
        history: scratch, `[n, 3, n]`, int16: of each round each word's node, and where each node's arc starts and ends.
        nodes: scratch, `[4, n]`, float64.
        ROWS: heads, or nodes, looked at together.
        COLUMNS: a power of two, at least n.
        LEVELS: its logarithm.

    Returns:
        `[COLUMNS]` heads, a word's own index for the root, -1 for padding; and whether there is such a tree.
    """
    word = tl.arange(0, COLUMNS)
    real = word < length
    node = word
    reduced = tl.zeros([COLUMNS], tl.float64)
    count = 0
    feasible = 1
    going = length > 0
    while going:
        tl.store(history + count * 3 * n + word, node.to(tl.int16), mask=real)
        tl.debug_barrier()
        tl.store(nodes + 3 * n + word, tl.zeros([COLUMNS], tl.float64), mask=real)
        gain, source = _best_arcs_of_words(scores, history + count * 3 * n, node, reduced, length, n, ROWS, COLUMNS)
        root = tl.load(scores + word * n + word, mask=real, other=float("-inf")).to(tl.float64) - reduced
        _best_arcs_of_nodes(node, gain, root, length, n, multiroot, nodes, ROWS, COLUMNS)
        tl.debug_barrier()
        best = tl.load(nodes + word, mask=real, other=0.0)
        target = tl.load(nodes + n + word, mask=real, other=0.0).to(tl.int32)
        rooted = tl.load(nodes + 2 * n + word, mask=real, other=1.0) > 0.0
        start = tl.where(rooted, -1, tl.gather(source, target, 0))
        tl.store(history + (count * 3 + 1) * n + word, start.to(tl.int16), mask=real)
        tl.store(history + (count * 3 + 2) * n + word, target.to(tl.int16), mask=real)

        alive = real & (node == word)
        above = tl.where(alive & (start >= 0), tl.gather(node, tl.where(start >= 0, start, 0), 0), word)
        ahead, first = above, word
        for _ in range(LEVELS):
            first = tl.minimum(first, tl.gather(first, ahead, 0))
            ahead = tl.gather(ahead, ahead, 0)
        # whoever is still ahead after n steps is on a cycle, or hangs from the root
        tl.store(nodes + 3 * n + ahead, tl.full([COLUMNS], 1.0, tl.float64), mask=alive)
        tl.debug_barrier()
        reached = tl.load(nodes + 3 * n + word, mask=real, other=0.0) > 0.0
        cyclic = (alive & reached & (above != word)).to(tl.int32)
        feasible = tl.where(tl.max((alive & (best == float("-inf"))).to(tl.int32), 0) > 0, 0, feasible)
        count += 1
        going = (tl.max(cyclic, 0) > 0) & (feasible > 0) & (count < length)

        inside = tl.gather(cyclic, node, 0) > 0
        reduced += tl.where(inside, tl.gather(best, node, 0), 0.0)
        node = tl.where(inside, tl.gather(first, node, 0), node)
    tl.debug_barrier()
    heads, roots = _expand(history, count, length, n, COLUMNS)
    feasible = tl.where((multiroot == 0) & (roots > 1), 0, feasible)
    return heads, feasible


@jit()
def _best_arcs_of_words(scores, names, node, reduced, length, n, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """Of each word, the gain of the best arc from a word of another node, and where it comes from."""
    word = tl.arange(0, COLUMNS)
    best = tl.full([COLUMNS], float("-inf"), tl.float64)
    source = tl.zeros([COLUMNS], tl.int32)
    for start in range(0, length, ROWS):
        head = start + tl.arange(0, ROWS)
        name = tl.load(names + head, mask=head < length, other=0).to(tl.int32)
        real = (head < length)[:, None] & (word < length)[None, :] & (name[:, None] != node[None, :])
        score = tl.load(scores + head[:, None] * n + word[None, :], mask=real, other=float("-inf")).to(tl.float64)
        value, row = tl.max(score - reduced[None, :], 0, return_indices=True)
        better = value > best
        best, source = tl.where(better, value, best), tl.where(better, start + row, source)
    return best, source


@jit()
def _best_arcs_of_nodes(
    node, gain, root, length, n, multiroot, nodes, ROWS: tl.constexpr, COLUMNS: tl.constexpr
):  # fmt: skip
    """Write of each node the gain of its best arc, the word it enters, and whether it comes from the root."""
    word = tl.arange(0, COLUMNS)
    for start in range(0, length, ROWS):
        name = start + tl.arange(0, ROWS)
        member = (node[None, :] == name[:, None]) & (word < length)[None, :]
        best, target = tl.max(tl.where(member, gain[None, :], float("-inf")), 1, return_indices=True)
        best_root, root_target = tl.max(tl.where(member, root[None, :], float("-inf")), 1, return_indices=True)
        rooted = (best == float("-inf")) | ((multiroot != 0) & (best_root > best))
        tl.store(nodes + name, tl.where(rooted, best_root, best), mask=name < length)
        tl.store(nodes + n + name, tl.where(rooted, root_target, target).to(tl.float64), mask=name < length)
        tl.store(nodes + 2 * n + name, rooted.to(tl.float64), mask=name < length)


@jit()
def _expand(history, count, length, n, COLUMNS: tl.constexpr):
    """Give the arc into each cycle to the member it enters, the last cycles first; the other members keep theirs."""
    word = tl.arange(0, COLUMNS)
    real = word < length
    last = history + (count - 1) * 3 * n
    inside = real & (count > 0)
    node = tl.load(last + word, mask=inside, other=0).to(tl.int32)
    start = tl.load(last + n + word, mask=inside, other=0).to(tl.int32)
    target = tl.load(last + 2 * n + word, mask=inside, other=0).to(tl.int32)
    for done in range(1, count):
        earlier = history + (count - 1 - done) * 3 * n
        entering, entered = tl.gather(start, node, 0), tl.gather(target, node, 0)
        node = tl.load(earlier + word, mask=real, other=0).to(tl.int32)
        own = tl.gather(node, entered, 0) == word
        start = tl.where(own, entering, tl.load(earlier + n + word, mask=real, other=0).to(tl.int32))
        target = tl.where(own, entered, tl.load(earlier + 2 * n + word, mask=real, other=0).to(tl.int32))
    roots = tl.sum((real & (start < 0)).to(tl.int32), 0)
    return tl.where(real, tl.where(start < 0, word, start), -1), roots
