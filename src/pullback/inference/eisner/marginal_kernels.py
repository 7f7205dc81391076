"""The kernels of log-partition, marginals and their derivative, in lanes of one floating-point range."""

from __future__ import annotations

import math

import numpy as np

from pullback.inference.checks import INFINITE, NAN, OK
from pullback.inference.compile import called, lean_kernel
from pullback.inference.eisner.batch import OUT_OF_RANGE
from pullback.inference.eisner.packing import clear, lanes_of, pack, pitch_of
from pullback.inference.eisner.scaling import limit_of, to_weights
from pullback.inference.eisner.sweeps import inside, outside
from pullback.inference.lanes import gather, larger, load, splat, store, where_larger
from pullback.inference.scratch import carve


@called
def charts_for(work, at, n, lanes, dtype):
    """Charts of n words (weights, complete, arc, out_complete, out_between), lines of n + 1 vectors (prefix, root_arc,
    out_prefix, out_starts), and where the next array may begin.
    """
    square, line = n * pitch_of(n) * lanes, (n + 1) * lanes
    a, at = carve(work, at, square, dtype)
    b, at = carve(work, at, square, dtype)
    c, at = carve(work, at, square, dtype)
    d, at = carve(work, at, square, dtype)
    e, at = carve(work, at, square, dtype)
    p, at = carve(work, at, line, dtype)
    q, at = carve(work, at, line, dtype)
    r, at = carve(work, at, line, dtype)
    s, at = carve(work, at, line, dtype)
    return (a, b, c, d, e), (p, q, r, s), at


@called
def lane_scratch(work, at, lanes, dtype):
    """What a group needs for each lane: lengths, codes and a line of the dtype; scale and factor; bases."""
    lengths, at = carve(work, at, lanes, dtype)
    codes, at = carve(work, at, lanes, dtype)
    line, at = carve(work, at, lanes, dtype)
    scale, at = carve(work, at, lanes, np.float64)
    factor, at = carve(work, at, lanes, np.float64)
    bases, at = carve(work, at, lanes, np.int64)
    return lengths, codes, line, scale, factor, bases


@called
def _finish(group, order, codes, line, lane_lengths, log_scale, prefix, limit, log_z, status):
    """Write each lane's log-partition and status; `line` holds the largest value of each lane."""
    lanes = lanes_of(codes)
    for lane in range(min(lanes, len(order) - group)):
        sentence = order[group + lane]
        z = prefix[int(lane_lengths[lane]) * lanes + lane]
        log_z[sentence] = np.nan
        if codes[lane] > 0:
            status[sentence] = INFINITE if codes[lane] == 1 else NAN
        elif line[lane] <= limit and z >= 1 / limit:
            status[sentence] = OK
            log_z[sentence] = log_scale[lane] + math.log(z)
        else:
            status[sentence] = OUT_OF_RANGE


@called
def _seed(lane_lengths, n, prefix, out_prefix):
    """1/Z at each sentence's end, zero elsewhere."""
    lanes = lanes_of(prefix)
    for i in range((n + 1) * lanes):
        out_prefix[i] = 0.0
    for lane in range(lanes):
        end = int(lane_lengths[lane]) * lanes + lane
        out_prefix[end] = 1 / prefix[end]


@called
def _unpack(chart, group, order, lengths, size, scale, out):
    """Write each lane of a chart to its sentence, times the lane's scale, and zeros to the padding."""
    lanes = lanes_of(chart)
    pitch = pitch_of(size)
    n = out.shape[-1]
    filled = min(lanes, len(order) - group)
    for h in range(size):  # the outermost loop: a row of the chart stays in the first cache for all lanes
        for lane in range(filled):
            sentence = order[group + lane]
            length, factor = lengths[sentence] if h < lengths[sentence] else 0, scale[lane]
            for m in range(length):
                out[sentence, h, m] = chart[(h * pitch + m) * lanes + lane] * factor
            clear(out, sentence, h, length)
    for lane in range(filled):
        for h in range(size, n):
            clear(out, order[group + lane], h, 0)


