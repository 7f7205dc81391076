"""One sentence in logs: for scores so far apart that their weights leave the range of float64. README.md has the maths.

Marginals and their derivative along a direction, together; or marginals, entropy and its gradient. A weight is kept as its
log, a wide number (wide.py), and a tangent of that log. An adjoint is kept as the marginal probability of its arc in the
graph of the moment when one of the arc's words is eliminated. These stay bounded where weights and adjoints would not.
Rows are heads, the root after the last word.

The tangent is the derivative of the log along the direction; or, with `entropic` = 1, the entropy of the paths that the weight
sums over: what the log exceeds its derivative along the scores by. Scores themselves never enter these, so that their size
does not matter.
"""

from __future__ import annotations

import numpy as np

from pullback.inference._numba.compile import inner, kernel
from pullback.inference.front.checks import INFEASIBLE, OK
from pullback.inference.matrix_tree.log_elimination import at, eliminate, read
from pullback.inference.matrix_tree.wide import gap, narrow, plus


@kernel
def solve(worker, workers, sentences, scores, lengths, direction, entropic, multiroot, mu, product, totals, status):
    """Marginals, their derivative along the direction, log Z and entropy of some sentences, each of at least one word.

    `scores` are `[B, n, n]`, finite or -inf among the words, `direction` likewise, or empty for zero. With `entropic` = 1.0
    the `product` is the gradient of the entropy. `mu` and `product` are not written if they are empty; `totals` `[B, 2]`
    get log Z and, if `entropic`, the entropy.
    """
    n = scores.shape[-1]
    nothing, some_mu, some_product = np.zeros((n, n)), np.empty((n, n)), np.empty((n, n))
    for i in range(worker, len(sentences), workers):
        b = sentences[i]
        status[b], total, nats = _solve(
            scores[b],
            direction[b] if direction.size > 0 else nothing,
            entropic,
            lengths[b],
            multiroot,
            mu[b] if mu.size > 0 else some_mu,
            product[b] if product.size > 0 else some_product,
        )
        totals[b, 0], totals[b, 1] = total, max(nats, 0.0)


@inner
def _solve(scores, direction, entropic, length, multiroot, mu, product):
    words = np.arange(length)
    logs, tangents = np.empty((length + 1, length, 3)), np.empty((length + 1, length))
    sums, means = np.empty((length, 3)), np.empty(length)
    cutoff, shifts, feasible = eliminate(
        scores, direction, entropic, multiroot, words, logs, tangents, sums, means
    )  # fmt: skip
    if not feasible:
        return INFEASIBLE, -np.inf, 0.0
    marginals, derivatives = _differentiate(logs, tangents, entropic, multiroot, sums, means)
    before, tangents_before = np.empty_like(logs), np.empty_like(tangents)
    read(scores, direction, multiroot, words, cutoff, before, tangents_before)
    for m in range(length):
        for h in range(length + 1):
            if h == m:
                continue
            p, d = 0.0, 0.0
            if before[h, m, 0] > -np.inf:
                share = gap(at(before, h, m), at(logs, h, m))
                part = np.exp(share)
                p = min(max(marginals[h, m] * part, 0.0), 1.0)
                change = tangents_before[h, m] - tangents[h, m] - entropic * share
                d = derivatives[h, m] * part + (p * change if p > 0.0 else 0.0)
            head = words[m] if h == length else words[h]
            mu[head, words[m]], product[head, words[m]] = p, d
    total, nats = shifts, 0.0
    for k in range(length):
        total = plus(total, (sums[k, 0], sums[k, 1], sums[k, 2]))
        nats += means[k]
    return OK, narrow(total), nats


@inner
def _differentiate(logs, tangents, entropic, multiroot, sums, means):
    """The marginals of arcs when one of their words is eliminated, and their derivatives, in reverse order."""
    length = logs.shape[1]
    marginals, derivatives = np.zeros((length + 1, length)), np.zeros((length + 1, length))
    for k in range(length):
        whole = (sums[k, 0], sums[k, 1], sums[k, 2])
        for h in range(k):
            _collect(logs, tangents, entropic, h, k, whole, means[k], marginals, derivatives)
        _collect(logs, tangents, entropic, length, k, whole, means[k], marginals, derivatives)
        rest, falls = 1.0, 0.0
        for m in range(k):
            rest -= marginals[k, m]
            falls -= derivatives[k, m]
        for row in range(k + 1):
            h = length if row == k else row
            if h == length and not (multiroot or k == 0):
                continue
            share = gap(at(logs, h, k), whole)
            p = np.exp(share)
            if p > 0.0:
                marginals[h, k] += p * rest
                derivatives[h, k] += p * (falls + rest * (tangents[h, k] - means[k] - entropic * share))
    return marginals, derivatives


@inner
def _collect(logs, tangents, entropic, h, k, whole, mean, marginals, derivatives):
    """Give the arcs h -> k and k -> m their shares of the arcs h -> m, which contain the paths h -> k -> m."""
    if logs[h, k, 0] == -np.inf:
        return
    share, tilt = plus(at(logs, h, k), (-whole[0], -whole[1], -whole[2])), tangents[h, k] - mean
    for m in range(k):
        if m == h or logs[k, m, 0] == -np.inf:
            continue
        log_part = min(gap(plus(share, at(logs, k, m)), at(logs, h, m)), 0.0)
        part = np.exp(log_part)
        if part > 0.0:
            p = marginals[h, m] * part
            d = derivatives[h, m] * part + p * (tilt + tangents[k, m] - tangents[h, m] - entropic * log_part)
            marginals[k, m] += p
            derivatives[k, m] += d
            marginals[h, k] += p
            derivatives[h, k] += d
