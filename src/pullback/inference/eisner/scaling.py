"""From lanes of scores to lanes of weights in the range of floating point.

Each word m has a scale of its own,

    c_m = max_h s[h, m] + log min(2.25, sum_h exp(s[h, m] - max_h s[h, m])),

so that the weights exp(s[h, m] - c_m) keep the value of a typical span near one: between scores that are all alike (n
words have about 6.75^n projective trees) and scores whose best heads do not fit together. Sums of products of weights
lose accuracy only by leaving the range of floating point, and values that are too small do no harm as long as none is
too large: what is lost of an inside value by underflow is below the smallest number, and its share of a marginal is
that times an outside value. So a sentence is accepted when no value exceeds `limit_of`, and otherwise computed in a
wider range.
"""

from __future__ import annotations

import math

import numpy as np

from pullback.inference._numba.compile import called
from pullback.inference._numba.lanes import exp_by_series, larger, load, splat, store, where_larger
from pullback.inference.engine.rules.packing import lanes_of

_TREES_PER_WORD = 2.25


@called
def to_weights(packed, n, side, lane_lengths, log_scale, line, factor):
    """Turn a chart of scores of n words into weights, in place, and write the sum of each lane's scales to `log_scale`.

    `line` and `factor` are scratch: one vector, and one float64 per lane.
    """
    lanes = lanes_of(packed)
    row = side * lanes
    for lane in range(lanes):
        log_scale[lane], factor[lane] = 0.0, 1.0
    for m in range(n):
        top = splat(packed, -np.inf)
        for h in range(n):
            top = larger(load(packed, h * row + m * lanes), top)
        top = where_larger(top, splat(packed, -np.inf), top, splat(packed, 0.0))
        total = splat(packed, 0.0)
        for h in range(n):
            weight = exp_by_series(load(packed, h * row + m * lanes) - top)
            total = total + weight
            store(packed, h * row + m * lanes, weight)
        few = where_larger(total, splat(packed, _TREES_PER_WORD), splat(packed, _TREES_PER_WORD), total)
        few = where_larger(few, splat(packed, 0.0), few, splat(packed, 1.0))
        inverse = splat(packed, 1.0) / few
        for h in range(n):
            store(packed, h * row + m * lanes, load(packed, h * row + m * lanes) * inverse)
        store(line, 0, top)
        for lane in range(lanes):
            log_scale[lane] += line[lane]
        store(line, 0, few)
        for lane in range(lanes):
            factor[lane] *= line[lane]
        if m % 256 == 255 or m == n - 1:
            for lane in range(lanes):
                log_scale[lane] += math.log(factor[lane])
                factor[lane] = 1.0
