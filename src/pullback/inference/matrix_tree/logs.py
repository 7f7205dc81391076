"""One sentence in logs: for scores so far apart that their weights leave the range of float64. README.md has the maths.

Marginals and their derivative along a direction, together. A weight is kept as its log and the slope of that log; an
adjoint as the marginal probability of its arc in the graph of the moment when one of the arc's words is eliminated.
These stay bounded where weights and adjoints would not. Rows are heads, the root after the last word.
"""

from __future__ import annotations

import numpy as np

from pullback.inference.checks import INFEASIBLE, OK
from pullback.inference.compile import inner, kernel


@kernel
def solve(worker, workers, sentences, scores, lengths, direction, multiroot, mu, product, log_z, entropy, status):
    """Marginals, their derivative along the direction, log Z and entropy of some sentences of a batch.

    Args:
        worker: this one's number; it does the sentences worker, worker + workers, ...
        workers: how many there are.
        sentences: numbers of the sentences, each of at least one word.
        scores: `[B, n, n]`, finite or -inf among the words.
        lengths: `[B]`.
        direction: `[B, n, n]`, or empty for zero.
        multiroot: whether the root may have several children.
        mu: `[B, n, n]` to write, unless empty.
        product: `[B, n, n]` to write, unless empty.
        log_z: `[B]` to write, unless empty.
        entropy: `[B]` to write, unless empty.
        status: `[B]` to write.
    """
    n = scores.shape[-1]
    nothing, some_mu, some_product = np.zeros((n, n)), np.empty((n, n)), np.empty((n, n))
    for i in range(worker, len(sentences), workers):
        b = sentences[i]
        status[b], total = _solve(
            scores[b],
            direction[b] if direction.size > 0 else nothing,
            lengths[b],
            multiroot,
            mu[b] if mu.size > 0 else some_mu,
            product[b] if product.size > 0 else some_product,
        )
        if log_z.size > 0:
            log_z[b] = total
        if entropy.size > 0 and status[b] == OK:
            entropy[b] = _entropy(scores[b], nothing, lengths[b], multiroot)


@inner
def _solve(scores, direction, length, multiroot, mu, product):
    words = np.arange(length)
    logs, slopes = np.empty((length + 1, length)), np.empty((length + 1, length))
    sums, means = np.empty(length), np.empty(length)
    shifts, feasible = eliminate(scores, direction, 0.0, multiroot, words, logs, slopes, sums, means)
    if not feasible:
        return INFEASIBLE, -np.inf
    marginals, derivatives = _differentiate(logs, slopes, multiroot, sums, means)
    before, slopes_before = np.empty_like(logs), np.empty_like(slopes)
    read(scores, direction, multiroot, words, before, slopes_before)
    for m in range(length):
        for h in range(length + 1):
            if h == m:
                continue
            p, d = 0.0, 0.0
            if before[h, m] > -np.inf:
                part = np.exp(before[h, m] - logs[h, m])
                p = min(max(marginals[h, m] * part, 0.0), 1.0)
                d = derivatives[h, m] * part + p * (slopes_before[h, m] - slopes[h, m])
            head = words[m] if h == length else words[h]
            mu[head, words[m]], product[head, words[m]] = p, d
    return OK, shifts + _sum(sums)


@inner
def _entropy(scores, nothing, length, multiroot):
    """The sum of what the log S_k exceed their slopes along the scores by: small where both are large."""
    logs, excess = np.empty((length + 1, length)), np.empty((length + 1, length))
    sums, means = np.empty(length), np.empty(length)
    eliminate(scores, nothing, 1.0, multiroot, np.arange(length), logs, excess, sums, means)
    return max(_sum(means), 0.0)


@inner
def _sum(line):
    total = 0.0
    for x in line:
        total += x
    return total


@inner
def eliminate(scores, direction, excess, multiroot, words, logs, slopes, sums, means):
    """Fill in the logs of weights and their slopes, and eliminate the words from the last to the first.

    Args:
        scores: `[n, n]`, packed, finite or -inf among the words.
        direction: `[n, n]`.
        excess: 0; or 1, with a direction of zero, to get instead of slopes the logs less their slopes along the scores.
            A sum's log exceeds the mean of its terms' logs by the entropy of their shares.
        multiroot: whether the root may have several children.
        words: 0, 1, ..., to write the order of the words in what follows.
        logs: `[length + 1, length]` to write: what a word's row and column held when its turn came.
        slopes: the same for the derivatives of the logs.
        sums: `[length]` to write: log S_k of each word.
        means: `[length]` to write: its slope.

    Returns:
        The sum of the shifts of scaling.py, and whether there is a tree.
    """
    shifts = read(scores, direction, multiroot, words, logs, slopes)
    stuck = _eliminate(logs, slopes, excess, multiroot, sums, means)
    if stuck > 0 and not multiroot:
        # none of the words left leads to this one: a single root has to be above it, so it must be the last
        words[0], words[stuck] = stuck, 0
        shifts = read(scores, direction, multiroot, words, logs, slopes)
        stuck = _eliminate(logs, slopes, excess, multiroot, sums, means)
    return shifts, stuck < 0


