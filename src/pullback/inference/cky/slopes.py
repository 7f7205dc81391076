"""Derivatives of sums over binary trees along a direction: dual numbers of the sweeps in `kernels.py`, by two columns."""

from __future__ import annotations

from pullback.inference.compile import lean
from pullback.inference.hypergraph.packing import clear
from pullback.inference.hypergraph.vectors import select_positive
from pullback.inference.lanes import fma, lanes_in, load, splat, store


@lean
def _centre(side, n, lengths, first, line, weight, inside, outside, direction, along):
    """Write the direction of each span less the mean over a tree's spans, which changes no result but keeps digits."""
    lanes, zero = lanes_in(line), splat(weight, 0.0)
    mean = zero
    for j in range(n):
        for i in range(j + 1):
            v = (j * (j + 1) // 2 + j - i) * lanes
            x = select_positive(load(weight, v), load(direction, (i * side + j) * lanes), zero)  # what is no part may be NaN
            mean = fma(load(inside, v) * load(outside, v), x, mean)
            store(along, v, x)
    store(line, 0, mean)
    for lane in range(lanes):
        line[lane] /= max(2 * lengths[first + lane] - 1, 1)
    mean = load(line, 0)
    for v in range(n * (n + 1) // 2):
        store(along, v * lanes, load(along, v * lanes) - mean)


@lean
def _inside_slope(n, lanes, weight, inside, along, rise):
    """Write the derivatives of m along the direction."""
    zero = splat(weight, 0.0)
    for j in range(0, n, 2):
        column, other = (j * (j + 1) // 2 + j) * lanes, ((j + 1) * (j + 2) // 2 + j + 1) * lanes
        last = other - (j + 1) * lanes
        if j + 1 < n:
            store(rise, last, load(inside, last) * load(along, last))
        for i in range(j, -1, -1):
            left, one, two, three, four = i * (i + 1) // 2 * lanes, zero, zero, zero, zero
            for k in range(i, j):
                m, r, b, c = load(inside, left), load(rise, left), column - (k + 1) * lanes, other - (k + 1) * lanes
                one, two = fma(r, load(inside, b), one), fma(m, load(rise, b), two)
                three, four = fma(r, load(inside, c), three), fma(m, load(rise, c), four)
                left += (k + 2) * lanes
            u, v = column - i * lanes, other - i * lanes
            r = fma(load(inside, u), load(along, u), load(weight, u) * (one + two))
            store(rise, u, r)
            if j + 1 < n:
                three = fma(r, load(inside, last), fma(load(inside, u), load(rise, last), three))
                store(rise, v, fma(load(inside, v), load(along, v), load(weight, v) * (three + four)))


@lean
def _outside_slope(n, lanes, weight, inside, parent, along, rise, moved):
    """Write the derivatives of the outside values, from those of whole sentences."""
    for j in range(n - 1, -1, -2):
        column, other = (j * (j + 1) // 2 + j) * lanes, ((j - 1) * j // 2 + j - 1) * lanes
        last = column - j * lanes
        for i in range(j):
            u, v, left = column - i * lanes, other - i * lanes, i * (i + 1) // 2 * lanes
            o, p = load(parent, u), load(parent, v)
            x = fma(load(moved, u), load(weight, u), o * load(along, u))
            y = fma(x, load(inside, last), fma(o, load(rise, last), load(moved, v)))
            store(moved, v, y)
            store(moved, last, fma(x, load(inside, v), fma(o, load(rise, v), load(moved, last))))
            y = fma(y, load(weight, v), p * load(along, v))
            for k in range(i, j - 1):
                m, r, b, c = load(inside, left), load(rise, left), column - (k + 1) * lanes, other - (k + 1) * lanes
                d = fma(x, load(inside, b), fma(o, load(rise, b), load(moved, left)))
                store(moved, left, fma(y, load(inside, c), fma(p, load(rise, c), d)))
                store(moved, b, fma(x, m, fma(o, r, load(moved, b))))
                store(moved, c, fma(y, m, fma(p, r, load(moved, c))))
                left += (k + 2) * lanes


@lean
def product(side, n, lengths, first, line, weight, inside, outside, parent, direction, along, rise, moved):
    """Write the derivatives of the marginals along the direction to `moved`."""
    lanes, spans = lanes_in(line), n * (n + 1) // 2
    _centre(side, n, lengths, first, line, weight, inside, outside, direction, along)
    _inside_slope(n, lanes, weight, inside, along, rise)
    clear(moved, 0, spans * lanes)
    for lane in range(lanes):
        last = (lengths[first + lane] * (lengths[first + lane] + 1) // 2 - 1) * lanes + lane
        if last >= 0:
            moved[last] = -rise[last] * outside[last] * outside[last]
    _outside_slope(n, lanes, weight, inside, parent, along, rise, moved)
    for v in range(0, spans * lanes, lanes):
        store(moved, v, fma(load(rise, v), load(outside, v), load(inside, v) * load(moved, v)))
