import re
from xml.etree import ElementTree

import pytest
from hypothesis import given

from pullback.viz import heatmap_svg, stacked, tree_svg
from pullback.viz.characters import visible
from viz.drawn import NASTY, trees

SVG = "{http://www.w3.org/2000/svg}"


def texts(drawing):
    return [element.text or "" for element in ElementTree.fromstring(drawing.encode()).iter(f"{SVG}text")]


@given(trees())
def test_any_tokens_give_xml_that_shows_them(tree):
    tokens, heads = tree
    shown = texts(tree_svg(tokens, heads))
    expected = ["root"] * heads.count(0) + [visible(token) for token in tokens]
    assert [line.strip() for line in shown] == [line.strip() for line in expected]


def test_nothing_in_a_token_becomes_markup():
    drawing = tree_svg(list(NASTY), [0, *range(1, len(NASTY))])
    tags = {element.tag.removeprefix(SVG) for element in ElementTree.fromstring(drawing.encode()).iter()}
    assert tags == {"svg", "style", "title", "g", "path", "text"}


@given(trees())
def test_each_arc_starts_at_its_head_and_ends_at_its_word(tree):
    """Ends of arcs lie within the word they belong to: nearer to it than to any other."""
    tokens, heads = tree
    drawing = tree_svg(tokens, heads)
    root = ElementTree.fromstring(drawing.encode())
    places = [float(e.get("x")) for e in root.iter(f"{SVG}text") if e.get("opacity") is None]
    arcs = [e.get("d") for e in root.iter(f"{SVG}path") if e.get("class") == "arc"]
    found = []
    for path in arcs:
        numbers = [float(x) for x in re.findall(r"-?[\d.]+", path)]
        found.append(tuple(min(range(len(tokens)), key=lambda i: abs(places[i] - x)) + 1 for x in (numbers[0], numbers[6])))
    assert found == [(head, word) for word, head in enumerate(heads, 1) if head]


@given(trees(max_size=30))
def test_arrows_point_at_the_middle_of_their_words(tree):
    """Flat trees with many arcs at one word included."""
    tokens, heads = tree
    root = ElementTree.fromstring(tree_svg(tokens, heads).encode())
    places = [float(e.get("x")) for e in root.iter(f"{SVG}text") if e.get("opacity") is None]
    ends = []
    for element in root.iter(f"{SVG}path"):
        numbers = re.findall(r"-?[\d.]+", element.get("d"))
        if element.get("class") == "root-arc":
            ends.append(float(numbers[0]))
        elif element.get("class") == "arc":
            ends.append(float(numbers[6]))
    assert ends == pytest.approx(places, abs=0.11)


@pytest.mark.parametrize("root", [1, 15, 30])
def test_a_flat_tree_is_not_much_wider_than_its_words(root):
    heads = [root] * 30
    heads[root - 1] = 0
    flat, plain = (float(re.search(r'width="([\d.]+)"', tree_svg(["film"] * 30, tree))[1]) for tree in (heads, range(30)))
    assert flat < plain + 60


@given(trees())
def test_the_drawing_fits_into_its_size(tree):
    root = ElementTree.fromstring(tree_svg(*tree).encode())
    width, height = float(root.get("width")), float(root.get("height"))
    for element in root.iter(f"{SVG}text"):
        assert 0 <= float(element.get("x")) <= width
        assert 0 <= float(element.get("y")) <= height
    for element in root.iter(f"{SVG}path"):
        if element.get("class") == "arc":
            _, y, _, handle, *_ = (float(x) for x in re.findall(r"-?[\d.]+", element.get("d")))
            assert y + 0.75 * (handle - y) >= 0


def test_arcs_over_others_are_higher():
    root = ElementTree.fromstring(tree_svg(["a", "b", "c"], [3, 3, 0]).encode())
    heights = [float(re.findall(r"[\d.]+", e.get("d"))[3]) for e in root.iter(f"{SVG}path") if e.get("class") == "arc"]
    assert heights[0] < heights[1]


def test_heat_map_squares_carry_the_probabilities():
    mu = [[0.25, 0.5, 0.0], [0.75, 0.5, 1.0], [0.0, 0.0, 0.0]]
    root = ElementTree.fromstring(heatmap_svg(["a", "<b>", "c"], mu).encode())
    squares = {e.find(f"{SVG}title").text: float(e.get("fill-opacity")) for e in root.iter(f"{SVG}rect")}
    assert squares == {
        "root → a: 0.250": 0.25, "a → <b>: 0.500": 0.5, "<b> → a: 0.750": 0.75, "root → <b>: 0.500": 0.5, "<b> → c: 1.000": 1.0,
    }  # fmt: skip


@pytest.mark.parametrize("count", [0, 1, 3])
def test_stacked_drawings_are_one_document(count):
    root = ElementTree.fromstring(stacked([tree_svg(["a", "b"], [0, 1])] * count))
    inner = root.findall(f"{SVG}svg")
    assert len(inner) == count
    bottoms = [float(e.get("y")) + float(e.get("height")) for e in inner]
    assert all(float(lower.get("y")) > upper for upper, lower in zip(bottoms, inner[1:], strict=False))
    assert float(root.get("height")) == (bottoms[-1] if count else 0)