@lean_kernel
def marginals(worker, workers, scores, lengths, order, multiroot, scratch, mu, log_z, status):
    """Marginals `[B, n, n]`, unless there is no room for them, and log-partitions."""
    lanes = lanes_of(scores)
    first = worker * lanes
    if first >= len(order):
        return
    work, dtype = scratch[worker], scores.dtype
    charts, lines, at = charts_for(work, 0, lengths[order[first]], lanes, dtype)
    weights, prefix = charts[0], lines[0]
    lane_lengths, codes, line, log_scale, factor, bases = lane_scratch(work, at, lanes, dtype)
    for group in range(first, len(order), workers * lanes):
        n = pack(scores, scores.shape[-1], order, group, lengths, weights, lane_lengths, bases, codes)
        to_weights(weights, n, log_scale, line, factor)
        peak = inside(n, lanes, multiroot, charts, lines, splat(scores, 0.0))
        if mu.size > 0:
            _seed(lane_lengths, n, prefix, lines[2])
            peak = outside(n, lanes, multiroot, charts, lines, peak)
        store(line, 0, peak)
        _finish(group, order, codes, line, lane_lengths, log_scale, prefix, limit_of(scores), log_z, status)
        if mu.size > 0:
            for lane in range(lanes):
                factor[lane] = 1.0
            _unpack(weights, group, order, lengths, n, factor, mu)


@lean_kernel
def marginals_vjp(worker, workers, scores, lengths, order, multiroot, scratch, direction, out, log_z, status):
    lanes = lanes_of(scores)
    first = worker * lanes
    if first >= len(order):
        return
    work, dtype = scratch[worker], scores.dtype
    (w, c, a, oc, ob), (p, r, op, os), at = charts_for(work, 0, lengths[order[first]], lanes, dtype)
    (dw, dc, da, doc, dob), (dp, dr, dop, dos), at = charts_for(work, at, lengths[order[first]], lanes, dtype)
    charts, lines = ((w, dw), (c, dc), (a, da), (oc, doc), (ob, dob)), ((p, dp), (r, dr), (op, dop), (os, dos))
    lane_lengths, codes, line, log_scale, factor, bases = lane_scratch(work, at, lanes, dtype)
    for group in range(first, len(order), workers * lanes):
        n = pack(scores, scores.shape[-1], order, group, lengths, w, lane_lengths, bases, codes)
        to_weights(w, n, log_scale, line, factor)
        _pack_direction(direction, n, bases, w, dw, line, factor)
        peak = inside(n, lanes, multiroot, charts, lines, splat(scores, 0.0))
        _seed(lane_lengths, n, p, op)
        _seed_slope(lane_lengths, n, dp, op, dop)
        store(line, 0, outside(n, lanes, multiroot, charts, lines, peak))
        _finish(group, order, codes, line, lane_lengths, log_scale, p, limit_of(scores), log_z, status)
        _unpack(dw, group, order, lengths, n, factor, out)


@called
def _pack_direction(direction, n, bases, weights, slopes, line, factor):
    """Write the slopes of the weights, w * v, with each lane's v divided by its largest entry, kept in `factor`."""
    lanes = lanes_of(weights)
    row = pitch_of(n) * lanes
    full = direction.shape[-1]
    zero = splat(weights, 0.0)
    top = zero
    for h in range(n):
        for m in range(n):
            used = load(weights, h * row + m * lanes)
            v = where_larger(used, zero, gather(direction, bases, h * full + m), zero)
            top = larger(zero - v, larger(v, top))
            store(slopes, h * row + m * lanes, v)
    top = where_larger(top, zero, top, splat(weights, 1.0))
    store(line, 0, top)
    for lane in range(lanes):
        factor[lane] = line[lane]
    for h in range(n):
        for m in range(n):
            at = h * row + m * lanes
            store(slopes, at, load(slopes, at) / top * load(weights, at))


@called
def _seed_slope(lane_lengths, n, prefix_slope, out_prefix, out_slope):
    """The derivative of 1/Z is -Z'/Z^2."""
    lanes = lanes_of(out_prefix)
    for i in range((n + 1) * lanes):
        out_slope[i] = 0.0
    for lane in range(lanes):
        end = int(lane_lengths[lane]) * lanes + lane
        out_slope[end] = -prefix_slope[end] * out_prefix[end] * out_prefix[end]
