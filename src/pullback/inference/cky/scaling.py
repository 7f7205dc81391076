"""From lanes of scores to lanes of weights in the range of floating point.

Every tree over w words has 2 w - 1 spans, so that a number g may be taken off every score of an example: log Z of the
weights exp(s(i, j) - g) is log Z - (2 w - 1) g. There are about 4^w trees, two per span: with exp(g) twice the mean of
exp(s), the value of a typical span is near one. What is lost to underflow is below the smallest number, and its share
of a marginal is that times an outside value over Z: an example whose inside or outside values are too large is computed
again in a wider range.
"""

from __future__ import annotations

import math

import numpy as np

from pullback.inference._numba.compile import called
from pullback.inference._numba.lanes import exp, larger, load, splat, store, where_larger
from pullback.inference.engine.rules.packing import lanes_of


@called
def to_weights(packed, n, side, lane_lengths, log_scale, line, factor):
    """Turn a chart of scores of n words into weights, in place, and write (2 w - 1) g of each lane to `log_scale`.

    `line` and `factor` are scratch: one vector, and one float64 per lane.
    """
    lanes = lanes_of(packed)
    row = side * lanes
    top, total = splat(packed, -np.inf), splat(packed, 0.0)
    for i in range(n):
        for j in range(i, n):
            top = larger(load(packed, i * row + j * lanes), top)
    top = where_larger(top, splat(packed, -np.inf), top, splat(packed, 0.0))
    for i in range(n):
        for j in range(i, n):
            weight = exp(load(packed, i * row + j * lanes) - top)
            total = total + weight
            store(packed, i * row + j * lanes, weight)
    store(line, 0, total)
    for lane in range(lanes):
        spans = lane_lengths[lane] * (lane_lengths[lane] + 1) / 2
        some = line[lane] > 0.0 and spans > 0
        log_scale[lane] = math.log(2.0 * line[lane] / spans) if some else 0.0
        line[lane] = spans / (2.0 * line[lane]) if some else 0.0
    inverse = load(line, 0)
    for i in range(n):
        for j in range(i, n):
            store(packed, i * row + j * lanes, load(packed, i * row + j * lanes) * inverse)
    store(line, 0, top)
    for lane in range(lanes):
        log_scale[lane] = (2 * lane_lengths[lane] - 1) * (log_scale[lane] + line[lane])
