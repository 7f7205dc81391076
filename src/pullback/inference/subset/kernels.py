"""Subsets in sums of products that cannot overflow: independent coins, given that k of them fall on heads.

With p_i = 1 / (1 + exp(c - s_i)) for any c, p(z) of a subset of k items is proportional to the chance that coins of
chances p_i show z.
Row i of the table holds the chances of j heads among the first i coins, j = 0, ..., k: numbers up to 1. If c makes the
expected number of heads k, that number's chance is at least 1 / (n + 1), so that nothing of weight is lost to underflow.
"""

from __future__ import annotations

import math

import numpy as np

from pullback.inference._numba.compile import inner, kernel, subroutine
from pullback.inference._numba.random_kernels import uniform
from pullback.inference.front.checks import BAD_SIZE, INFEASIBLE, INFINITE, NAN, OK
from pullback.inference.front.modes import Mode


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


@subroutine
def largest(a, n, k):
    """The k-th largest of the first n numbers (the largest for k = 0), by selection in place; 0 where there is none or -inf."""
    if n == 0:
        return 0.0
    low, high, wanted = 0, n - 1, max(k, 1) - 1
    while low < high:
        pivot, i, j = a[(low + high) // 2], low, high
        while i <= j:
            while a[i] > pivot:
                i += 1
            while a[j] < pivot:
                j -= 1
            if i <= j:
                a[i], a[j] = a[j], a[i]
                i += 1
                j -= 1
        if wanted <= j:
            high = j
        elif wanted >= i:
            low = i
        else:
            break
    return a[wanted] if a[wanted] > -np.inf else 0.0


@subroutine
def bounds(a, n, k):
    """Between which shifts the expected number of heads is k; equal where any value there will do.

    With the scores sorted, it is above s_(k+1) - log n - 1, where k + 1 coins are nearly sure, and below s_(k) + log n + 1.
    The bounds are relative to s_(k), which `largest` has put in its place in `a`, with none above it behind.
    """
    margin = math.log(n + 1.0) + 1.0
    if k == 0:
        return 40.0 + margin, 40.0 + margin
    following = -np.inf
    for i in range(k, n):
        following = max(following, a[i])
    following -= a[k - 1] if a[k - 1] > -np.inf else 0.0
    if following < -2.0 * (margin + 40.0):  # which items to take is certain: c stays near them
        return -40.0 - margin, -40.0 - margin
    return following - margin, margin


@inner
def shift(s, n, k, low, high):
    """A shift for which the expected number of heads is near k: Newton's method between bounds that close in."""
    c = 0.5 * (low + high)
    for _ in range(100):
        mean, variance = _heads(s, n, c)
        if low == high or abs(mean - k) <= 0.5 * math.sqrt(variance) + 0.5:
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


@subroutine
def status_of(scores, b, length, k):
    if length < 0 or length > scores.shape[1] or k < 0:
        return BAD_SIZE
    nan, infinite, allowed = 0, 0, 0
    for i in range(length):
        x = scores[b, i]
        nan += x != x
        infinite += x == np.inf
        allowed += x > -np.inf
    if nan > 0:
        return NAN
    if infinite > 0:
        return INFINITE
    return INFEASIBLE if allowed < k else OK


@inner
def _prepare(scores, b, length, k, row, weights, s):
    """Write `weights`; returns log Z. The k-th largest score is taken off, where margins would be lost to rounding."""
    for i in range(length):
        s[i] = scores[b, i]
    last = largest(s, length, k)
    low, high = bounds(s, length, k)
    for i in range(length):
        s[i] = scores[b, i] - last
    return k * last + table(s, length, k, shift(s, length, k, low, high), row, weights)


@inner
def _most(ks, n):
    """The largest k that an example of n items can have."""
    most = 0
    for k in ks:
        if 0 <= k <= n:
            most = max(most, k)
    return most


@kernel
def sample(worker, workers, scores, lengths, ks, seeds, out, status):
    """Write a sample of each example over zeros."""
    n, most = scores.shape[1], _most(ks, scores.shape[1])
    weights, row, s = np.empty((n, most + 1)), np.empty(most + 1), np.empty(n)
    for b in range(worker, len(lengths), workers):
        status[b] = status_of(scores, b, lengths[b], ks[b])
        if status[b] == OK:
            _prepare(scores, b, lengths[b], ks[b], row, weights, s)
            _sample(weights, lengths[b], ks[b], seeds[b], out[b])


@kernel
def tangents(worker, workers, scores, lengths, ks, mode, direction, out, value, status):
    """Write entropies to `value`, or derivatives of the marginals to `out`."""
    n, most = scores.shape[1], _most(ks, scores.shape[1])
    weights, cell_tangents = np.empty((n, most + 1)), np.empty((n + 1, most + 1))
    row, s = np.empty(most + 1), np.empty(n)
    reached, reached_tangents = np.empty(most + 2), np.empty(most + 2)
    for b in range(worker, len(lengths), workers):
        k, length = ks[b], lengths[b]
        status[b] = status_of(scores, b, length, k)
        if status[b] == OK:
            _prepare(scores, b, length, k, row, weights, s)
            _tangents(weights, length, k, direction[b], mode != Mode.TANGENT, cell_tangents)
            if mode == Mode.ENTROPY:
                value[b] = cell_tangents[length, k]
            else:
                _derivative(
                    weights, length, k, direction[b], mode != Mode.TANGENT, cell_tangents, reached, reached_tangents, out[b]
                )


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
def _tangents(weights, n, k, direction, surprise, cell_tangents):
    """Expectations, over the items so far, of the direction, or of the surprise of each choice: then entropies."""
    cell_tangents[0, : k + 1] = 0.0
    for i in range(n):
        for j in range(k + 1):
            w = weights[i, j] if j <= i + 1 else 0.0
            own, other = (_surprise(w), _surprise(1.0 - w)) if surprise else (float(direction[i]), 0.0)
            mean = 0.0
            if w > 0.0:
                mean += w * (cell_tangents[i, j - 1] + own)
            if w < 1.0:
                mean += (1.0 - w) * (cell_tangents[i, j] + other)
            cell_tangents[i + 1, j] = mean


@inner
def _derivative(weights, n, k, direction, surprise, cell_tangents, reached, reached_tangents, out):
    """The derivative of `_marginals`: dual numbers."""
    reached[: k + 1] = 0.0
    reached_tangents[: k + 1] = 0.0
    reached[k] = 1.0
    for i in range(n - 1, -1, -1):
        taken = 0.0
        for j in range(min(i + 1, k) + 1):
            w = weights[i, j]
            own, other = (_surprise(w), _surprise(1.0 - w)) if surprise else (float(direction[i]), 0.0)
            up = cell_tangents[i, j - 1] + own - cell_tangents[i + 1, j] if w > 0.0 else 0.0
            stay = cell_tangents[i, j] + other - cell_tangents[i + 1, j] if w < 1.0 else 0.0
            q, dq = reached[j] * w, w * (reached_tangents[j] + reached[j] * up)
            taken += dq
            rest, drest = reached[j] * (1.0 - w), (1.0 - w) * (reached_tangents[j] + reached[j] * stay)
            reached[j], reached_tangents[j] = rest, drest
            if j > 0:
                reached[j - 1] += q
                reached_tangents[j - 1] += dq
        out[i] = taken
