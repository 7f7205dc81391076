"""Subsets on the CPU, several examples at once, one per SIMD lane, in float64: sums of products that cannot overflow.

They are independent coins, given that k of them fall on heads. With p_i = 1 / (1 + exp(c - s_i)) for any c, p(z) of a
subset of k items is proportional to the chance that coins of chances p_i show z. If c makes the expected number of heads k,
that number's chance is at least 1 / (n + 1), so that nothing of weight is lost to underflow. With F_i(j) the chance of j heads
among the first i coins, and G_i(j) that of k - j heads among the others, over the chance of k heads,

    p(item i is taken) = p_i sum_j F_i(j) G_(i + 1)(j + 1).

With dual numbers, the same gives the derivatives along a direction of the scores, by p_i' = p_i (1 - p_i) v_i. Along the scores
less c it is at most 0.3, however large they are. The entropy is that of the coins, plus log P(k heads), less its derivative.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from pullback.inference._numba.compile import inner, kernel, subroutine
from pullback.inference._numba.lanes import BYTES, aligned, exp, larger, load, splat, store, where_larger
from pullback.inference._numba.random_kernels import uniform
from pullback.inference._numba.vectors import select_positive
from pullback.inference.engine.rules.numbers import at, constant, plus, put, times
from pullback.inference.front.checks import BAD_SIZE, INFEASIBLE, INFINITE, NAN, OK
from pullback.inference.front.modes import Mode

LANES = BYTES // 8
_FLUSH = 512  # the product of this number of factors of at least 1/2 is a normal number


class Coins(NamedTuple):
    """The coins of a vector of examples. Arrays but the last two have a vector in each place; charts are tuples of arrays: of
    values, and of their derivatives, if there are any.
    """

    scores: Any  # of the items, less the k-th largest of the example, -inf behind the last
    heads: Any  # a chart: the chance of each coin
    chances: Any  # a chart: F, row after row
    along: Any  # the direction of dual numbers
    control: Any  # bounds of the shift c, and the shift
    line: Any  # scratch
    log_z: Any  # without the factor of k heads; of dual numbers, the entropy of the coins
    taken_off: Any  # the k-th largest score
    ks: Any  # [LANES]
    sorted: Any  # [n], scratch


@inner
def _chart(kind, count):
    """Vectors of plain or dual numbers."""
    like = np.empty(0)
    if len(kind) == 1:
        return (aligned(count * LANES, like),)
    return aligned(count * LANES, like), aligned(count * LANES, like)


@inner
def _coins_for(kind, scores, lengths, ks):
    """Room for every vector of a batch."""
    n, most, like = scores.shape[1], 0, np.empty(0)
    for k in ks:
        most = max(most, k if k <= n else 0)
    items, along = aligned(n * LANES, like), aligned(n * LANES * (len(kind) - 1), like)
    heads, chances = _chart(kind, n), _chart(kind, (n + 1) * (most + 1))
    control, line, log_z, taken_off = (
        aligned(3 * LANES, like), aligned(2 * LANES, like), aligned(LANES, like), aligned(LANES, like)
    )  # fmt: skip
    return Coins(items, heads, chances, along, control, line, log_z, taken_off, np.empty(LANES, np.int64), np.empty(n))


@subroutine
def _largest(a, n, k):
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
def _bounds(a, n, k):
    """Between which shifts the expected number of heads is k; equal where any value there will do.

    With the scores sorted, it is above s_(k+1) - log n - 1, where k + 1 coins are nearly sure, and below s_(k) + log n + 1.
    The bounds are relative to s_(k), which `_largest` has put in its place in `a`, with none above it behind.
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


@subroutine
def _status_of(scores, b, length, k):
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


