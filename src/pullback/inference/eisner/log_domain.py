"""Inside and outside sweeps in logarithms, with companions: for scores that leave the range of floating point.

One sentence at a time. An item is four numbers: the log of its value, a wide number (wide.py) so that scores of any size add
up without rounding, and a companion. That is the derivative of the log along a direction v of the scores, the mean over
the item's derivations of the sum of v over their arcs; or, with `entropic` = 1, the entropy of its derivations. With the
probability p_t of each of an item's terms,

    slope:   sum_t p_t (slopes of the two parts),          entropy:   sum_t p_t (entropies of the two parts - log p_t),

and the same for outside values. An arc of probability mu whose inside and outside have the entropies a and b contributes
mu (a + b - log mu - H) to the gradient of the entropy H: no score is in it. README.md names the items; the layout of the
charts is that of sweeps.py with one lane.
"""

from __future__ import annotations

import math

import numpy as np

from pullback.inference.checks import INFEASIBLE, OK
from pullback.inference.compile import inner, kernel
from pullback.inference.wide import LOWEST, gap, minus, narrow, nothing, plus, wide


@kernel
def marginals(
    worker, workers, scores, direction, entropic, lengths, multiroot, mu, slope, log_z, entropy, status
):  # fmt: skip
    """Marginals, their derivative along `direction`, and log-partitions of `[B, n, n]` float64 scores.

    With `entropic` = 1.0 and a direction of zero: the entropies, and their gradients in place of the derivatives.
    """
    n = scores.shape[-1]
    s, v = np.empty((3, n * n)), np.empty((n, n))
    charts, lines = np.empty((5, 4, n * n)), np.empty((4, 4, n + 1))
    for b in range(worker, len(scores), workers):
        length = lengths[b]
        mu[b], slope[b] = 0.0, 0.0
        shift = shifted(scores[b], direction[b], length, s, v)
        inside(s, v, entropic, length, multiroot, charts[0], charts[1], lines[0], lines[1])
        log_z[b] = narrow(plus(shift, get(lines[0], length)))
        entropy[b] = max(lines[0, 3, length], 0.0)
        status[b] = OK if log_z[b] > -np.inf else INFEASIBLE
        if status[b] == OK:
            _outside_root(s, v, entropic, length, multiroot, charts, lines, mu[b], slope[b])
            _outside(s, v, entropic, length, charts, mu[b], slope[b])


@inner
def get(items, index):
    """An item's log."""
    return items[0, index], items[1, index], items[2, index]


@inner
def put(items, index, log, companion):
    """Write an item."""
    items[0, index], items[1, index], items[2, index] = log[0], log[1], log[2]
    items[3, index] = companion


@inner
def shifted(scores, direction, length, s, v):
    """Copy the scores less each column's largest, and the direction of allowed arcs; returns the sum of shifts."""
    total = wide(0.0)
    for m in range(length):
        top = scores[:length, m].max()
        top = max(top, LOWEST) if top > -np.inf else 0.0
        total = plus(total, wide(top))
        for h in range(length):
            x, at = scores[h, m], h * length + m
            allowed = x > -np.inf
            s[0, at], s[1, at], s[2, at] = minus(wide(max(x, LOWEST) if allowed else x), wide(top))
            v[h, m] = direction[h, m] if allowed else 0.0
    return total


@inner
def inside(s, v, entropic, n, multiroot, complete, arc, prefix, root_arc):
    """Fill the charts of complete items and of arcs, and the lines of prefixes and of root arcs."""
    for j in range(n):
        complete[:, j * n + j] = 0.0
        for i in range(j - 1, -1, -1):
            ii, ij, ji, width = i * n + i, i * n + j, j * n + i, j - i
            log, companion = _sum(complete, ii, 1, complete, ji + 1, 1, width, entropic)
            put(arc, ij, plus(log, get(s, ij)), companion + v[i, j])
            put(arc, ji, plus(log, get(s, ji)), companion + v[j, i])
            log, companion = _sum(arc, ii + 1, 1, complete, ij + n, n, width, entropic)
            put(complete, ij, log, companion)
            log, companion = _sum(complete, ii, n, arc, ji, 1, width, entropic)
            put(complete, ji, log, companion)
    prefix[:, 0] = 0.0
    for r in range(n):
        log, companion = _sum(prefix, 0, 1, complete, r * n, 1, r + 1 if multiroot else 1, entropic)
        put(root_arc, r, plus(log, get(s, r * n + r)), companion + v[r, r])
        log, companion = _sum(root_arc, 0, 1, complete, r, n, r + 1, entropic)
        put(prefix, r + 1, log, companion)


