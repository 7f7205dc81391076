"""The page's own arithmetic: scales, sorting, the layout of trees, the plane."""

import itertools
import math

import pytest

from report.nodes import in_node, needs_node

pytestmark = needs_node


@pytest.mark.parametrize("ends", [[0, 100], [56.3, 91.2], [0, 10000], [1, 10], [-0.002, 0.0031], [5, 5]])
def test_ticks_are_few_round_and_inside(ends):
    low, high = ends
    ticks = in_node("axes", "ticks(given[0], given[1], 5)", ends)
    assert 1 <= len(ticks) <= 6
    assert all(low - 1e-9 <= tick <= high + 1e-9 for tick in ticks)
    steps = {round(b - a, 9) for a, b in itertools.pairwise(ticks)}
    assert len(steps) <= 1


def test_lines_and_bands_have_gaps_where_there_is_no_number():
    path = in_node("axes", "linePath([0, 1, 2, 3], [5, null, 7, 8], (x) => x, (y) => y)")
    assert path == "M0 5M2 7L3 8"
    band = in_node("axes", "bandPath([0, 1, 2, 3], [1, null, 1, 1], [2, null, 2, 3], (x) => x, (y) => y)")
    assert band == "M2 2L3 3L3 1L2 1Z"


def test_an_extent_without_numbers():
    assert in_node("axes", "[extent([]), extent([[null]])]") == [[0, 1], [0, 1]]
    low, high = in_node("axes", "extent([[3, null, 7]])")
    assert low < 3 < 7 < high


def test_sorting_keeps_missing_values_last_and_equal_ones_in_order():
    rows = [{"id": 0, "v": 2}, {"id": 1, "v": None}, {"id": 2, "v": 5}, {"id": 3, "v": 2}]
    order = "given.map((d) => sorted({rows}, (row) => row.v, d).map((row) => row.id))"
    found = in_node("sorting", order.replace("{rows}", str(rows).replace("None", "null")), ["none", "ascending", "descending"])
    assert found == [[0, 1, 2, 3], [0, 3, 2, 1], [2, 0, 3, 1]]


def test_a_heading_sorts_down_then_up_then_not():
    chain = "[1, 2, 3].reduce((states) => [...states, nextDirection(states.at(-1), 'a')], [{column: null, direction: 'none'}])"
    states = in_node("sorting", f"{chain}.map((state) => state.direction)")
    assert states == ["none", "descending", "ascending", "none"]
    assert in_node("sorting", "nextDirection({column: 'a', direction: 'ascending'}, 'b')") == {
        "column": "b", "direction": "descending",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("heads", "levels", "deep"),
    [
        ([2, 0, 2], [0, 0, 0], 2),
        ([0, 1, 2], [0, 0, 0], 3),
        ([0, 1, 1, 1], [0, 0, 1, 2], 2),
        ([0], [0], 1),
        ([3, 3, 0], [1, 0, 0], 2),
    ],
)
def test_an_arc_lies_above_those_inside_it(heads, levels, deep):
    assert in_node("arcs", "[arcLevels(given), depth(given)]", heads) == [levels, deep]


def test_the_layout_of_a_tree_keeps_words_apart():
    found = in_node("arcs", "layout(['A', 'taut', 'drama'], [3, 3, 0])")
    for left, right in itertools.pairwise(found["words"]):
        assert left["x"] + left["width"] / 2 < right["x"] - right["width"] / 2
    assert [root["word"] for root in found["roots"]] == [3]
    assert {(arc["head"], arc["word"]) for arc in found["arcs"]} == {(3, 1), (3, 2)}


def test_the_plane_keeps_distances():
    there = in_node("plane", "fromPlane(toPlane([0.2, 0.5, 0.3]), 1)")
    assert there == pytest.approx([0.2, 0.5, 0.3])
    corners = in_node("plane", "[[1, 0, 0], [0, 1, 0], [0, 0, 1]].map(toPlane)")
    assert math.dist(corners[0], corners[1]) == pytest.approx(math.sqrt(2))
    assert in_node("plane", "view(500, 400, 2).point(view(500, 400, 2).pixel([0.3, -0.7]))") == pytest.approx([0.3, -0.7])


def test_no_two_methods_look_the_same():
    names = ["linear", "gold", "marginals", "sparsemap", "perturbed-marginals", "perturb-and-map", "sfe", "sfe-baseline",
             "ste-s", "ste-i", "spigot", "spigot-ce", "spigot-eg"]  # fmt: skip
    looks = in_node("format", "given.map(look)", names)
    assert len({tuple(look.values()) for look in looks}) == len(names)
    together = [look for look, name in zip(looks, names, strict=True) if name in
                ("marginals", "perturb-and-map", "ste-i", "spigot", "spigot-ce", "spigot-eg")]  # fmt: skip
    for part in ("colour", "dash", "marker"):
        assert len({look[part] for look in together}) == len(together)


def test_numbers_in_words():
    assert in_node("format", "[signed(-1.234), signed(0.001), signed(2), fixed(null), percent(0.256)]") == [
        "−1.23", "0.00", "+2.00", "n/a", "26%",
    ]  # fmt: skip
    words = in_node("format", "progressText({total: 36, done: 12, failed: 3})")
    assert words == "12 of 36 runs done, 3 failed"
