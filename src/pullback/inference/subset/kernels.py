"""Subsets in sums of products that cannot overflow: independent coins, given that k of them fall on heads.

With p_i = 1 / (1 + exp(c - s_i)) for any c, p(z) of a subset of k items is proportional to the chance that coins of
chances p_i show z.
Row i of the table holds the chances of j heads among the first i coins, j = 0, ..., k: numbers up to 1. If c makes the
expected number of heads k, that number's chance is at least 1 / (n + 1), so that nothing of weight is lost to underflow.
"""

from __future__ import annotations

import math

import numpy as np

from pullback.inference.checks import BAD_SIZE, INFEASIBLE, INFINITE, NAN, OK
from pullback.inference.compile import inner, kernel
from pullback.inference.random_kernels import uniform

LOG_PARTITION, MARGINALS, SAMPLE, ENTROPY, SLOPE, ENTROPY_SLOPE = range(6)


@inner
def _heads(s, n, c):
    """The expected number of heads for a shift c, and its variance."""
    mean, variance = 0.0, 0.0
    for i in range(n):
        x = math.exp(-abs(s[i] - c))
        small = x / (1.0 + x)
        mean += small if s[i] < c else 1.0 - small
        variance += small * (1.0 - small)
    return mean, variance


@inner
def centre(s, n, k):
    """Take the k-th largest score (the largest for k = 0) off the scores, where margins would be lost to rounding."""
    if n == 0:
        return 0.0
    last = np.sort(s[:n])[n - max(k, 1)]
    if last == -np.inf:
        return 0.0
    s[:n] -= last
    return last


@inner
def shift(s, n, k):
    """A shift for which the expected number of heads is near k: Newton's method between bounds that close in.

    With the scores sorted, it is above s_(k+1) - log n - 1, where k + 1 coins are nearly sure, and below s_(k) + log n + 1;
    s_(k) is 0, by `centre`.
    """
    margin = math.log(n + 1.0) + 1.0
    if k == 0:
        return 40.0 + margin
    at_least, following = 0, -np.inf
    for i in range(n):
        if s[i] >= 0.0:
            at_least += 1
        elif s[i] > following:
            following = s[i]
    if at_least > k:
        following = 0.0
    if following < -2.0 * (margin + 40.0):  # which items to take is certain: c stays near them
        return -40.0 - margin
    low, high = following - margin, margin
    c = 0.5 * (low + high)
    for _ in range(100):
        mean, variance = _heads(s, n, c)
        if abs(mean - k) <= 0.5 * math.sqrt(variance) + 0.5:
            break
        if mean > k:
            low = c
        else:
            high = c
        c += (mean - k) / max(variance, 1e-3)
        if not low < c < high:
            c = 0.5 * (low + high)
    return c


@inner
def table(s, n, k, c, row, weights):
    """Write `weights[i, j]`, the chance that item i is taken if j of the items up to it are; returns log Z."""
    row[: k + 1] = 0.0
    row[0] = 1.0
    log_z = k * c
    for i in range(n):
        x = math.exp(-abs(s[i] - c))
        small, large = x / (1.0 + x), 1.0 / (1.0 + x)
        heads, tails = (small, large) if s[i] < c else (large, small)
        log_z += math.log1p(x) if s[i] < c else s[i] - c + math.log1p(x)
        top = min(i + 1, k)
        before = 0.0
        for j in range(top + 1):
            with_it, without = before * heads, row[j] * tails
            before = row[j]
            both = with_it + without
            weights[i, j] = with_it / both if both > 0.0 else 0.0
            row[j] = both
    return log_z + math.log(row[k]) if row[k] > 0.0 else -np.inf


@inner
def _status(scores, b, length, k):
    if length < 0 or length > scores.shape[1] or k < 0:
        return BAD_SIZE
    found, allowed = OK, 0
    for i in range(length):
        if math.isnan(scores[b, i]):
            return NAN
        if scores[b, i] == np.inf:
            found = INFINITE
        allowed += scores[b, i] > -np.inf
    return INFEASIBLE if found == OK and allowed < k else found