@inner
def _outside_root(s, v, entropic, n, multiroot, charts, lines, mu, slopes):
    complete, out_complete = charts[0], charts[2]
    prefix, root_arc, out_prefix, out_starts = lines[0], lines[1], lines[2], lines[3]
    for j in range(n):
        put(out_prefix, j, nothing(), 0.0)
    put(out_prefix, n, minus(wide(0.0), get(prefix, n)), -prefix[3, n])
    for r in range(n - 1, -1, -1):
        log, companion = _sum(out_prefix, r + 1, 1, complete, r * n + r, 1, n - r, entropic)
        _settle(log, companion, entropic, root_arc, r, mu, slopes, r, r)
        log, companion = plus(log, get(s, r * n + r)), companion + v[r, r]
        put(out_starts, r, log, companion)
        if multiroot:
            for i in range(r + 1):
                at = r * n + i
                _add(out_prefix, i, plus(log, get(complete, at)), companion + complete[3, at], entropic)
    for i in range(n):
        for j in range(i + 1, n):
            ij, ji = i * n + j, j * n + i
            log = plus(get(out_prefix, j + 1), get(root_arc, i))
            put(out_complete, ij, log, out_prefix[3, j + 1] + root_arc[3, i])
            log = plus(get(out_starts, j), get(prefix, i)) if multiroot or i == 0 else nothing()
            put(out_complete, ji, log, out_starts[3, j] + prefix[3, i])


@inner
def _outside(s, v, entropic, n, charts, mu, slopes):
    complete, arc, out, out_between = charts[0], charts[1], charts[2], charts[3]
    for i in range(n):
        for j in range(n - 1, i, -1):
            ij, ji, wider, earlier = i * n + j, j * n + i, n - 1 - j, i
            log, companion = _sum(out_between, ij + 1, 1, complete, (j + 1) * (n + 1), n, wider, entropic)
            _add(out, ij, log, companion, entropic)
            log, companion = _sum(out, j, n, arc, i, n, earlier, entropic)
            _add(out, ij, log, companion, entropic)
            log, companion = _sum(out, ji + n, n, arc, (j + 1) * n + j, n, wider, entropic)
            _add(out, ji, log, companion, entropic)
            log, companion = _sum(out_between, j, n, complete, i - 1, n, earlier, entropic)
            _add(out, ji, log, companion, entropic)
            log, companion = _sum(out, ij, 1, complete, j * n + j, 1, wider + 1, entropic)
            _settle(log, companion, entropic, arc, ij, mu, slopes, i, j)
            put(out_between, ij, plus(log, get(s, ij)), companion + v[i, j])
            log, companion = _sum(out, j * n, 1, complete, i * n, 1, earlier + 1, entropic)
            _settle(log, companion, entropic, arc, ji, mu, slopes, j, i)
            _add(out_between, ij, plus(log, get(s, ji)), companion + v[j, i], entropic)


@inner
def _settle(log, companion, entropic, arc, index, mu, slopes, h, m):
    """Write an arc's marginal and its derivative, from its outside value."""
    log_p = min(narrow(plus(log, get(arc, index))), 0.0)
    p = math.exp(log_p)
    if p > 0.0:
        mu[h, m] = p
        slopes[h, m] = p * (companion + arc[3, index] - entropic * log_p)


@inner
def _add(items, index, log, companion, entropic):
    """Add a term to an item."""
    old = get(items, index)
    apart = gap(log, old)
    if log[0] == -np.inf:
        return
    more = math.log1p(math.exp(-abs(apart)))
    log_new, log_old = min(apart, 0.0) - more, min(-apart, 0.0) - more  # of their shares of the sum
    p, q = math.exp(log_new), math.exp(log_old)
    mean = p * (companion - entropic * log_new) if p > 0.0 else 0.0
    mean += q * (items[3, index] - entropic * log_old) if q > 0.0 else 0.0
    put(items, index, plus(log if apart > 0.0 else old, wide(more)), mean)


@inner
def _sum(a, ia, a_step, b, ib, b_step, count, entropic):
    """The log of the sum of products of two sequences of items, and its companion."""
    top = nothing()
    for t in range(count):
        log = plus(get(a, ia + t * a_step), get(b, ib + t * b_step))
        top = log if gap(log, top) > 0.0 else top
    if top[0] == -np.inf:
        return top, 0.0
    total, companion = 0.0, 0.0
    for t in range(count):
        at_a, at_b = ia + t * a_step, ib + t * b_step
        share = gap(plus(get(a, at_a), get(b, at_b)), top)
        p = math.exp(share)
        if p > 0.0:
            total += p
            companion += p * (a[3, at_a] + b[3, at_b] - entropic * share)
    return plus(top, wide(math.log(total))), companion / total + entropic * math.log(total)
