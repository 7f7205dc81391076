"""Drawings of tags, spans, segments, alignments and subsets."""

import itertools
import re
from xml.etree import ElementTree

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from pullback import viz
from pullback.viz.characters import display_width, visible
from viz.drawn import NASTY, tokens_

SVG = "{http://www.w3.org/2000/svg}"
WORDS = ["A", "fascinating", "and", "fun", "film", "."]


def texts(drawing):
    return [element.text or "" for element in ElementTree.fromstring(drawing.encode()).iter(f"{SVG}text")]


@st.composite
def binary_trees(draw):
    """Words and the spans of a random binary tree over them, leaves included."""
    tokens = draw(st.lists(tokens_, min_size=1, max_size=9))

    def spans(first, last):
        if first == last:
            return [(first, last)]
        split = draw(st.integers(first, last - 1))
        return [(first, last), *spans(first, split), *spans(split + 1, last)]

    return tokens, spans(0, len(tokens) - 1)


@given(binary_trees())
def test_each_span_is_a_bracket_from_its_first_to_its_last_word(tree):
    tokens, spans = tree
    root = ElementTree.fromstring(viz.spans_svg(tokens, spans).encode())
    paths = [element.get("d") for element in root.iter(f"{SVG}path") if element.get("class") == "span"]
    assert len(paths) == len(tokens) - 1
    places = [float(element.get("x")) for element in root.iter(f"{SVG}text")]
    found = set()
    for path in paths:
        start, end = float(path[1:].split(" ")[0]), float(path.split("H")[1].split("v")[0])
        inside = [i for i, x in enumerate(places) if start <= x <= end]
        found.add((inside[0], inside[-1]))
    assert found == {span for span in spans if span[0] < span[1]}
    assert [line.strip() for line in texts(viz.spans_svg(tokens, spans))] == [visible(token).strip() for token in tokens]


@given(binary_trees(), st.integers(10, 80))
def test_brackets_as_text_stay_within_the_width_and_show_every_word(tree, width):
    tokens, spans = tree
    drawing = viz.spans_text(tokens, spans, width=width)
    widest = max(display_width(visible(token)) for token in tokens) + 2 * len(tokens)
    assert all(display_width(line) <= max(width, widest) for line in drawing.split("\n"))
    for token in tokens:
        assert all(piece in drawing for piece in visible(token).split())


def test_brackets_that_do_not_fit_are_written_in_brackets():
    spans = [(0, 5), (0, 4, "NP"), (1, 3), (1, 2)]
    assert viz.spans_text(WORDS, spans, width=20) == "((NP A ((fascinating\nand) fun) film) .)"
    ends = ["fascinating and", "fascinating fun", "A film", "A ."]
    words, *brackets = viz.spans_text(WORDS, spans).split("\n")
    for bracket, (first, last) in zip(brackets, (each.split() for each in ends), strict=True):
        assert (bracket.index("└"), bracket.index("┘")) == (words.index(first), words.index(last) + len(last) - 1)


def test_a_label_wider_than_its_words_makes_room():
    assert viz.segments_text(["a", "b"], [(0, 1, "LONGLABEL"), (1, 2, "X")]) == "a           b\n└LONGLABEL┘ └X┘"


def test_tags_under_words_continue_below_and_padding_is_dropped():
    tags = torch.tensor([0, 1, 2, 1, 3, 4, -1, -1])
    names = ["DET", "ADJ", "CCONJ", "NOUN", "PUNCT"]
    first = "A   fascinating and\nDET ADJ         CCONJ"
    assert viz.tags_text(WORDS, tags, names=names, width=24) == f"{first}\n\nfun film .\nADJ NOUN PUNCT"
    assert sorted(texts(viz.tags_svg(WORDS, tags, names=names))) == sorted(WORDS + [names[tag] for tag in tags.tolist()[:6]])


def test_chosen_items_are_marked():
    assert viz.subset_text(WORDS, np.array([1, 4, -1])) == "A [fascinating] and fun [film] ."
    assert viz.subset_svg(WORDS, torch.tensor([1, 4, -1])).count("<rect") == 2


