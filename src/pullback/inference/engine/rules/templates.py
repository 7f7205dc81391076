"""The kernels around the loops of a recursion, the same for every structure but for names in <angle brackets>."""

HEAD = '''\
"""Generated from rules.py by `python -m pullback.inference.engine.rules`: do not edit.

The loops of the recursion for examples side by side in SIMD lanes, and the kernels of all operations.
"""

# ruff: noqa
from __future__ import annotations

import math

import numpy as np

from pullback.inference.front.checks import INFEASIBLE, INFINITE, NAN, OK
from pullback.inference.front.modes import Mode
from pullback.inference._numba.compile import called, no_alloc_kernel
from pullback.inference._numba.vectors import load_wide, narrow, splat_wide, widen
from pullback.inference._numba.lanes import larger, load, splat, splat_index, store, store_index, where_larger
from pullback.inference.engine.rules.batch import OUT_OF_RANGE
from pullback.inference.engine.rules.choices import choose, choose_log, choose_scaled, uniform
from pullback.inference.engine.rules.lanewise import (
    expect, finish, finish_scaled, flatten, flatten_tangents, lane_scratch, limit_of, normalise, pack_direction, seed,
    seed_scaled, seed_tangent, weigh,
)
from pullback.inference.engine.rules.logs import (
    OUT, OUT_TANGENT, TANGENT, VALUE, log_sum, mean_tangent, plus_wide, push, push_tangent, put_wide, wide_of,
)
from pullback.inference.engine.rules.numbers import at, constant, plus, put, times, times_plus, value_of
from pullback.inference.engine.rules.packing import clear, clear_all, lanes_of, pack, pitch_of, scale, unpack
from pullback.inference._numba.scratch import carve
from pullback.inference.<folder>.scaling import centre, to_scaled, to_weights

OPTIONS = <option_names>
UPPER = <upper>
CHARTS = {
    "argmax": <best_charts>, "marginals": <weight_charts>, "product": 2 * <weight_charts>,
    "marginals_scaled": 2 * <weight_charts>, "product_scaled": 3 * <weight_charts>, "logs": <log_charts>,
}
LINES = <lines>
'''

ARGMAX = '''

@no_alloc_kernel
def argmax(worker, workers, scores, lengths, order, <options>scratch, z, status):
    """Write the best structures of `[B, n, n]` scores as zeros and ones; a status other than OK leaves zeros."""
    side, lanes, dtype = scores.shape[-1], lanes_of(scores), scores.dtype
    first = worker * lanes
    if first >= len(order):
        return
    largest, work, at = lengths[order[first]], scratch[worker], 0
    square, line = largest * pitch_of(largest) * lanes, (largest + 1) * lanes
    weights, at = carve(work, at, (largest * side + 1) * lanes, dtype)
    <carve_best>
    <carve_choices>
    lane_lengths, codes, _, _, _, bases, stack = lane_scratch(work, at, lanes, dtype, largest)
    flat, cells = z.reshape(-1), side * side
    for group in range(first, len(order), workers * lanes):
        n = pack(scores, order, group, lengths, UPPER, weights, lane_lengths, bases, codes)
        best(n, side, lanes, <options>weights, <inside>, <choices>)
        for lane in range(min(lanes, len(order) - group)):
            example = order[group + lane]
            size = lengths[example]
            clear(z, example, 0)
            if codes[lane] > 0:
                status[example] = INFINITE if codes[lane] == 1 else NAN
            elif size > 0 and <goal>[goal_of(size, n, lanes) + lane] == -np.inf:
                status[example] = INFEASIBLE
            elif size > 0:
                follow(size, n, lanes, lane, <options><choices>, stack, flat, example * cells, side)
'''

