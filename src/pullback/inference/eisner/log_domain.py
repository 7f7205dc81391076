"""Inside and outside sweeps in logarithms, with derivatives: for scores that leave the range of floating point.

One sentence at a time, in float64. An item is a pair: the log of its value, and the derivative of that log along a
direction v of the scores, which is the mean over the item's derivations of the sum of v over their arcs. README.md
names the items; the layout of the charts is that of sweeps.py with one lane.
"""

from __future__ import annotations

import math

import numpy as np

from pullback.inference.checks import INFEASIBLE, OK
from pullback.inference.compile import inner, kernel


@kernel
def marginals(worker, workers, scores, direction, lengths, multiroot, mu, slope, log_z, status):
    """Marginals, their derivative along `direction`, and log-partitions of `[B, n, n]` float64 scores."""
    n = scores.shape[-1]
    s, v = np.empty((n, n)), np.empty((n, n))
    charts, lines = np.empty((2, 5, n * n)), np.empty((2, 4, n + 1))
    for b in range(worker, len(scores), workers):
        length = lengths[b]
        mu[b], slope[b] = 0.0, 0.0
        shift = shifted(scores[b], direction[b], length, s, v)
        inside(s, v, length, multiroot, charts, lines)
        log_z[b] = shift + lines[0, 0, length]
        status[b] = OK if log_z[b] > -np.inf else INFEASIBLE
        if status[b] == OK:
            _outside_root(s, v, length, multiroot, charts, lines, mu[b], slope[b])
            _outside(s, v, length, multiroot, charts, lines, mu[b], slope[b])


@inner
def shifted(scores, direction, length, s, v):
    """Copy the scores less each column's largest, and the direction of allowed arcs; returns the sum of shifts."""
    total = 0.0
    for m in range(length):
        top = scores[:length, m].max()
        top = top if top > -np.inf else 0.0
        total += top
        for h in range(length):
            s[h, m] = scores[h, m] - top
            v[h, m] = direction[h, m] if scores[h, m] > -np.inf else 0.0
    return total


@inner
def inside(s, v, n, multiroot, charts, lines):
    """Fill `charts[:, 0]` (complete), `charts[:, 1]` (arcs), `lines[:, 0]` (prefixes) and `lines[:, 1]` (root arcs)."""
    complete, arc = charts[:, 0], charts[:, 1]
    prefix, root_arc = lines[:, 0], lines[:, 1]
    for j in range(n):
        complete[:, j * n + j] = 0.0
        for i in range(j - 1, -1, -1):
            ii, ij, ji, width = i * n + i, i * n + j, j * n + i, j - i
            value, slope = log_dot(complete, ii, 1, complete, ji + 1, 1, width)
            arc[0, ij], arc[1, ij] = value + s[i, j], slope + v[i, j]
            arc[0, ji], arc[1, ji] = value + s[j, i], slope + v[j, i]
            complete[0, ij], complete[1, ij] = log_dot(arc, ii + 1, 1, complete, ij + n, n, width)
            complete[0, ji], complete[1, ji] = log_dot(complete, ii, n, arc, ji, 1, width)
    prefix[:, 0] = 0.0
    for r in range(n):
        value, slope = log_dot(prefix, 0, 1, complete, r * n, 1, r + 1 if multiroot else 1)
        root_arc[0, r], root_arc[1, r] = value + s[r, r], slope + v[r, r]
        prefix[0, r + 1], prefix[1, r + 1] = log_dot(root_arc, 0, 1, complete, r, n, r + 1)


