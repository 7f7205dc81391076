"""CTC's paths on the CPU, one example at a time, its states in SIMD lanes.

A line holds the values of all states at one frame, behind as many numbers of -inf as there are lanes; the states are those of
README.md, with the goal behind the last blank, and are filled up with states that no path reaches. Values are float64,
exponentials have the precision of the scores. For marginals, the chances of the three ways into each state at each frame are
kept: three numbers for each of T + 1 frames and 2 L + 2 states.
"""

from __future__ import annotations

import numpy as np

from pullback.inference._numba.compile import kernel, subroutine
from pullback.inference._numba.lanes import aligned, lanes_in, larger, load, splat, store
from pullback.inference._numba.random_kernels import uniform
from pullback.inference._numba.rows import any_nonzero, count_nan, largest_of, load_first
from pullback.inference._numba.vectors import load_wide, widen
from pullback.inference._numba.ways import combined
from pullback.inference.front.modes import Mode


@subroutine
def _is_bad(flat, begin, count):
    """Whether one of `count` scores is NaN or +inf."""
    lanes, lowest = lanes_in(flat), splat(flat, -np.inf)
    worst, nan = lowest, splat(flat, 0.0)
    for i in range(0, count, lanes):
        x = load(flat, begin + i) if i + lanes <= count else load_first(flat, begin + i, count - i, lowest)
        worst, nan = larger(x, worst), count_nan(x, nan)
    return any_nonzero(nan) or largest_of(worst) == np.inf


@subroutine
def _set_states(targets, length, blank, count, symbols, skips):
    """Write the symbol of each state, and 0 where the state before it may be skipped, else -inf; whether the target is good."""
    skips[:] = -np.inf
    for i in range(length):
        symbol = targets[i]
        if symbol < 0 or symbol >= count or symbol == blank:
            return False
        symbols[2 * i], symbols[2 * i + 1] = blank, symbol
        if i > 0 and symbol != targets[i - 1]:
            skips[2 * i + 1] = 0.0
    symbols[2 * length] = blank
    if length > 0:
        skips[2 * length + 1] = 0.0  # from the last symbol to the goal
    return length == 0 or 0 <= blank < count


@subroutine
def emit(flat, begin, symbols, states, is_end, fill, line):
    """Write what an array holds for the states at a frame: `fill` for the goal, where 0 stands behind the last frame."""
    for s in range(states - 1):
        line[s] = fill if is_end else flat[begin + symbols[s]]
    line[states - 1] = 0.0 if is_end else fill


@subroutine
def ways(line, at, skips, s, like):
    """The values of the three ways to the states from s on: from themselves, the states before, and those before these."""
    place = at + lanes_in(like) + s
    two = load_wide(line, place - 2, like) + load_wide(skips, s, like)
    return load_wide(line, place, like), load_wide(line, place - 1, like), two


@subroutine
def _upward(flat, begin, frames, stride, states, work, chances, best, keep):
    """The value of the goal: the best score if `best`, else the log-partition; if `keep`, `chances` of the ways are written.

    `work` has the symbols and skips of the states, the numbers of a frame, and lines, of which the last are kept.
    """
    symbols, skips, scores, lines = work
    lanes, width = lanes_in(scores), len(skips)
    row = lanes + width
    room = len(lines) // row
    lines[: 2 * row] = -np.inf
    lines[lanes] = 0.0
    for t in range(frames + 1):
        emit(flat, begin + t * stride, symbols, states, t == frames, -np.inf, scores)
        before, after, at = t % room * row, (t + 1) % room * row, 3 * width * t
        if best:
            lines[after : after + lanes] = -np.inf
        for s in range(0, width, lanes):
            stay, one, two = ways(lines, before, skips, s, scores)
            x = load(scores, s)
            if best:
                value = larger(two, larger(one, stay)) + widen(x)
            else:
                value = combined(scores, stay, one, two, x, chances, at + s, width, keep)
            store(lines, after + lanes + s, value)
    return lines[(frames + 1) % room * row + lanes + states - 1]


@subroutine
def _downward(begin, frames, stride, states, symbols, blank, chances, mass, out):
    """Add the marginals to zeros, from the last frame to the first; `mass` is the probability of each state."""
    lanes, width = lanes_in(chances), len(mass) - lanes_in(chances)
    mass[:] = 0.0
    mass[states - 1] = 1.0
    for t in range(frames, 0, -1):
        for s in range(0, states, lanes):
            at = 3 * width * t + s
            one = load(mass, s + 1) * load(chances, at + width + 1)
            two = load(mass, s + 2) * load(chances, at + 2 * width + 2)
            store(mass, s, load(mass, s) * load(chances, at) + one + two)
        here, blanks = begin + (t - 1) * stride, mass[0]
        for s in range(1, states - 1, 2):
            out[here + symbols[s]] += mass[s]
            blanks += mass[s + 1]
        out[here + blank] = blanks


