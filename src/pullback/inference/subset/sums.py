"""Sums over subsets for several examples at once, one per SIMD lane, in float64: log-partitions and marginals.

The coins of `kernels.py`, forwards and backwards: with F_i(j) the chance of j heads among the first i coins, and G_i(j) that
of k - j heads among the others, over the chance of k heads,

    p(item i is taken) = p_i sum_j F_i(j) G_(i + 1)(j + 1).
"""

from __future__ import annotations

import math

import numpy as np

from pullback.inference._numba.compile import kernel, subroutine
from pullback.inference._numba.lanes import BYTES, aligned, exp, larger, load, splat, store, where_larger
from pullback.inference.front.checks import OK
from pullback.inference.subset.kernels import bounds, largest, status_of

LANES = BYTES // 8
_FLUSH = 512  # the product of this number of factors of at least 1/2 is a normal number


@subroutine
def _enter(scores, b, lane, length, k, s, sorted_, control):
    """Write an example's scores, less the k-th largest, to a lane; `control` gets the bounds of its shift."""
    n = scores.shape[1]
    for i in range(length):
        sorted_[i] = scores[b, i]
    last = largest(sorted_, length, k)
    for i in range(length):
        s[i * LANES + lane] = scores[b, i] - last
    for i in range(length, n):
        s[i * LANES + lane] = -np.inf
    low, high = bounds(sorted_, length, k)
    control[lane], control[LANES + lane], control[2 * LANES + lane] = low, high, 0.5 * (low + high)
    return last


@subroutine
def _newton(weight, n, ks, control, line):
    """Move each lane's shift until the expected number of heads is near k: Newton's method between bounds that close in."""
    one = splat(weight, 1.0)
    for _ in range(100):
        for lane in range(LANES):
            line[lane] = math.exp(control[2 * LANES + lane])
        other = load(line, 0)
        mean = variance = splat(weight, 0.0)
        for i in range(n):
            u = load(weight, i * LANES)
            p = u / (u + other)
            mean = mean + p
            variance = variance + p * (one - p)
        store(line, 0, mean)
        store(line, LANES, variance)
        near = True
        for lane in range(LANES):
            low, high, c = control[lane], control[LANES + lane], control[2 * LANES + lane]
            apart = line[lane] - ks[lane]
            if low < high and abs(apart) > 0.5 * math.sqrt(line[LANES + lane]) + 0.5:
                near = False
                if apart > 0:
                    low = c
                else:
                    high = c
                c += apart / max(line[LANES + lane], 1e-3)
                control[lane], control[LANES + lane] = low, high
                control[2 * LANES + lane] = c if low < c < high else 0.5 * (low + high)
        if near:
            return


@subroutine
def _forward(weight, s, n, most, control, line, heads, table, log_z):
    """Write the chance of heads for each coin and F; `log_z` gets the sum over the coins of log(1 + exp(s - c))."""
    zero, one = splat(weight, 0.0), splat(weight, 1.0)
    for lane in range(LANES):
        line[lane] = math.exp(control[2 * LANES + lane])
        log_z[lane] = 0.0
    other, shift = load(line, 0), load(control, 2 * LANES)
    for j in range(most + 1):
        store(table, j * LANES, one if j == 0 else zero)
    product, linear = one, zero
    for i in range(n):
        u = load(weight, i * LANES)
        inverse = one / (u + other)
        p, rest = u * inverse, other * inverse
        store(heads, i * LANES, p)
        linear = linear + larger(load(s, i * LANES) - shift, zero)
        product = product * larger(p, rest)
        if i % _FLUSH == _FLUSH - 1 or i == n - 1:
            store(line, 0, product)
            product = one
            for lane in range(LANES):
                log_z[lane] -= math.log(line[lane])
        now, then = i * (most + 1), (i + 1) * (most + 1)
        before = zero
        for j in range(most + 1):
            f = load(table, (now + j) * LANES)
            store(table, (then + j) * LANES, f * rest + before * p)
            before = f
    store(line, 0, linear)
    for lane in range(LANES):
        log_z[lane] += line[lane]


@subroutine
def _backward(n, most, heads, table, rest_of, out):
    """Write the marginals to `out`; `rest_of` is G, at the start that of no coins."""
    one = splat(heads, 1.0)
    for i in range(n - 1, -1, -1):
        p = load(heads, i * LANES)
        q, taken, now = one - p, splat(heads, 0.0), i * (most + 1)
        g = load(rest_of, 0)
        for j in range(most + 1):
            after = load(rest_of, (j + 1) * LANES)
            taken = taken + load(table, (now + j) * LANES) * after
            store(rest_of, j * LANES, g * q + after * p)
            g = after
        store(out, i * LANES, taken * p)


@kernel
def sums(worker, workers, scores, lengths, ks, order, wanted, out, value, status):
    """Write log-partitions to `value` and, if `wanted`, marginals to `out`, for examples whose status is or becomes OK.

    `order` lists the examples by falling length: those in one vector should have equal work.
    """
    n, count = scores.shape[1], len(lengths)
    s, weight = aligned(n * LANES, np.empty(0)), aligned(n * LANES, np.empty(0))
    heads, found = aligned(n * LANES, np.empty(0)), aligned(n * LANES, np.empty(0))
    control, line, log_z = aligned(3 * LANES, np.empty(0)), aligned(2 * LANES, np.empty(0)), np.empty(LANES)
    own, taken_off, sorted_ = np.empty(LANES, np.int64), np.empty(LANES), np.empty(n)
    room, ceiling = 0, splat(s, 600.0)
    table, rest_of = aligned(0, np.empty(0)), aligned((n + 2) * LANES, np.empty(0))
    for first in range(worker * LANES, count, workers * LANES):
        most, longest = 0, 0
        for lane in range(LANES):
            b = order[min(first + lane, count - 1)]
            status[b] = status_of(scores, b, lengths[b], ks[b])
            length, own[lane] = (lengths[b], ks[b]) if status[b] == OK else (0, 0)
            most, longest = max(most, own[lane]), max(longest, length)
            taken_off[lane] = _enter(scores, b, lane, length, own[lane], s, sorted_, control)
        if (longest + 1) * (most + 1) > room:
            room = (longest + 1) * (most + 1)
            table = aligned(room * LANES, np.empty(0))
        for i in range(longest):
            x = load(s, i * LANES)
            store(weight, i * LANES, exp(where_larger(x, ceiling, ceiling, x)))
        _newton(weight, longest, own, control, line)
        _forward(weight, s, longest, most, control, line, heads, table, log_z)
        for j in range((most + 2) * LANES):
            rest_of[j] = 0.0
        for lane in range(LANES):
            b, k = order[min(first + lane, count - 1)], own[lane]
            chance = table[(longest * (most + 1) + k) * LANES + lane]
            rest_of[k * LANES + lane] = 1.0 / chance
            if first + lane < count:
                value[b] = log_z[lane] + math.log(chance) + k * (control[2 * LANES + lane] + taken_off[lane])
        if wanted:
            _backward(longest, most, heads, table, rest_of, found)
            for lane in range(min(LANES, count - first)):
                b = order[first + lane]
                for i in range(n):
                    out[b, i] = found[i * LANES + lane] if i < lengths[b] else 0.0
