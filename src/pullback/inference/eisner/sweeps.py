"""Inside and outside sweeps over lanes of scaled weights, for plain and for dual numbers.

README.md names the items. A chart `complete[i, j]` holds the right item of the span for i < j and the left item below
the diagonal; `arc[h, m]` the item whose arc goes from h to m. Every outside value is divided by Z, so that inside times
outside is a marginal probability.
"""

from __future__ import annotations

from pullback.inference.compile import called, inline
from pullback.inference.eisner.numbers import (
    at,
    constant,
    dot,
    plus,
    put,
    three_dots,
    times,
    times_plus,
    two_dots,
    value_of,
)
from pullback.inference.eisner.packing import pitch_of
from pullback.inference.lanes import larger


@called
def inside(n, lanes, multiroot, charts, lines, peak):
    """Fill the charts `complete` and `arc`, the lines `prefix` and `root_arc`; returns the largest value, at least `peak`.

    The charts are weights, complete, arc, out_complete, out_between; the lines are prefix, root_arc, out_prefix,
    out_starts.
    """
    peak = _inside(charts[0], n, lanes, charts[1], charts[2], peak)
    return _inside_root(charts[0], n, lanes, multiroot, charts[1], lines[0], lines[1], peak)


@called
def outside(n, lanes, multiroot, charts, lines, peak):
    """The reverse of `inside`, from the seeds in `out_prefix`, 1/Z at each sentence's end: marginals replace the weights."""
    weights, complete = charts[0], charts[1]
    peak = _outside_root(weights, n, lanes, multiroot, complete, lines[1], lines[2], lines[3], peak)
    return _outside(n, lanes, multiroot, charts, lines, peak)


@called
def _inside(weights, n, lanes, complete, arc, peak):
    row = pitch_of(n) * lanes
    for j in range(n):
        put(complete, j * row + j * lanes, constant(weights, 1.0))
        for i in range(j - 1, -1, -1):
            ii, ij, ji, width = i * row + i * lanes, i * row + j * lanes, j * row + i * lanes, j - i
            between = _between(complete, ii, ji + lanes, lanes, width)
            right, left = times(between, at(weights, ij)), times(between, at(weights, ji))
            put(arc, ij, right)
            put(arc, ji, left)
            right, left = two_dots(
                arc, ii + lanes, lanes, complete, ij + row, row,
                complete, ii + row, row, arc, ji + lanes, lanes, width - 1, right, left,
            )  # fmt: skip
            put(complete, ij, right)
            put(complete, ji, left)
            peak = larger(value_of(left), larger(value_of(right), larger(value_of(between), peak)))
    return peak


@inline
def _between(complete, right, left, lanes, width):
    """The sum over the splits of a span of its right part times its left part, as two sums at once."""
    half = width // 2
    middle = half * lanes
    first, second = two_dots(
        complete, right, lanes, complete, left, lanes,
        complete, right + middle, lanes, complete, left + middle, lanes,
        half, constant(complete, 0.0), constant(complete, 0.0),
    )  # fmt: skip
    if width % 2:
        first = times_plus(at(complete, right + 2 * middle), at(complete, left + 2 * middle), first)
    return plus(first, second)


@called
def _inside_root(weights, n, lanes, multiroot, complete, prefix, root_arc, peak):
    """prefix[j]: all ways to attach the first j words; root_arc[r]: those whose last root arc goes to r."""
    row = pitch_of(n) * lanes
    put(prefix, 0, constant(weights, 1.0))
    for r in range(n):
        zero = constant(weights, 0.0)
        starts = dot(prefix, 0, lanes, complete, r * row, lanes, r + 1 if multiroot else 1, zero)
        put(root_arc, r * lanes, times(starts, at(weights, r * row + r * lanes)))
        total = dot(root_arc, 0, lanes, complete, r * lanes, row, r + 1, zero)
        put(prefix, (r + 1) * lanes, total)
        peak = larger(value_of(starts), larger(value_of(total), peak))
    return peak


@called
def _outside_root(weights, n, lanes, multiroot, complete, root_arc, out_prefix, out_starts, peak):
    """Reverse of `_inside_root`: completes `out_prefix`."""
    row = pitch_of(n) * lanes
    for r in range(n - 1, -1, -1):
        rr = r * row + r * lanes
        out_arc = dot(out_prefix, (r + 1) * lanes, lanes, complete, rr, lanes, n - r, constant(weights, 0.0))
        out = times(out_arc, at(weights, rr))
        put(weights, rr, times(out_arc, at(root_arc, r * lanes)))
        put(out_starts, r * lanes, out)
        if multiroot:
            for i in range(r + 1):
                more = times(out, at(complete, r * row + i * lanes))
                put(out_prefix, i * lanes, plus(at(out_prefix, i * lanes), more))
        peak = larger(value_of(out_arc), larger(value_of(out), peak))
    return peak


@called
def _outside(n, lanes, multiroot, charts, lines, peak):
    """Reverse of `_inside`: from wide spans to narrow ones, each outside value a sum over the item's uses.

    Marginals replace the weights, each of which is used once and then no more: the charts must fit the cache.
    The right item (i, j) ends the prefix j + 1, stands left of a gap in (i, j'), or is the right part of (i', j);
    the left item follows the prefix i, stands right of a gap in (i', j), or is the left part of (i, j');
    for i' < i and j' > j.
    """
    weights, complete, arc, out_complete, out_between = charts
    prefix, root_arc, out_prefix, out_starts = lines
    row = pitch_of(n) * lanes
    for i in range(n):
        for j in range(n - 1, i, -1):
            ij, ji, wider, earlier = i * row + j * lanes, j * row + i * lanes, n - 1 - j, i
            right = times(at(out_prefix, (j + 1) * lanes), at(root_arc, i * lanes))
            left = constant(weights, 0.0)
            if multiroot or i == 0:
                left = times(at(out_starts, j * lanes), at(prefix, i * lanes))
            right, left, right_arc = three_dots(
                out_between, ij + lanes, lanes, complete, (j + 1) * (row + lanes), row,
                out_complete, ji + row, row, arc, (j + 1) * row + j * lanes, row,
                out_complete, ij + lanes, lanes, complete, j * row + (j + 1) * lanes, lanes,
                wider, right, left, constant(weights, 0.0),
            )  # fmt: skip
            right, left, left_arc = three_dots(
                out_complete, j * lanes, row, arc, i * lanes, row,
                out_between, j * lanes, row, complete, (i - 1) * lanes, row,
                out_complete, j * row, lanes, complete, i * row, lanes,
                earlier, right, left, constant(weights, 0.0),
            )  # fmt: skip
            put(out_complete, ij, right)
            put(out_complete, ji, left)
            # an arc's own span is the first of its uses
            right_arc, left_arc = plus(right_arc, right), plus(left_arc, left)
            between = plus(times(right_arc, at(weights, ij)), times(left_arc, at(weights, ji)))
            put(out_between, ij, between)
            put(weights, ij, times(right_arc, at(arc, ij)))
            put(weights, ji, times(left_arc, at(arc, ji)))
            peak = larger(value_of(right_arc), larger(value_of(left_arc), larger(value_of(between), peak)))
    return peak
