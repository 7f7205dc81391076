"""An exact sample of one sentence's trees in O(n^3) steps whatever the scores: word after word, given those before.

The head of word m is h with probability proportional to w_hm times the chance that a walk from h, from each word
to one of its heads, comes to the root before it comes to m. Words that have their heads walk to them, the others walk
at random. Eliminating every word but m gives these chances. Words that stand together share most of that work: the
range of all words is halved again and again, and the other half is eliminated once for all words of a half.
"""

from __future__ import annotations

import numpy as np

from pullback.inference.checks import INFEASIBLE, OK
from pullback.inference.compile import inner
from pullback.inference.random_kernels import uniform


@inner
def sample(scores, length, child, seed, drawn, heads):
    """Draw the heads of a tree.

    Args:
        scores: `[n, n]`, packed, finite or -inf among the words.
        length: the number of words, at least 1.
        child: the only word attached to the root, or -1 if any words may be.
        seed: of the sentence's stream of random numbers.
        drawn: how many numbers of the stream are used up.
        heads: `[n]` to write, for the words: a word's own index is the root.

    Returns:
        OK or INFEASIBLE.
    """
    depth = 2
    while (1 << (depth - 2)) < length:
        depth += 1
    graphs = np.empty((depth, length + 1, length))  # logs of weights; the root is the last row
    lows, highs, counts = np.empty(depth, np.int64), np.empty(depth, np.int64), np.empty(depth, np.int64)
    gone, shares = np.empty(length, np.int64), np.empty((length, length + 1))  # eliminated words, and where they walk
    arcs = _arcs(scores, length, child)
    graphs[0] = arcs
    lows[0], highs[0], counts[0] = 0, length, 0
    level = 0
    for m in range(length):
        while highs[level] <= m:
            level -= 1
        while highs[level] - lows[level] > 1:
            if not _halve(m, level, graphs, lows, highs, counts, gone, shares):
                return INFEASIBLE
            level += 1
        u, drawn = uniform(seed, drawn)
        head = _draw_head(arcs[:, m], m, gone[: counts[level]], shares, u)
        if head < 0:
            return INFEASIBLE
        heads[m] = m if head == length else head
        _fix(m, head, level, graphs, lows, highs, counts, gone, shares)
    return OK


@inner
def _arcs(scores, length, child):
    arcs = np.full((length + 1, length), -np.inf)
    for m in range(length):
        if child < 0 or m == child:
            arcs[length, m] = scores[m, m]
        for h in range(length):
            if h != m and m != child:
                arcs[h, m] = scores[h, m]
    return arcs


@inner
def _halve(m, level, graphs, lows, highs, counts, gone, shares):
    """Make the next level's graph: that of the half with word m, the words of the other half eliminated."""
    low, high, count = lows[level], highs[level], counts[level]
    middle = (low + high) // 2
    graph = graphs[level + 1]
    graph[:] = graphs[level]
    for i in range(high - middle if m < middle else middle - low):
        k = high - 1 - i if m < middle else low + i
        left, right = (low, k) if m < middle else (k + 1, high)
        if not _eliminate(graph, k, left, right, shares[count]):
            return False
        gone[count] = k
        count += 1
    lows[level + 1], highs[level + 1] = (low, middle) if m < middle else (middle, high)
    counts[level + 1] = count
    return True


@inner
def _eliminate(graph, k, left, right, share):
    """Let the words left..right-1 and the root do without word k; `share` gets the logs of where it walks."""
    root = graph.shape[1]
    share[:] = -np.inf
    share[left:right] = graph[left:right, k]
    share[root] = graph[root, k]
    total = _log_sum(share)
    if total == -np.inf:
        return False
    share -= total
    for row in range(left, right + 1):
        h = root if row == right else row
        if share[h] == -np.inf:
            continue
        for m in range(left, right):
            if m != h:
                graph[h, m] = _log_add(graph[h, m], share[h] + graph[k, m])
    return True


@inner
def _draw_head(arcs, m, gone, shares, u):
    """Draw a head for word m, the only one not eliminated; -1 if it has none."""
    length = len(arcs) - 1
    arrives = np.full(length + 1, -np.inf)  # log of the chance that a walk from here comes to the root before m
    arrives[length] = 0.0
    for i in range(len(gone) - 1, -1, -1):
        arrives[gone[i]] = _log_sum(shares[i] + arrives)
    weights = arcs + arrives
    total = _log_sum(weights)
    if total == -np.inf:
        return -1
    cumulative, head = 0.0, -1
    for h in range(length + 1):
        p = np.exp(weights[h] - total)
        if p > 0.0:
            cumulative += p
            head = h
            if cumulative > u:
                break
    return head


@inner
def _fix(m, head, level, graphs, lows, highs, counts, gone, shares):
    """Make `head` the only head of word m in every graph: where it is eliminated, the words it walks to."""
    root = graphs.shape[2]
    reaches = np.full(root + 1, -np.inf)
    reaches[head] = 0.0
    done = 0
    for at in range(level + 1):
        for i in range(done, counts[at]):
            k = gone[i]
            if reaches[k] > -np.inf:
                for h in range(root + 1):
                    reaches[h] = _log_add(reaches[h], reaches[k] + shares[i, h])
                reaches[k] = -np.inf
        done = counts[at]
        graphs[at, lows[at] : highs[at], m] = reaches[lows[at] : highs[at]]
        graphs[at, root, m] = reaches[root]


@inner
def _log_add(a, b):
    if b == -np.inf:
        return a
    return max(a, b) + np.log1p(np.exp(-abs(a - b)))


@inner
def _log_sum(x):
    most = x.max()
    return most if most == -np.inf else most + np.log(np.exp(x - most).sum())