@inner
def read(scores, direction, multiroot, words, logs, slopes):
    """Fill in the logs of weights and their slopes, shifted as in scaling.py; returns the sum of the shifts."""
    length = len(words)
    total = 0.0
    for m in range(length):
        best, level = -np.inf, 0.0
        for h in range(length):
            row = length if h == m else h
            logs[row, m], slopes[row, m] = scores[words[h], words[m]], direction[words[h], words[m]]
            if logs[row, m] > best and (h != m or multiroot):
                best, level = logs[row, m], slopes[row, m]
        if best > -np.inf:
            total += best
            for h in range(length + 1):
                if h != m:
                    logs[h, m] -= best
                    slopes[h, m] -= level
    best, level = -np.inf, 0.0
    for m in range(length):
        if not multiroot and logs[length, m] > best:
            best, level = logs[length, m], slopes[length, m]
    if best > -np.inf:
        total += best
        for m in range(length):
            logs[length, m] -= best
            slopes[length, m] -= level
    return total


@inner
def _eliminate(logs, slopes, excess, multiroot, sums, means):
    """Eliminate in place; returns the first word with S_k = 0, or -1."""
    length = logs.shape[1]
    for k in range(length - 1, -1, -1):
        with_root = multiroot or k == 0
        most = logs[length, k] if with_root else -np.inf
        for h in range(k):
            most = max(most, logs[h, k])
        if most == -np.inf:
            return k
        total = np.exp(logs[length, k] - most) if with_root else 0.0
        for h in range(k):
            total += np.exp(logs[h, k] - most)
        sums[k], means[k] = most + np.log(total), 0.0
        for row in range(k + with_root):
            h = length if row == k else row
            share = logs[h, k] - sums[k]
            if share > -np.inf:
                means[k] += np.exp(share) * (slopes[h, k] - excess * share)
        for h in range(k):
            _add_paths(logs, slopes, excess, h, k, sums[k], means[k])
        _add_paths(logs, slopes, excess, length, k, sums[k], means[k])
    return -1


@inner
def _add_paths(logs, slopes, excess, h, k, total, mean):
    share, tilt = logs[h, k] - total, slopes[h, k] - mean
    if share == -np.inf:
        return
    for m in range(k):
        if m == h or logs[k, m] == -np.inf:
            continue
        path, arc = share + logs[k, m], logs[h, m]
        logs[h, m] = max(path, arc) + np.log1p(np.exp(-abs(path - arc)))
        part = np.exp(path - logs[h, m])
        slopes[h, m] += part * (tilt + slopes[k, m] - slopes[h, m])
        if excess > 0.0 and 0.0 < part < 1.0:
            slopes[h, m] -= part * (path - logs[h, m]) + (1.0 - part) * (arc - logs[h, m])


@inner
def _differentiate(logs, slopes, multiroot, sums, means):
    """The marginals of arcs when one of their words is eliminated, and their derivatives, in reverse order."""
    length = logs.shape[1]
    marginals, derivatives = np.zeros((length + 1, length)), np.zeros((length + 1, length))
    for k in range(length):
        for h in range(k):
            _collect(logs, slopes, h, k, sums[k], means[k], marginals, derivatives)
        _collect(logs, slopes, length, k, sums[k], means[k], marginals, derivatives)
        rest, falls = 1.0, 0.0
        for m in range(k):
            rest -= marginals[k, m]
            falls -= derivatives[k, m]
        for row in range(k + 1):
            h = length if row == k else row
            if h == length and not (multiroot or k == 0):
                continue
            p = np.exp(logs[h, k] - sums[k])
            marginals[h, k] += p * rest
            derivatives[h, k] += p * (falls + rest * (slopes[h, k] - means[k]))
    return marginals, derivatives


@inner
def _collect(logs, slopes, h, k, total, mean, marginals, derivatives):
    share, tilt = logs[h, k] - total, slopes[h, k] - mean
    if share == -np.inf:
        return
    for m in range(k):
        if m == h or logs[k, m] == -np.inf:
            continue
        part = np.exp(share + logs[k, m] - logs[h, m])
        p = marginals[h, m] * part
        d = derivatives[h, m] * part + p * (tilt + slopes[k, m] - slopes[h, m])
        marginals[k, m] += p
        derivatives[k, m] += d
        marginals[h, k] += p
        derivatives[h, k] += d