@kernel
def run(worker, workers, scores, lengths, ks, what, seeds, direction, out, value, status):
    """For each example: log Z or the entropy into `value`; marginals, a sample or a derivative into `out`."""
    n, most = scores.shape[1], 0
    for b in range(len(lengths)):
        if 0 <= ks[b] <= n:
            most = max(most, ks[b])
    weights, rates = np.empty((n, most + 1)), np.empty((n + 1 if what >= ENTROPY else 1, most + 1))
    row, s = np.empty(most + 1), np.empty(n)
    reached, moved = np.empty(most + 2), np.empty(most + 2)
    for b in range(worker, len(lengths), workers):
        k, length = ks[b], lengths[b]
        status[b] = _status(scores, b, length, k)
        if status[b] != OK:
            continue
        for i in range(length):
            s[i] = scores[b, i]
        taken_off = centre(s, length, k)
        value[b] = k * taken_off + table(s, length, k, shift(s, length, k), row, weights)
        if what == MARGINALS:
            _marginals(weights, length, k, reached, out[b])
        elif what == SAMPLE:
            _sample(weights, length, k, seeds[b], out[b])
        elif what >= ENTROPY:
            _slopes(weights, length, k, direction[b], what != SLOPE, rates)
            if what == ENTROPY:
                value[b] = rates[length, k]
            else:
                _derivative(weights, length, k, direction[b], what != SLOPE, rates, reached, moved, out[b])


@inner
def _marginals(weights, n, k, reached, mu):
    """From the goal down: `reached[j]`, the chance that j of the items up to here are taken."""
    reached[: k + 1] = 0.0
    reached[k] = 1.0
    for i in range(n - 1, -1, -1):
        taken = 0.0
        for j in range(min(i + 1, k) + 1):
            q = reached[j] * weights[i, j]
            taken += q
            reached[j] *= 1.0 - weights[i, j]
            if j > 0:
                reached[j - 1] += q
        mu[i] = taken


@inner
def _sample(weights, n, k, seed, z):
    j, drawn = k, 0
    for i in range(n - 1, -1, -1):
        if j > 0:
            u, drawn = uniform(seed, drawn)
            if u < weights[i, j]:
                z[i] = 1.0
                j -= 1


@inner
def _surprise(p):
    return -math.log(p) if p > 0.0 else 0.0


@inner
def _slopes(weights, n, k, direction, surprise, rates):
    """Expectations, over the items so far, of the direction, or of the surprise of each choice: then entropies."""
    rates[0, : k + 1] = 0.0
    for i in range(n):
        for j in range(k + 1):
            w = weights[i, j] if j <= i + 1 else 0.0
            own, other = (_surprise(w), _surprise(1.0 - w)) if surprise else (float(direction[i]), 0.0)
            mean = 0.0
            if w > 0.0:
                mean += w * (rates[i, j - 1] + own)
            if w < 1.0:
                mean += (1.0 - w) * (rates[i, j] + other)
            rates[i + 1, j] = mean


@inner
def _derivative(weights, n, k, direction, surprise, rates, reached, moved, out):
    """The derivative of `_marginals`: dual numbers."""
    reached[: k + 1] = 0.0
    moved[: k + 1] = 0.0
    reached[k] = 1.0
    for i in range(n - 1, -1, -1):
        taken = 0.0
        for j in range(min(i + 1, k) + 1):
            w = weights[i, j]
            own, other = (_surprise(w), _surprise(1.0 - w)) if surprise else (float(direction[i]), 0.0)
            up = rates[i, j - 1] + own - rates[i + 1, j] if w > 0.0 else 0.0
            stay = rates[i, j] + other - rates[i + 1, j] if w < 1.0 else 0.0
            q, dq = reached[j] * w, w * (moved[j] + reached[j] * up)
            taken += dq
            rest, drest = reached[j] * (1.0 - w), (1.0 - w) * (moved[j] + reached[j] * stay)
            reached[j], moved[j] = rest, drest
            if j > 0:
                reached[j - 1] += q
                moved[j - 1] += dq
        out[i] = taken