@inner
def _outside_root(s, v, n, multiroot, charts, lines, mu, slopes):
    complete, out_complete = charts[:, 0], charts[:, 2]
    prefix, root_arc, out_prefix, out_starts = lines[:, 0], lines[:, 1], lines[:, 2], lines[:, 3]
    out_prefix[0, : n + 1] = -np.inf
    out_prefix[1, : n + 1] = 0.0
    out_prefix[0, n], out_prefix[1, n] = -prefix[0, n], -prefix[1, n]
    for r in range(n - 1, -1, -1):
        value, slope = log_dot(out_prefix, r + 1, 1, complete, r * n + r, 1, n - r)
        _marginal(value, slope, root_arc, r, mu, slopes, r, r)
        out_starts[0, r], out_starts[1, r] = value + s[r, r], slope + v[r, r]
        if multiroot:
            for i in range(r + 1):
                more = out_starts[0, r] + complete[0, r * n + i]
                more_slope = out_starts[1, r] + complete[1, r * n + i]
                out_prefix[0, i], out_prefix[1, i] = _log_add(out_prefix[0, i], out_prefix[1, i], more, more_slope)
    for i in range(n):
        for j in range(i + 1, n):
            ij, ji = i * n + j, j * n + i
            out_complete[0, ij] = out_prefix[0, j + 1] + root_arc[0, i]
            out_complete[1, ij] = out_prefix[1, j + 1] + root_arc[1, i]
            used = multiroot or i == 0
            out_complete[0, ji] = out_starts[0, j] + prefix[0, i] if used else -np.inf
            out_complete[1, ji] = out_starts[1, j] + prefix[1, i]


@inner
def _outside(s, v, n, multiroot, charts, lines, mu, slopes):
    complete, arc, out, out_between = charts[:, 0], charts[:, 1], charts[:, 2], charts[:, 3]
    for i in range(n):
        for j in range(n - 1, i, -1):
            ij, ji, wider, earlier = i * n + j, j * n + i, n - 1 - j, i
            value, slope = log_dot(out_between, ij + 1, 1, complete, (j + 1) * (n + 1), n, wider)
            out[0, ij], out[1, ij] = _log_add(out[0, ij], out[1, ij], value, slope)
            value, slope = log_dot(out, j, n, arc, i, n, earlier)
            out[0, ij], out[1, ij] = _log_add(out[0, ij], out[1, ij], value, slope)
            value, slope = log_dot(out, ji + n, n, arc, (j + 1) * n + j, n, wider)
            out[0, ji], out[1, ji] = _log_add(out[0, ji], out[1, ji], value, slope)
            value, slope = log_dot(out_between, j, n, complete, i - 1, n, earlier)
            out[0, ji], out[1, ji] = _log_add(out[0, ji], out[1, ji], value, slope)
            right, right_slope = log_dot(out, ij, 1, complete, j * n + j, 1, wider + 1)
            left, left_slope = log_dot(out, j * n, 1, complete, i * n, 1, earlier + 1)
            _marginal(right, right_slope, arc, ij, mu, slopes, i, j)
            _marginal(left, left_slope, arc, ji, mu, slopes, j, i)
            out_between[0, ij], out_between[1, ij] = _log_add(
                right + s[i, j], right_slope + v[i, j], left + s[j, i], left_slope + v[j, i]
            )


@inner
def _marginal(out, out_slope, arc, index, mu, slopes, h, m):
    mu[h, m] = math.exp(min(out + arc[0, index], 0.0))
    slopes[h, m] = mu[h, m] * (out_slope + arc[1, index])


@inner
def _log_add(a, a_slope, b, b_slope):
    """The log of the sum of two items, and its derivative."""
    top = max(a, b)
    if top == -np.inf:
        return -np.inf, 0.0
    p, q = math.exp(a - top), math.exp(b - top)
    return top + math.log(p + q), (p * a_slope + q * b_slope) / (p + q)


@inner
def log_dot(a, ia, a_step, b, ib, b_step, count):
    """The log of the sum of products of two sequences of items, and its derivative."""
    top = -np.inf
    for t in range(count):
        top = max(top, a[0, ia + t * a_step] + b[0, ib + t * b_step])
    if top == -np.inf:
        return -np.inf, 0.0
    total, slope = 0.0, 0.0
    for t in range(count):
        at_a, at_b = ia + t * a_step, ib + t * b_step
        p = math.exp(a[0, at_a] + b[0, at_b] - top)
        total += p
        slope += p * (a[1, at_a] + b[1, at_b])
    return top + math.log(total), slope / total