@subroutine
def _enter(scores, b, lane, length, k, coins):
    """Write an example's scores, less the k-th largest, to a lane, and the bounds of its shift."""
    for i in range(length):
        coins.sorted[i] = scores[b, i]
    last = _largest(coins.sorted, length, k)
    for i in range(length):
        coins.scores[i * LANES + lane] = scores[b, i] - last
    for i in range(length, scores.shape[1]):
        coins.scores[i * LANES + lane] = -np.inf
    low, high = _bounds(coins.sorted, length, k)
    coins.control[lane], coins.control[LANES + lane], coins.control[2 * LANES + lane] = low, high, 0.5 * (low + high)
    coins.ks[lane], coins.taken_off[lane] = k, last


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
def _coin(chart, p, rest, along, at):
    """The chances of both sides."""
    if len(chart) == 1:
        return (p,), (rest,)
    slope = select_positive(p, p * rest * load(along, at), p - p)
    return (p, slope), (rest, (p - p) - slope)


@subroutine
def _term(chart, x, p, rest, zero):
    """The part of log(1 + exp(x)) or, of dual numbers, of the entropy of a coin beside the logarithm of its likelier side."""
    if len(chart) == 1:
        return larger(x, zero)
    least = where_larger(p, rest, rest, p)
    return select_positive(least, least * larger(x, zero - x), zero)


@subroutine
def _forward(coins, n, most):
    """Write the chance of each coin and F; `log_z` gets the sum over the coins of log(1 + exp(s - c)), or of entropies."""
    weight, control, line, heads, chances = coins.heads[0], coins.control, coins.line, coins.heads, coins.chances
    zero, one, nothing = splat(weight, 0.0), splat(weight, 1.0), constant(heads, 0.0)
    for lane in range(LANES):
        line[lane] = math.exp(control[2 * LANES + lane])
        coins.log_z[lane] = 0.0
    other, shift = load(line, 0), load(control, 2 * LANES)
    for j in range(most + 1):
        put(chances, j * LANES, constant(heads, 1.0) if j == 0 else nothing)
    product, linear = one, zero
    for i in range(n):
        u = load(weight, i * LANES)
        inverse = one / (u + other)
        p, rest = u * inverse, other * inverse
        head, tail = _coin(heads, p, rest, coins.along, i * LANES)
        put(heads, i * LANES, head)
        linear = linear + _term(heads, load(coins.scores, i * LANES) - shift, p, rest, zero)
        product = product * larger(p, rest)
        if i % _FLUSH == _FLUSH - 1 or i == n - 1:
            store(line, 0, product)
            product = one
            for lane in range(LANES):
                coins.log_z[lane] -= math.log(line[lane])
        now, then = i * (most + 1), (i + 1) * (most + 1)
        before = nothing
        for j in range(most + 1):
            f = at(chances, (now + j) * LANES)
            put(chances, (then + j) * LANES, plus(times(f, tail), times(before, head)))
            before = f
    store(coins.log_z, 0, load(coins.log_z, 0) + linear)


@subroutine
def _aim(kind, coins, n, order, first, direction):
    """Write the direction of dual numbers: the scores less c, if none is given."""
    if len(kind) == 1:
        return
    shift = load(coins.control, 2 * LANES)
    for i in range(n):
        if direction.size == 0:
            store(coins.along, i * LANES, load(coins.scores, i * LANES) - shift)
        else:
            for lane in range(LANES):
                coins.along[i * LANES + lane] = direction[order[min(first + lane, len(order) - 1)], i]


@subroutine
def _toss(kind, scores, lengths, ks, order, first, direction, coins, status):
    """Give each lane an example, from `order[first]` on, and find the chances; returns the greatest length and k.

    `order` lists the examples by falling work: those in one vector should have as much.
    """
    longest, most, ceiling = 0, 0, splat(coins.scores, 600.0)
    for lane in range(LANES):
        b, length, k = order[min(first + lane, len(order) - 1)], 0, 0
        if first + lane < len(order):
            status[b] = _status_of(scores, b, lengths[b], ks[b])
            length, k = (lengths[b], ks[b]) if status[b] == OK else (0, 0)
        longest, most = max(longest, length), max(most, k)
        _enter(scores, b, lane, length, k, coins)
    weight = coins.heads[0]
    for i in range(longest):
        x = load(coins.scores, i * LANES)
        store(weight, i * LANES, exp(where_larger(x, ceiling, ceiling, x)))
    _newton(weight, longest, coins.ks, coins.control, coins.line)
    _aim(kind, coins, longest, order, first, direction)
    _forward(coins, longest, most)
    return longest, most


