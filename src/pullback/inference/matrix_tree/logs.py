"""One sentence in logs: for scores so far apart that their weights leave the range of float64. README.md has the maths.

Marginals and their derivative along a direction, together. A weight is kept as its log and the slope of that log; an
adjoint as the marginal probability of its arc in the graph of the moment when one of the arc's words is eliminated.
These stay bounded where weights and adjoints would not. Rows are heads, the root after the last word.
"""

from __future__ import annotations

import numpy as np

from pullback.inference.checks import INFEASIBLE, OK
from pullback.inference.compile import inner


@inner
def solve(scores, direction, length, multiroot, mu, product):
    """The marginals `mu`, their derivative along the direction, `product`, log Z and the entropy.

    Args:
        scores: `[n, n]`, packed, finite or -inf among the words.
        direction: `[n, n]`.
        length: the number of words, at least 1.
        multiroot: whether the root may have several children.
        mu: `[n, n]` to write, among the words.
        product: `[n, n]` to write, among the words.

    Returns:
        status, log Z, entropy.
    """
    words = np.arange(length)
    logs, slopes, log_z = _read(scores, direction, multiroot, words)
    first_logs, first_slopes = logs.copy(), slopes.copy()
    sums, means, stuck = _eliminate(logs, slopes, multiroot)
    if stuck > 0 and not multiroot:
        # none of the words left leads to this one: a single root has to be above it, so it must be the last
        words[0], words[stuck] = stuck, 0
        logs, slopes, log_z = _read(scores, direction, multiroot, words)
        first_logs, first_slopes = logs.copy(), slopes.copy()
        sums, means, stuck = _eliminate(logs, slopes, multiroot)
    if stuck >= 0:
        return INFEASIBLE, -np.inf, 0.0
    marginals, derivatives = _differentiate(logs, slopes, multiroot, sums, means)
    entropy = sums.sum()
    for m in range(length):
        for h in range(length + 1):
            if h == m:
                continue
            p, d = 0.0, 0.0
            if first_logs[h, m] > -np.inf:
                part = np.exp(first_logs[h, m] - logs[h, m])
                p = min(max(marginals[h, m] * part, 0.0), 1.0)
                d = derivatives[h, m] * part + p * (first_slopes[h, m] - slopes[h, m])
                entropy -= p * first_logs[h, m]
            head = words[m] if h == length else words[h]
            mu[head, words[m]], product[head, words[m]] = p, d
    return OK, log_z + sums.sum(), max(entropy, 0.0)


@inner
def _read(scores, direction, multiroot, words):
    """Logs of weights and their slopes, shifted as in scaling.py, and the sum of the shifts."""
    length = len(words)
    logs, slopes = np.full((length + 1, length), -np.inf), np.zeros((length + 1, length))
    total = 0.0
    for m in range(length):
        best, level = -np.inf, 0.0
        for h in range(length):
            row = length if h == m else h
            logs[row, m], slopes[row, m] = scores[words[h], words[m]], direction[words[h], words[m]]
            if logs[row, m] > best and (h != m or multiroot):
                best, level = logs[row, m], slopes[row, m]
        if best > -np.inf:
            logs[:, m] -= best
            slopes[:, m] -= level
            total += best
    best, level = -np.inf, 0.0
    for m in range(length):
        if not multiroot and logs[length, m] > best:
            best, level = logs[length, m], slopes[length, m]
    if best > -np.inf:
        logs[length] -= best
        slopes[length] -= level
        total += best
    return logs, slopes, total


@inner
def _eliminate(logs, slopes, multiroot):
    """Eliminate the words from the last to the first, in place.

    Returns:
        The log of each word's sum S_k, its slope, and -1; or instead of -1 the first word whose sum is zero.
    """
    length = logs.shape[1]
    sums, means = np.zeros(length), np.zeros(length)
    for k in range(length - 1, -1, -1):
        with_root = multiroot or k == 0
        most = logs[length, k] if with_root else -np.inf
        for h in range(k):
            most = max(most, logs[h, k])
        if most == -np.inf:
            return sums, means, k
        total = np.exp(logs[length, k] - most) if with_root else 0.0
        tilted = total * slopes[length, k]
        for h in range(k):
            p = np.exp(logs[h, k] - most)
            total += p
            tilted += p * slopes[h, k]
        sums[k], means[k] = most + np.log(total), tilted / total
        for h in range(k):
            _add_paths(logs, slopes, h, k, sums[k], means[k])
        _add_paths(logs, slopes, length, k, sums[k], means[k])
    return sums, means, -1


@inner
def _add_paths(logs, slopes, h, k, total, mean):
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


@inner
def _differentiate(logs, slopes, multiroot, sums, means):
    """The marginals of arcs when one of their words is eliminated, and their derivatives, in reverse order."""
    length = logs.shape[1]
    marginals, derivatives = np.zeros((length + 1, length)), np.zeros((length + 1, length))
    for k in range(length):
        for h in range(k):
            _collect(logs, slopes, h, k, sums[k], means[k], marginals, derivatives)
        _collect(logs, slopes, length, k, sums[k], means[k], marginals, derivatives)
        rest, falls = 1.0 - marginals[k, :k].sum(), -derivatives[k, :k].sum()
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