MARGINALS = '''

@no_alloc_kernel
def marginals(worker, workers, scores, lengths, order, <options>scratch, mu, log_z, status):
    """Marginals `[B, n, n]`, unless there is no room for them, and log-partitions."""
    side, lanes, dtype = scores.shape[-1], lanes_of(scores), scores.dtype
    first = worker * lanes
    if first >= len(order):
        return
    largest, work, at = lengths[order[first]], scratch[worker], 0
    square, line = largest * pitch_of(largest) * lanes, (largest + 1) * lanes
    weights, at = carve(work, at, (largest * side + 1) * lanes, dtype)
    <carve_inside>
    <carve_outside>
    seeds, at = carve(work, at, line, dtype)
    lane_lengths, codes, peaks, log_scale, factor, bases, _ = lane_scratch(work, at, lanes, dtype, largest)
    for group in range(first, len(order), workers * lanes):
        n = pack(scores, order, group, lengths, UPPER, weights, lane_lengths, bases, codes)
        to_weights(weights, n, side, lane_lengths, log_scale, peaks, factor)
        peak = inside(n, side, lanes, <options>weights, <inside>, splat(scores, 1.0))
        for lane in range(lanes):
            bases[lane] = goal_of(int(lane_lengths[lane]), n, lanes) + lane
        seed(lane_lengths, n, <goal>, bases, seeds)
        store(peaks, 0, peak)
        if mu.size > 0:
            outer = outside(n, side, lanes, <options>weights, <inside>, <outside>, seeds, splat(scores, 1.0))
            store(peaks, 0, peak * outer)
        else:
            expect(lane_lengths, seeds, peaks)
        finish(group, order, codes, peaks, lane_lengths, log_scale, <goal>, bases, log_z, status)
        if mu.size > 0:
            unpack(weights, group, order, n, mu, bases)
'''

PRODUCT = '''

@no_alloc_kernel
def product(worker, workers, scores, lengths, order, <options>scratch, direction, out, log_z, status):
    """Write the derivative of the marginals along a direction."""
    side, lanes, dtype = scores.shape[-1], lanes_of(scores), scores.dtype
    first = worker * lanes
    if first >= len(order):
        return
    largest, work, at = lengths[order[first]], scratch[worker], 0
    square, line = largest * pitch_of(largest) * lanes, (largest + 1) * lanes
    weights, at = carve(work, at, (largest * side + 1) * lanes, dtype)
    d_weights, at = carve(work, at, (largest * side + 1) * lanes, dtype)
    <carve_inside>
    <carve_outside>
    <carve_tangents>
    seeds, at = carve(work, at, line, dtype)
    d_seeds, at = carve(work, at, line, dtype)
    lane_lengths, codes, peaks, log_scale, factor, bases, _ = lane_scratch(work, at, lanes, dtype, largest)
    for group in range(first, len(order), workers * lanes):
        n = pack(scores, order, group, lengths, UPPER, weights, lane_lengths, bases, codes)
        to_weights(weights, n, side, lane_lengths, log_scale, peaks, factor)
        pack_direction(direction, n, UPPER, order, group, weights, 0.0, d_weights, bases)
        centre(d_weights, weights, 0.0, n, side, lane_lengths)
        normalise(d_weights, n, side, UPPER, peaks, factor)
        weigh(d_weights, weights, n, side, UPPER)
        peak = inside(n, side, lanes, <options>(weights, d_weights), <pair_inside>, splat(scores, 1.0))
        for lane in range(lanes):
            bases[lane] = goal_of(int(lane_lengths[lane]), n, lanes) + lane
        seed(lane_lengths, n, <goal>, bases, seeds)
        seed_tangent(lane_lengths, n, d_<goal>, bases, seeds, d_seeds)
        outer = outside(
            n, side, lanes, <options>(weights, d_weights), <pair_inside>, <pair_outside>, (seeds, d_seeds), splat(scores, 1.0)
        )
        store(peaks, 0, peak * outer)
        finish(group, order, codes, peaks, lane_lengths, log_scale, <goal>, bases, log_z, status)
        scale(d_weights, n, side, lane_lengths, factor, peaks)
        unpack(d_weights, group, order, n, out, bases)
'''

