"""The kernels around the loops of a recursion: one for each operation, with words in <angle brackets> that structures and kinds
of number fill in.
"""

HEAD = '''\
"""Generated from rules.py by `python -m pullback.inference.engine.rules`: do not edit.

The loops of the recursion for examples side by side in SIMD lanes, and the kernels of all operations.
"""

# ruff: noqa
from __future__ import annotations

import numpy as np

from pullback.inference.front.checks import INFEASIBLE, OK
from pullback.inference._numba.compile import called, no_alloc_kernel
from pullback.inference._numba.vectors import load_wide, splat_wide, widen
from pullback.inference._numba.lanes import larger, load, splat, splat_index, store, store_index, where_larger
from pullback.inference.engine.rules.choices import choose, choose_scaled, uniform
from pullback.inference.engine.rules.lanewise import (
    centre, expect, finish, finish_far, finish_scaled, flatten, lane_scratch, limit_of, normalise, pack_direction, places_of,
    seed, status_of, to_far, to_scaled, weigh,
)
from pullback.inference.engine.rules.batch import OUT_OF_RANGE
from pullback.inference.engine.rules.numbers import at, constant, plus, put, times, times_plus, value_of
from pullback.inference.engine.rules.packing import clear, clear_all, lanes_of, pack, pitch_of, scale, unpack
from pullback.inference._numba.scratch import carve
from pullback.inference.<folder>.scaling import to_weights

OPTIONS = <option_names>
UPPER = <upper>
CHARTS = {
    "argmax": <best_charts>,
    <charts>
}
LINES = <lines>
'''

START = """\
    side, lanes, dtype<whole> = scores.shape[-1], lanes_of(scores), scores.dtype<whole_of>
    first = worker * lanes
    if first >= len(order):
        return
    largest, work, at = lengths[order[first]], scratch[worker], 0
    square, line, parts = largest * pitch_of(largest) * lanes, (largest + 1) * lanes, (largest * side + 1) * lanes
    <carve>
    lane_lengths, codes, peaks, log_scale, factor, bases, stack = lane_scratch(work, at, lanes, dtype, largest)
    for group in range(first, len(order), workers * lanes):
        n = pack(scores, order, group, lengths, UPPER, weights, lane_lengths, bases, codes)
"""

ARGMAX = '''

@no_alloc_kernel
def argmax(worker, workers, scores, lengths, order, <options>scratch, z, status):
    """Write the best structures of `[B, n, n]` scores as zeros and ones; a status other than OK leaves zeros."""
<start>
        best(n, side, lanes, <options>weights, <inside>, <choices>)
        for lane in range(min(lanes, len(order) - group)):
            example = order[group + lane]
            size = lengths[example]
            clear(z, example, 0)
            found = size == 0 or <goal>[goal_of(size, n, lanes) + lane] > -np.inf
            status[example] = status_of(codes[lane], found, INFEASIBLE)
            if status[example] == OK and size > 0:
                follow(size, n, lanes, lane, <options><choices>, stack, z.reshape(-1), example * side * side, side)
'''

MARGINALS = '''

@no_alloc_kernel
def marginals<kind>(worker, workers, scores, lengths, order, <options>scratch, <like>mu, log_z, status):
    """Marginals `[B, n, n]`, unless there is no room for them, and log-partitions<of>."""
<start>
        <to_weights>
        peak = inside(n, side, lanes, <options><weights>, <inside>, splat(scores, 1.0))
        places_of(goal_of, n, lane_lengths, bases)
        seed(lane_lengths, n, <goal>, bases, <seeds>)
        store(peaks, 0, peak)
        if mu.size > 0:
            outer = outside(n, side, lanes, <options><weights>, <inside>, <outside>, <seeds>, splat(scores, 1.0))
            store(peaks, 0, peak * outer)
        else:
            expect(lane_lengths, seeds, peaks)
        <finish>
        if mu.size > 0:
            <flatten>
            unpack(weights, group, order, n, mu, bases)
'''

PRODUCT = '''

@no_alloc_kernel
def product<kind>(worker, workers, scores, lengths, order, <options>scratch, <like>direction, out, log_z, status):
    """Write the derivative of the marginals along a direction<of>."""
<start>
        <to_weights>
        pack_direction(direction, n, UPPER, order, group, weights, d_weights, bases)
        centre(d_weights, weights, n, side, UPPER)
        normalise(d_weights, n, side, UPPER, peaks, factor)
        weigh(d_weights, weights, n, side, UPPER)
        peak = inside(n, side, lanes, <options><weights>, <inside>, splat(scores, 1.0))
        places_of(goal_of, n, lane_lengths, bases)
        seed(lane_lengths, n, <goal>, bases, <seeds>)
        outer = outside(n, side, lanes, <options><weights>, <inside>, <outside>, <seeds>, splat(scores, 1.0))
        store(peaks, 0, peak * outer)
        <finish>
        flatten(<weights>, n * side)
        scale(weights, n, side, lane_lengths, factor, peaks)
        unpack(weights, group, order, n, out, bases)
'''

ENTROPIES = '''

@no_alloc_kernel
def entropies<kind>(worker, workers, scores, lengths, order, <options>scratch, <like>out, value, status):
    """Entropies, and their gradients, unless there is no room for them<of>."""
<start>
        <to_weights>
        clear_all(n_weights, n * side * lanes)
        inside(n, side, lanes, <options><weights>, <inside>, splat(scores, 1.0))
        places_of(goal_of, n, lane_lengths, bases)
        <finish>
        for lane in range(min(lanes, len(order) - group)):
            value[order[group + lane]] = max(n_<goal_value>[bases[lane]], 0.0) if lane_lengths[lane] > 0 else 0.0
        if out.size > 0:
            seed(lane_lengths, n, <goal>, bases, <seeds>)
            outside(n, side, lanes, <options><weights>, <inside>, <outside>, <seeds>, splat(scores, 1.0))
            flatten(<weights>, n * side)
            unpack(weights, group, order, n, out, bases)
'''

SAMPLE = '''

@no_alloc_kernel
def sample<kind>(worker, workers, scores, lengths, order, <options>scratch, <like>streams, z, log_z, status):
    """Draw structures<of>; an example whose path meets a value too small gets OUT_OF_RANGE."""
<start>
        <to_weights>
        store(peaks, 0, inside(n, side, lanes, <options><weights>, <inside>, splat(scores, 1.0)))
        places_of(goal_of, n, lane_lengths, bases)
        <finish>
        for lane in range(min(lanes, len(order) - group)):
            example = order[group + lane]
            size = lengths[example]
            clear(z, example, 0)
            if status[example] == OK and size > 0:
                found = <drawn>size, n, lanes, lane, <options><inside>, <least>streams[example],
                    stack, z.reshape(-1), example * side * side, side,
                )
                status[example] = OK if found else OUT_OF_RANGE
'''
