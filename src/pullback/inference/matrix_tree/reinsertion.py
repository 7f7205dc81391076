"""Exact samples of trees in O(n^3) steps whatever the scores: eliminate the words, and put them back in at random.

README.md has the proof. Words come back in the reverse order of their elimination. An arc of the tree so far stands
for itself or for a path through one of the words that are still out; which, is drawn together with the arc. When word k
comes back it becomes the head of those whose arc stands for a path through k, and its own head is drawn in proportion
to w_hk among the words that are not below these, and the root.
"""

from __future__ import annotations

import numpy as np

from pullback.inference.checks import INFEASIBLE, OK
from pullback.inference.compile import inner, kernel
from pullback.inference.matrix_tree.log_elimination import at, eliminate, read
from pullback.inference.random_kernels import uniform
from pullback.inference.wide import gap, minus, plus

_DIRECT = -1


@kernel
def sample(worker, workers, sentences, scores, lengths, children, seeds, drawn, z, status):
    """Draw a tree for some sentences of a batch.

    Args:
        worker: this one's number; it does the sentences worker, worker + workers, ...
        workers: how many there are.
        sentences: numbers of the sentences, each of at least one word.
        scores: `[B, n, n]`, finite or -inf among the words.
        lengths: `[B]`.
        children: `[B]`, the only word attached to the root, or -1 if any may be.
        seeds: `[B]`, of a stream of random numbers for each sentence.
        drawn: `[B]`, how many numbers of the streams are used up.
        z: `[B, n, n]` zeros, to write.
        status: `[B]` to write.
    """
    n = scores.shape[-1]
    nothing, arcs = np.zeros((n, n)), np.empty((n, n))
    for i in range(worker, len(sentences), workers):
        b = sentences[i]
        length = lengths[b]
        words = np.arange(length)
        shape = (length + 1, length, 3)
        before, logs, slopes = np.empty(shape), np.empty(shape), np.empty(shape[:2])
        sums, means = np.empty((length, 3)), np.empty(length)
        _restrict(scores[b], length, children[b], arcs)
        cutoff, _, feasible = eliminate(arcs, nothing, 0.0, True, words, logs, slopes, sums, means)
        read(arcs, nothing, True, words, cutoff, before, slopes)
        status[b] = OK if feasible else INFEASIBLE
        if feasible:
            heads = _reinsert(before, logs, sums, seeds[b], drawn[b])
            for m in range(length):
                z[b, m if heads[m] == length else heads[m], m] = 1.0


@inner
def _restrict(scores, length, child, arcs):
    """Forbid what a given child of the root forbids: its other heads, and other children."""
    for h in range(length):
        for m in range(length):
            allowed = child < 0 or (h == m) == (m == child)
            arcs[h, m] = scores[h, m] if allowed else -np.inf


@inner
def _reinsert(before, logs, sums, seed, drawn):
    """The heads of a tree, the root as the number of words, from the graphs before and after elimination."""
    length = root = logs.shape[1]
    heads, via = np.empty(length, np.int64), np.empty(length, np.int64)
    below, weights = np.empty(length, np.bool_), np.empty(length + 1)
    for k in range(length):
        whole = (sums[k, 0], sums[k, 1], sums[k, 2])
        for m in range(k):
            below[m] = _is_below(m, k, heads, via, root)
        for m in range(k):
            if via[m] == k:
                heads[m] = k
                via[m], drawn = _draw_via(k, m, before, logs, sums, seed, drawn, weights)
        for h in range(k):
            weights[h] = -np.inf if below[h] else gap(at(logs, h, k), whole)
        weights[k] = gap(at(logs, root, k), whole)
        chosen, drawn = _draw(weights, k + 1, seed, drawn)
        heads[k] = root if chosen == k else chosen
        via[k], drawn = _draw_via(heads[k], k, before, logs, sums, seed, drawn, weights)
    return heads


@inner
def _is_below(m, k, heads, via, root):
    while via[m] != k:
        m = heads[m]
        if m == root:
            return False
    return True


@inner
def _draw_via(h, m, before, logs, sums, seed, drawn, weights):
    """Draw the word through which the arc h -> m is a path, or _DIRECT if it is none."""
    length = logs.shape[1]
    first = m + 1 if h == length else max(h, m) + 1
    for k in range(first, length):
        share = minus(at(logs, h, k), (sums[k, 0], sums[k, 1], sums[k, 2]))
        weights[k - first] = gap(plus(share, at(logs, k, m)), at(logs, h, m))
    weights[length - first] = gap(at(before, h, m), at(logs, h, m))
    chosen, drawn = _draw(weights, length - first + 1, seed, drawn)
    return _DIRECT if chosen == length - first else first + chosen, drawn


@inner
def _draw(weights, count, seed, drawn):
    """Draw one of `count` in proportion to weights given as logs."""
    most = -np.inf
    for i in range(count):
        most = max(most, weights[i])
    total = 0.0
    for i in range(count):
        weights[i] = np.exp(weights[i] - most)
        total += weights[i]
    u, drawn = uniform(seed, drawn)
    cumulative, chosen = 0.0, 0
    for i in range(count):
        if weights[i] > 0.0:
            chosen = i
            cumulative += weights[i]
            if cumulative > u * total:
                break
    return chosen, drawn