SCALED = '''

@no_alloc_kernel
def marginals_scaled(worker, workers, scores, lengths, order, <options>scratch, like, mu, log_z, status):
    """The same with an exponent for each number, integers of the dtype of `like`."""
    side, lanes, dtype, whole = scores.shape[-1], lanes_of(scores), scores.dtype, like.dtype
    first = worker * lanes
    if first >= len(order):
        return
    largest, work, at = lengths[order[first]], scratch[worker], 0
    square, line = largest * pitch_of(largest) * lanes, (largest + 1) * lanes
    weights, at = carve(work, at, (largest * side + 1) * lanes, dtype)
    e_weights, at = carve(work, at, (largest * side + 1) * lanes, whole)
    <carve_inside>
    <carve_outside>
    <carve_exponents>
    seeds, at = carve(work, at, line, dtype)
    e_seeds, at = carve(work, at, line, whole)
    lane_lengths, codes, peaks, log_scale, factor, bases, _ = lane_scratch(work, at, lanes, dtype, largest)
    for group in range(first, len(order), workers * lanes):
        n = pack(scores, order, group, lengths, UPPER, weights, lane_lengths, bases, codes)
        to_scaled(weights, e_weights, n, side, lane_lengths, log_scale, factor)
        inside(n, side, lanes, <options>(weights, e_weights), <scaled_inside>, splat(scores, 0.0))
        for lane in range(lanes):
            bases[lane] = goal_of(int(lane_lengths[lane]), n, lanes) + lane
        finish_scaled(group, order, codes, lane_lengths, log_scale, (<goal>, e_<goal>), bases, log_z, status)
        if mu.size > 0:
            seed_scaled(lane_lengths, n, (<goal>, e_<goal>), bases, (seeds, e_seeds))
            outside(
                n, side, lanes, <options>(weights, e_weights), <scaled_inside>, <scaled_outside>, (seeds, e_seeds),
                splat(scores, 0.0),
            )
            flatten((weights, e_weights), n * side)
            unpack(weights, group, order, n, mu, bases)


@no_alloc_kernel
def product_scaled(worker, workers, scores, lengths, order, <options>scratch, like, direction, out, log_z, status):
    """The same with an exponent for each number."""
    side, lanes, dtype, whole = scores.shape[-1], lanes_of(scores), scores.dtype, like.dtype
    first = worker * lanes
    if first >= len(order):
        return
    largest, work, at = lengths[order[first]], scratch[worker], 0
    square, line = largest * pitch_of(largest) * lanes, (largest + 1) * lanes
    weights, at = carve(work, at, (largest * side + 1) * lanes, dtype)
    d_weights, at = carve(work, at, (largest * side + 1) * lanes, dtype)
    e_weights, at = carve(work, at, (largest * side + 1) * lanes, whole)
    <carve_inside>
    <carve_outside>
    <carve_tangents>
    <carve_exponents>
    seeds, at = carve(work, at, line, dtype)
    d_seeds, at = carve(work, at, line, dtype)
    e_seeds, at = carve(work, at, line, whole)
    lane_lengths, codes, peaks, log_scale, factor, bases, _ = lane_scratch(work, at, lanes, dtype, largest)
    for group in range(first, len(order), workers * lanes):
        n = pack(scores, order, group, lengths, UPPER, weights, lane_lengths, bases, codes)
        to_scaled(weights, e_weights, n, side, lane_lengths, log_scale, factor)
        pack_direction(direction, n, UPPER, order, group, weights, 0.0, d_weights, bases)
        centre(d_weights, weights, 0.0, n, side, lane_lengths)
        normalise(d_weights, n, side, UPPER, peaks, factor)
        weigh(d_weights, weights, n, side, UPPER)
        inside(n, side, lanes, <options>(weights, d_weights, e_weights), <scaled_pairs_inside>, splat(scores, 0.0))
        for lane in range(lanes):
            bases[lane] = goal_of(int(lane_lengths[lane]), n, lanes) + lane
        whole_goal = (<goal>, d_<goal>, e_<goal>)
        finish_scaled(group, order, codes, lane_lengths, log_scale, whole_goal, bases, log_z, status)
        seed_scaled(lane_lengths, n, whole_goal, bases, (seeds, d_seeds, e_seeds))
        outside(
            n, side, lanes, <options>(weights, d_weights, e_weights), <scaled_pairs_inside>, <scaled_pairs_outside>,
            (seeds, d_seeds, e_seeds), splat(scores, 0.0),
        )
        flatten_tangents((weights, d_weights, e_weights), n * side)
        scale(d_weights, n, side, lane_lengths, factor, peaks)
        unpack(d_weights, group, order, n, out, bases)
'''