@subroutine
def _draw(begin, frames, stride, states, symbols, chances, width, seed, z):
    """From the goal back to the first frame, by ways that are drawn."""
    s, drawn = states - 1, 0
    for t in range(frames, 0, -1):
        u, drawn = uniform(seed, drawn)
        back = 0
        for way in range(3):
            w = chances[(3 * t + way) * width + s]
            if w > 0:
                back = way
                u -= w
                if u < 0:
                    break
        s -= back
        z[begin + (t - 1) * stride + symbols[s]] = 1.0


@subroutine
def _follow(begin, frames, stride, states, symbols, skips, lines, row, z):
    """From the goal back to the first frame; ties: stay first, then one state back, then two."""
    s, lanes = states - 1, row - len(skips)
    for t in range(frames, 0, -1):
        best, back = -np.inf, 0
        for way in range(3):
            x = lines[t * row + lanes + s - way] + (skips[s] if way == 2 else 0.0)
            if x > best:
                best, back = x, way
        s -= back
        z[begin + (t - 1) * stride + symbols[s]] = 1.0


@subroutine
def climb(flat, begin, frames, stride, targets, length, blank, work, chances, best, keep):
    """Write an example's states and go up: how many states there are, and `upward`'s value; no states if there is no path.

    The value of bad scores is 0.
    """
    symbols, skips, numbers, _ = work
    if _is_bad(flat, begin, frames * stride):
        return 0, 0.0
    if length > len(targets) or not _set_states(targets, length, blank, stride, symbols, skips):
        return 0, -np.inf
    states = 2 * length + 2
    numbers[states:] = -np.inf
    value = _upward(flat, begin, frames, stride, states, work, chances, best, keep)
    return (states if value > -np.inf else 0), value


@subroutine
def rounded(states, lanes):
    """The states filled up, with two more behind those of a target."""
    return (states + 2 + lanes - 1) // lanes * lanes


@kernel
def sums(worker, workers, scores, lengths, target_lengths, targets, blank, mode, seeds, out, log_z, codes):
    """Write log-partitions and, by `mode`, marginals or samples over zeros.

    `codes[b]` is not zero where scores of an example hold NaN or +inf, or no path is feasible.
    """
    lanes, frames, stride, keep = lanes_in(scores), scores.shape[1], scores.shape[2], mode != Mode.LOG_PARTITION
    flat, flat_out, size = scores.reshape(-1), out.reshape(-1), frames * stride
    width = rounded(2 * targets.shape[1] + 2, lanes)
    chances, mass = aligned(3 * width * (frames + 1) * keep + lanes, scores), aligned(width + lanes, scores)
    chances[len(chances) - lanes :] = 0.0
    numbers, lines = aligned(width, scores), aligned(2 * (lanes + width), log_z)
    symbols, skips = np.zeros(width, np.int64), aligned(width, log_z)
    work = symbols, skips, numbers, lines
    for b in range(worker, len(scores), workers):
        n, begin = lengths[b], b * size
        states, log_z[b] = climb(flat, begin, n, stride, targets[b], target_lengths[b], blank, work, chances, False, keep)
        codes[b] = states == 0
        if mode == Mode.MARGINALS and states > 0:
            _downward(begin, n, stride, states, symbols, blank, chances, mass, flat_out)
        elif mode == Mode.SAMPLE and states > 0:
            _draw(begin, n, stride, states, symbols, chances, width, seeds[b], flat_out)


@kernel
def argmax(worker, workers, scores, lengths, target_lengths, targets, blank, z, best, codes):
    """Write the best paths over zeros, and their scores; otherwise as `sums`."""
    lanes, frames, stride = lanes_in(scores), scores.shape[1], scores.shape[2]
    flat, flat_z, size = scores.reshape(-1), z.reshape(-1), frames * stride
    width = rounded(2 * targets.shape[1] + 2, lanes)
    row = lanes + width
    numbers, lines = aligned(width, scores), aligned((frames + 2) * row, best)
    symbols, skips = np.zeros(width, np.int64), aligned(width, best)
    work = symbols, skips, numbers, lines
    for b in range(worker, len(scores), workers):
        n, begin = lengths[b], b * size
        states, best[b] = climb(flat, begin, n, stride, targets[b], target_lengths[b], blank, work, numbers, True, False)
        codes[b] = states == 0
        if not codes[b]:
            _follow(begin, n, stride, states, symbols, skips, lines, row, flat_z)
