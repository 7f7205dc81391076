"""Exact samples of projective trees, top-down from the inside chart."""

from __future__ import annotations

import math

import numpy as np

from pullback.inference.checks import INFEASIBLE, INFINITE, NAN, OK
from pullback.inference.compile import inner, kernel
from pullback.inference.eisner import log_domain
from pullback.inference.eisner.batch import OUT_OF_RANGE
from pullback.inference.eisner.marginal_kernels import charts_for, lane_scratch
from pullback.inference.eisner.packing import lanes_of, pack, pitch_of
from pullback.inference.eisner.scaling import limit_of, to_weights
from pullback.inference.eisner.sweeps import inside
from pullback.inference.lanes import splat
from pullback.inference.random_kernels import uniform
from pullback.inference.wide import gap, nothing, plus


@kernel
def sample(worker, workers, scores, lengths, order, multiroot, scratch, seeds, heads, status):
    """Draw heads `[B, n]` of float64 scores; a sentence whose path meets a value too small gets OUT_OF_RANGE."""
    lanes = lanes_of(scores)
    first = worker * lanes
    if first >= len(order):
        return
    largest = lengths[order[first]]
    work, dtype = scratch[worker], scores.dtype
    charts, lines, at = charts_for(work, 0, largest, lanes, dtype)
    weights, complete, arc, prefix, root_arc = charts[0], charts[1], charts[2], lines[0], lines[1]
    items = complete.reshape(1, -1), arc.reshape(1, -1), prefix.reshape(1, -1), root_arc.reshape(1, -1)
    lane_lengths, codes, line, log_scale, factor, bases = lane_scratch(work, at, lanes, dtype)
    stack = np.empty((2 * largest + 4, 2), np.int64)
    for group in range(first, len(order), workers * lanes):
        n = pack(scores, scores.shape[-1], order, group, lengths, weights, lane_lengths, bases, codes)
        to_weights(weights, n, log_scale, line, factor)
        inside(n, lanes, multiroot, charts, lines, splat(scores, 0.0))
        for lane in range(min(lanes, len(order) - group)):
            b = order[group + lane]
            if codes[lane] > 0:
                status[b] = INFINITE if codes[lane] == 1 else NAN
            else:
                view = (*items, pitch_of(n), lanes, lane)
                found = _descend(view, lengths[b], multiroot, False, limit_of(scores), seeds[b], stack, heads[b])
                status[b] = OK if found else OUT_OF_RANGE


@kernel
def sample_in_logs(worker, workers, scores, lengths, seeds, multiroot, heads, status):
    """The same draws from charts in logarithms, for scores of any size."""
    n = scores.shape[-1]
    s, v, zero = np.empty((3, n * n)), np.empty((n, n)), np.zeros((n, n))
    charts, lines = np.empty((2, 4, n * n)), np.empty((2, 4, n + 1))
    stack = np.empty((2 * n + 4, 2), np.int64)
    for b in range(worker, len(scores), workers):
        length = lengths[b]
        log_domain.shifted(scores[b], zero, length, s, v)
        log_domain.inside(s, v, 0.0, length, multiroot, charts[0], charts[1], lines[0], lines[1])
        if lines[0, 0, length] == -np.inf:
            status[b] = INFEASIBLE
        else:
            view = (charts[0], charts[1], lines[0], lines[1], length, 1, 0)
            _descend(view, length, multiroot, True, 0.0, seeds[b], stack, heads[b])
            status[b] = OK


@inner
def _descend(view, length, multiroot, logs, limit, seed, stack, heads):
    """Draw one tree; False when an item on the way is too small to trust. `view` is one lane of the inside charts,
    each with a first axis for the numbers of an item.
    """
    complete, arc, prefix, root_arc, pitch, lanes, lane = view
    row, drawn, top, j = pitch * lanes, 0, 0, length
    while j > 0:
        end = prefix[0, j * lanes + lane]
        if not logs and not (1 / limit <= end <= limit):
            return False
        u, drawn = uniform(seed, drawn)
        r = _choose(root_arc, lane, lanes, complete, (j - 1) * lanes + lane, row, j, logs, u)
        heads[r] = r
        u, drawn = uniform(seed, drawn)
        count = r + 1 if multiroot else 1
        start = _choose(prefix, lane, lanes, complete, r * row + lane, lanes, count, logs, u)
        stack[top, 0], stack[top, 1] = r, j - 1
        stack[top + 1, 0], stack[top + 1, 1] = r, start
        top, j = top + 2, start
    while top > 0:
        top -= 1
        h, other = stack[top, 0], stack[top, 1]
        if h == other:
            continue
        hh, ho, width = h * row + h * lanes + lane, h * row + other * lanes + lane, abs(other - h)
        if not logs and complete[0, ho] < 1 / limit:
            return False
        u, drawn = uniform(seed, drawn)
        if h < other:
            k = h + 1 + _choose(arc, hh + lanes, lanes, complete, ho + row, row, width, logs, u)
        else:
            oo = other * row + other * lanes + lane
            k = other + _choose(complete, oo, row, arc, ho, lanes, width, logs, u)
        heads[k] = h
        low, high = min(h, k), max(h, k)
        u, drawn = uniform(seed, drawn)
        left, right = low * row + low * lanes + lane, high * row + (low + 1) * lanes + lane
        split = low + _choose(complete, left, lanes, complete, right, lanes, high - low, logs, u)
        stack[top, 0], stack[top, 1] = k, other
        stack[top + 1, 0], stack[top + 1, 1] = high, split + 1
        stack[top + 2, 0], stack[top + 2, 1] = low, split
        top += 3
    return True


@inner
def _choose(a, ia, a_step, b, ib, b_step, count, logs, u):
    """Draw t < count with probability proportional to the product of a[ia + t * a_step] and b[ib + t * b_step]."""
    top, total = nothing(), 0.0
    if logs:
        for t in range(count):
            log = _log(a, ia + t * a_step, b, ib + t * b_step)
            top = log if gap(log, top) > 0.0 else top
    for t in range(count):
        total += _product(a, ia + t * a_step, b, ib + t * b_step, logs, top)
    below, last = 0.0, 0
    for t in range(count):
        part = _product(a, ia + t * a_step, b, ib + t * b_step, logs, top)
        below += part
        if part > 0:
            last = t
            if below > u * total:
                break
    return last


@inner
def _product(a, ia, b, ib, logs, top):
    """The product of two items, over that of the largest if they are logs."""
    return math.exp(gap(_log(a, ia, b, ib), top)) if logs else a[0, ia] * b[0, ib]


@inner
def _log(a, ia, b, ib):
    return plus(log_domain.get(a, ia), log_domain.get(b, ib))