SAMPLE = '''

@no_alloc_kernel
def sample(worker, workers, scores, lengths, order, <options>scratch, seeds, z, status):
    """Draw structures; an example whose path meets a value too small gets OUT_OF_RANGE."""
    side, lanes, dtype = scores.shape[-1], lanes_of(scores), scores.dtype
    first = worker * lanes
    if first >= len(order):
        return
    largest, work, at = lengths[order[first]], scratch[worker], 0
    square, line = largest * pitch_of(largest) * lanes, (largest + 1) * lanes
    weights, at = carve(work, at, (largest * side + 1) * lanes, dtype)
    <carve_inside>
    lane_lengths, codes, peaks, log_scale, factor, bases, stack = lane_scratch(work, at, lanes, dtype, largest)
    flat, cells, limit = z.reshape(-1), side * side, limit_of(scores)
    for group in range(first, len(order), workers * lanes):
        n = pack(scores, order, group, lengths, UPPER, weights, lane_lengths, bases, codes)
        to_weights(weights, n, side, lane_lengths, log_scale, peaks, factor)
        store(peaks, 0, inside(n, side, lanes, <options>weights, <inside>, splat(scores, 1.0)))
        for lane in range(min(lanes, len(order) - group)):
            example = order[group + lane]
            size = lengths[example]
            clear(z, example, 0)
            if codes[lane] > 0:
                status[example] = INFINITE if codes[lane] == 1 else NAN
            elif size > 0:
                least = peaks[lane] / limit
                found = peaks[lane] <= limit and <goal>[goal_of(size, n, lanes) + lane] >= least and draw(
                    size, n, lanes, lane, <options><inside>, least, seeds[example], stack, flat, example * cells, side
                )
                status[example] = OK if found else OUT_OF_RANGE


@no_alloc_kernel
def sample_scaled(worker, workers, scores, lengths, order, <options>scratch, like, seeds, z, log_z, status):
    """The same with an exponent for each number."""
    side, lanes, dtype, whole = scores.shape[-1], lanes_of(scores), scores.dtype, like.dtype
    first = worker * lanes
    if first >= len(order):
        return
    largest, work, at = lengths[order[first]], scratch[worker], 0
    square, line = largest * pitch_of(largest) * lanes, (largest + 1) * lanes
    weights, at = carve(work, at, (largest * side + 1) * lanes, dtype)
    e_weights, at = carve(work, at, (largest * side + 1) * lanes, whole)
    <carve_inside>
    <carve_inside_exponents>
    lane_lengths, codes, peaks, log_scale, factor, bases, stack = lane_scratch(work, at, lanes, dtype, largest)
    flat, cells = z.reshape(-1), side * side
    for group in range(first, len(order), workers * lanes):
        n = pack(scores, order, group, lengths, UPPER, weights, lane_lengths, bases, codes)
        to_scaled(weights, e_weights, n, side, lane_lengths, log_scale, factor)
        inside(n, side, lanes, <options>(weights, e_weights), <scaled_inside>, splat(scores, 0.0))
        for lane in range(lanes):
            bases[lane] = goal_of(int(lane_lengths[lane]), n, lanes) + lane
        finish_scaled(group, order, codes, lane_lengths, log_scale, (<goal>, e_<goal>), bases, log_z, status)
        for lane in range(min(lanes, len(order) - group)):
            example = order[group + lane]
            size = lengths[example]
            clear(z, example, 0)
            if status[example] == OK and size > 0:
                draw_scaled(
                    size, n, lanes, lane, <options><scaled_inside>, seeds[example], stack, flat, example * cells, side
                )
'''