@subroutine
def _backward(coins, n, most, rest_of, found):
    """Write the marginals; `rest_of` is G, at the start that of no coins."""
    one, minus_one, nothing = constant(found, 1.0), constant(found, -1.0), constant(found, 0.0)
    heads, chances = coins.heads, coins.chances
    for i in range(n - 1, -1, -1):
        p = at(heads, i * LANES)
        q, taken, now = plus(one, times(minus_one, p)), nothing, i * (most + 1)
        g = at(rest_of, 0)
        for j in range(most + 1):
            after = at(rest_of, (j + 1) * LANES)
            taken = plus(taken, times(at(chances, (now + j) * LANES), after))
            put(rest_of, j * LANES, plus(times(g, q), times(after, p)))
            g = after
        put(found, i * LANES, times(taken, p))


@subroutine
def _draw(kind, coins, lane, b, length, most, seeds, z):
    """From the last item to the first: if j are taken up to item i, it is with a chance of p_i F_i(j - 1) / F_(i + 1)(j)."""
    if len(kind) > 1:
        return
    j, drawn = coins.ks[lane], 0
    for i in range(length - 1, -1, -1):
        if j > 0:
            at = (i * (most + 1) + j - 1) * LANES + lane
            u, drawn = uniform(seeds[b], drawn)
            whole = coins.chances[0][at + (most + 2) * LANES]
            if whole > 0.0 and u < coins.chances[0][at] * coins.heads[0][i * LANES + lane] / whole:
                z[i] = 1.0
                j -= 1


@subroutine
def _finish(kind, coins, lane, at, k, rest_of):
    """Begin G, one over the chance of k heads, and return the log-partition or, of dual numbers, the entropy."""
    chance = coins.chances[0][at + lane]
    rest_of[0][k * LANES + lane] = 1.0 / chance
    value = coins.log_z[lane] + math.log(chance)
    if len(kind) == 1:
        return value + k * (coins.control[2 * LANES + lane] + coins.taken_off[lane])
    slope = coins.chances[1][at + lane] / chance
    rest_of[1][k * LANES + lane] = -slope / chance
    return max(value - slope, 0.0)


@kernel
def sums(worker, workers, scores, lengths, ks, order, kind, given, out, value, status):
    """Write log-partitions to `value` and, by the mode, marginals or samples over zeros, for examples whose status becomes OK.

    `kind` is a tuple of the mode, as long as the numbers' tuples. Plain numbers may have seeds `given`. Dual ones have a
    direction, or an empty one for the scores: derivatives of marginals are written and, along the scores, entropies.
    """
    mode = kind[0]
    coins, n = _coins_for(kind, scores, lengths, ks), scores.shape[1]
    found, rest_of = _chart(kind, n), _chart(kind, n + 2)
    for first in range(worker * LANES, len(order), workers * LANES):
        longest, most = _toss(kind, scores, lengths, ks, order, first, given, coins, status)
        for j in range(most + 2):
            put(rest_of, j * LANES, constant(found, 0.0))
        for lane in range(min(LANES, len(order) - first)):
            b, k = order[first + lane], coins.ks[lane]
            value[b] = _finish(kind, coins, lane, (longest * (most + 1) + k) * LANES, k, rest_of)
            if mode == Mode.SAMPLE and status[b] == OK:
                _draw(kind, coins, lane, b, lengths[b], most, given, out[b])
        if mode in (Mode.MARGINALS, Mode.TANGENT, Mode.ENTROPY_TANGENT):
            _backward(coins, longest, most, rest_of, found)
            _write(found[-1], order, first, lengths, out, status)


@subroutine
def _write(found, order, first, lengths, out, status):
    """Copy the items of the lanes to their examples, which are zero."""
    for lane in range(min(LANES, len(order) - first)):
        b = order[first + lane]
        for i in range(lengths[b] if status[b] == OK else 0):
            out[b, i] = found[i * LANES + lane]
