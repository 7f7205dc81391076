"""Exact samples of all trees on a GPU: elimination, then its reverse with a tree instead of probabilities, in Triton.

A tree of the graph without word k becomes one of the graph with it. Each of its arcs h -> m was in truth the path
h -> k -> m with probability w_hk w_km / S_k over the arc's weight; draw which ones, and let k be the head of their
words C. Then draw the head of k in proportion to w_hk among the words that are not below one in C, and the root.
An arc's weight is the sum of the paths it may stand for and of what it was at first, so one number drawn when the arc
enters the tree decides which of them it is.

Why this is exact: given C and the other arcs, let a_0 be the sum of w_hk over the root and the words not below C, and
a_j that over the words below the j-th of C. The heads from which the c paths may have started make a tree of these
parts, so by Cayley's formula the products of their weights add up to a_0 (a_0 + ... + a_c)^(c - 1) = a_0 S_k^(c - 1).
Each path has a factor 1 / S_k, and Z of the graph with k has one more S_k: what is left is a_0, the weight of the heads
that k can have. With a single root S_k is over words, and the root is the head of k exactly if its arc was a path.
"""

from __future__ import annotations

from pullback.inference._triton.support import jit, tl
from pullback.inference.eisner.cuda_layout import beyond, length_of
from pullback.inference.matrix_tree.cuda_elimination import prepare


@jit(do_not_specialize=["batch", "n", "multiroot"])
def sample(
    scores, lengths, seeds, z, charts, sums, batch, n, multiroot,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, LEVELS: tl.constexpr,
):  # fmt: skip
    """Write a random tree for each of `[B, n, n]` scores as a 0/1 matrix; NaN without a tree.

    Args:
        scores: `[B, n, n]`.
        lengths: `[B]`.
        seeds: `[B]`, int64.
        z: `[B, n, n]`, to write.
        charts: scratch, a chart a program.
        sums: scratch, `[2, n]` a program.
        batch: B.
        n: the size of the scores.
        multiroot: whether the root may have several children.
        ROWS: heads looked at together.
        COLUMNS: a power of two, at least n.
        LEVELS: its logarithm.
    """
    program = tl.program_id(0).to(tl.int64)
    charts += program * n * n
    sums += program * 2 * n
    word = tl.arange(0, COLUMNS)
    for sentence in range(tl.program_id(0), batch, tl.num_programs(0)):
        matrix = tl.cast(sentence, tl.int64) * n * n
        length = length_of(lengths, sentence, n)
        log_z, last, _, _, _, _, garbled, _ = prepare(
            scores + matrix, scores + matrix, length, n, multiroot, charts, charts, sums, 0, ROWS, COLUMNS
        )  # fmt: skip
        seed = tl.load(seeds + sentence).to(tl.uint64, bitcast=True)
        sound = (log_z > float("-inf")) & (garbled == 0) & (beyond(lengths, sentence, n) == 0)
        exists = tl.where(sound, 1, 0)
        heads = tl.where((word == last) & (exists > 0), last, -1)
        drawn = uniform(seed, word)
        spent = tl.zeros([COLUMNS], tl.float64)
        if exists > 0:
            for k in range(0, length):
                if k != last:
                    heads, drawn, spent = _insert(
                        k, last, heads, drawn, spent, n, multiroot, charts, sums, seed, COLUMNS, LEVELS
                    )  # fmt: skip
        for start in range(0, n, ROWS):
            head = (start + tl.arange(0, ROWS))[:, None]
            one = tl.where(exists > 0, (heads[None, :] == head).to(tl.float32), float("nan")).to(z.dtype.element_ty)
            tl.store(z + matrix + head * n + word[None, :], one, mask=(head < n) & (word < n)[None, :])
        tl.debug_barrier()


@jit()
def _insert(
    k, last, heads, drawn, spent, n, multiroot, logs, sums, seed, COLUMNS: tl.constexpr, LEVELS: tl.constexpr
):  # fmt: skip
    """Put word k into a tree.

    Args:
        k: the word.
        last: with a single root, the word that was eliminated last.
        heads: `[COLUMNS]`, of the words in the tree.
        drawn: of each word's arc, a uniform number.
        spent: of each word's arc, the probability of the paths that have been looked at.
        n: the pitch of the chart.
        multiroot: whether the root may have several children.
        logs: the chart that `eliminate` left.
        sums: from `eliminate`.
        seed: of the stream of random numbers, of which 2 n + 2 belong to each word.
        COLUMNS: a power of two, at least n.
        LEVELS: its logarithm.

    Returns:
        The new heads, drawn and spent.
    """
    word = tl.arange(0, COLUMNS)
    there = (word < k) | (word == last)
    rooted = heads == word
    arc = tl.load(logs + heads * n + word, mask=there, other=0.0)
    share = tl.load(logs + tl.where(rooted, k, heads) * n + k, mask=there, other=0.0) - tl.load(sums + k)
    path = share + tl.load(logs + k * n + word, mask=there, other=float("-inf"))
    spent += tl.where(there, tl.exp(path - arc), 0.0)
    # the probabilities add up to 1 only up to rounding, and the last one must be taken
    through = there & (spent > drawn * (1.0 - 1e-8))

    below = through.to(tl.int32)
    above = tl.where(there, heads, word)
    for _ in range(LEVELS):
        below = below | tl.gather(below, above, 0)
        above = tl.gather(above, above, 0)
    root_open = (multiroot != 0) | (tl.max((through & rooted).to(tl.int32), 0) > 0)
    free = (there & (below == 0)) | ((word == k) & root_open)
    into = tl.load(logs + word * n + k, mask=free, other=float("-inf"))
    weights = tl.where(free, tl.exp(into - tl.max(into, 0)), 0.0)
    total = tl.cumsum(weights, 0)
    numbers = uniform(seed, (k + 1) * (2 * n + 2) + word)
    target = uniform(seed, (k + 1) * (2 * n + 2) + n + 1) * tl.max(total, 0)
    possible = weights > 0.0
    chosen = tl.min(tl.where((total > target) & possible, word, COLUMNS), 0)
    chosen = tl.where(chosen < COLUMNS, chosen, tl.max(tl.where(possible, word, 0), 0))
    fresh = through | (word == k)
    heads = tl.where(through, k, tl.where(word == k, chosen, heads))
    return heads, tl.where(fresh, numbers, drawn), tl.where(fresh, 0.0, spent)


@jit()
def uniform(seed, drawn):
    """Numbers in [0, 1) of random.py's stream of a seed, after so many were drawn."""
    x = seed + (drawn + 1).to(tl.uint64) * 0x9E3779B97F4A7C15
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB
    x = x ^ (x >> 31)
    return (x >> 11).to(tl.float64) * 1.1102230246251565e-16