LOGS = '''

@no_alloc_kernel
def in_logs(worker, workers, scores, lengths, order, <options>scratch, mode, direction, seeds, out, value, status):
    """All sums in logarithms, for scores of any size: values (log-partitions or entropies), and what `mode` says of parts."""
    side, lanes, dtype = scores.shape[-1], lanes_of(scores), scores.dtype
    first = worker * lanes
    if first >= len(order):
        return
    surprise, tangent = mode >= Mode.ENTROPY, mode >= Mode.TANGENT
    down = mode == Mode.MARGINALS or mode == Mode.TANGENT or mode == Mode.ENTROPY_TANGENT
    largest, work, at = lengths[order[first]], scratch[worker], 0
    square, line = largest * pitch_of(largest) * lanes, (largest + 1) * lanes
    packed, at = carve(work, at, (largest * side + 1) * lanes, dtype)
    along, at = carve(work, at, (largest * side + 1) * lanes * tangent, dtype)
    <carve_logs>
    <carve_sums>
    lane_lengths, codes, peaks, log_scale, factor, bases, stack = lane_scratch(work, at, lanes, dtype, largest)
    flat, cells = out.reshape(-1), side * side
    for group in range(first, len(order), workers * lanes):
        n = pack(scores, order, group, lengths, UPPER, packed, lane_lengths, bases, codes)
        inside_logs(n, side, lanes, <options>packed, <inside>, <sums>)
        if tangent:
            if surprise:
                clear_all(along, n * side * lanes)
            else:
                pack_direction(direction, n, UPPER, order, group, packed, -np.inf, along, bases)
                centre(along, packed, -np.inf, n, side, lane_lengths)
                normalise(along, n, side, UPPER, peaks, factor)
            tangents(n, side, lanes, <options>packed, along, surprise, <inside>, <sums>)
        for lane in range(min(lanes, len(order) - group)):
            example = order[group + lane]
            size = lengths[example]
            place = goal_of(size, n, lanes) + lane
            log_z = 0.0
            if size > 0:
                log_z = <goal>[VALUE][0][place] + (<goal>[VALUE][1][place] + <goal>[VALUE][2][place])
            status[example] = OK if log_z > -np.inf else INFEASIBLE
            if codes[lane] > 0:
                status[example] = INFINITE if codes[lane] == 1 else NAN
            value[example] = max(<goal>[TANGENT][place], 0.0) if surprise and size > 0 else 0.0 if surprise else log_z
            if mode == Mode.SAMPLE:
                clear(out, example, 0)
                if status[example] == OK and size > 0:
                    draw_logs(
                        size, n, lanes, lane, <options><inside>, <sums>, seeds[example], stack, flat, example * cells, side
                    )
        if down:
            square, line = n * pitch_of(n) * lanes, (n + 1) * lanes
            <clear_logs>
            for lane in range(lanes):
                size = int(lane_lengths[lane])
                place = goal_of(size, n, lanes) + lane
                if size > 0 and <goal>[VALUE][0][place] > -np.inf:
                    <goal>[OUT][place] = 1.0
            if tangent:
                outside_tangents(n, side, lanes, <options>packed, along, surprise, <inside>, <sums>)
            else:
                outside_logs(n, side, lanes, <options>packed, <inside>, <sums>)
            if mode == Mode.TANGENT:
                scale(packed, n, side, lane_lengths, factor, peaks)
            unpack(packed, group, order, n, out, bases)


@called
def _clear(chart, count, tangent):
    """Zeros for the probabilities of a chart, and their tangents."""
    clear_all(chart[OUT], count)
    if tangent:
        clear_all(chart[OUT_TANGENT], count)
'''