def test_a_path_and_its_marginals():
    path = [(0, 0), (1, 1), (1, 2)]
    mu = torch.tensor([[1.0, 0.5, 0.0], [0.0, 0.5, 1.0]])
    assert viz.alignment_text(["a", "b"], ["x", "y", "z"], path, marginals=mu).split("\n") == [
        "     1 2 3", "1 a █●▒▒", "2 b   ▒●█●", "1 x 2 y 3 z",
    ]  # fmt: skip
    drawing = viz.alignment_svg(["a", "b"], ["x", "y", "z"], path, marginals=mu)
    root = ElementTree.fromstring(drawing.encode())
    squares = {element.find(f"{SVG}title").text: float(element.get("fill-opacity")) for element in root.iter(f"{SVG}rect")}
    assert squares == {"a × x: 1.000": 1.0, "a × y: 0.500": 0.5, "b × y: 0.500": 0.5, "b × z: 1.000": 1.0}
    points = [tuple(map(float, point.split(","))) for point in root.find(f"{SVG}polyline").get("points").split()]
    steps = [(round(b[0] - a[0]), round(b[1] - a[1])) for a, b in itertools.pairwise(points)]
    assert steps == [(24, 24), (24, 0)]  # down and right, then right


def test_wide_alignments_continue_below():
    drawing = viz.alignment_text(["a"], [f"c{j}" for j in range(40)], [(0, j) for j in range(40)], width=40)
    assert all(len(line) <= 40 for line in drawing.split("\n"))
    assert drawing.count("●") == 40


@pytest.mark.parametrize("tokens", [[], list(NASTY)], ids=["nothing", "nasty"])
def test_any_tokens_in_every_drawing(tokens):
    positions = range(len(tokens))
    drawings = [
        viz.tags_svg(tokens, tokens), viz.spans_svg(tokens, [(i, i, "x<y") for i in positions]),
        viz.segments_svg(tokens, [(i, i + 1, 0) for i in positions], labels=["&"]), viz.subset_svg(tokens, positions),
        viz.alignment_svg(tokens, tokens, [(i, i) for i in positions]),
    ]  # fmt: skip
    for drawing in drawings:
        root = ElementTree.fromstring(drawing.encode())
        assert {element.tag.removeprefix(SVG) for element in root.iter()} <= {
            "svg", "style", "title", "g", "path", "text", "rect", "circle", "polyline",
        }  # fmt: skip
    lines = [
        viz.tags_text(tokens, tokens), viz.spans_text(tokens, []), viz.subset_text(tokens, []),
        viz.alignment_text(tokens, tokens, [(i, i) for i in positions]),
    ]  # fmt: skip
    assert all(visible(text.replace("\n", "")) == text.replace("\n", "") for text in lines)


@pytest.mark.parametrize(
    ("draw", "reason"),
    [
        (lambda: viz.tags_text(WORDS, [1]), "1 tags for 6 tokens"),
        (lambda: viz.tags_text(["a"], [1, 2]), "2 tags for 1 tokens"),
        (lambda: viz.tags_svg(["a"], [3], names=["x"]), "the tag of word 0 is 3; the 1 names are for 0 to 0"),
        (lambda: viz.spans_text(WORDS, [(0, 6)]), r"the span \(0, 6\) is outside the 6 tokens"),
        (lambda: viz.spans_svg(WORDS, [(0, 2), (1, 3)]), r"\(0, 2\) and \(1, 3\) cross"),
        (lambda: viz.subset_text(WORDS, [6]), "item 6 is chosen; there are 6 items"),
        (lambda: viz.alignment_text(["a"], ["b"], [(0, 1)]), r"the cell \(0, 1\) is outside the 1 x 1 table"),
        (lambda: viz.alignment_svg(["a"], ["b"], [], marginals=[[0.5, 0.5]]), r"they need shape \[1, 1\]"),
    ],
)
def test_mistakes_are_named(draw, reason):
    with pytest.raises(ValueError, match=reason):
        draw()
    with pytest.raises(TypeError, match="pass its words"):
        viz.tags_text("A film", [0, 1])


def test_the_cells_of_a_path_are_joined_in_their_order():
    """A path may go up: in a lattice of tags, say."""
    drawn = viz.alignment_svg(["A", "B"], ["x", "y", "z"], [(1, 0), (0, 1), (1, 2)])
    points = re.search(r'points="([^"]*)"', drawn)[1].split()
    rows = [float(point.split(",")[1]) for point in points]
    assert rows[0] == rows[2] > rows[1]
