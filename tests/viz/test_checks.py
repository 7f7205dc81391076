import pytest
import torch

from pullback.viz import (
    alignment_svg,
    alignment_text,
    heatmap_text,
    segments_svg,
    segments_text,
    spans_svg,
    spans_text,
    subset_text,
    tags_text,
    tree_conllu,
    tree_latex,
    tree_svg,
    tree_text,
)


@pytest.mark.parametrize("draw", [tree_text, tree_svg, tree_latex, tree_conllu])
@pytest.mark.parametrize(
    ("tokens", "heads", "message"),
    [
        (["a", "b"], [0], "1 heads for 2 tokens"),
        (["a", "b"], [0, 3], "word 2 has head 3"),
        (["a", "b"], [0, -1], "word 2 has head -1"),
        (["a", "b"], [0, 0.5], "word 2 has head 0.5"),
        (["a", "b"], [0, float("nan")], "word 2 has head nan"),
        (["a", "b"], [0, None], "word 2 has head None"),
        (["a", "b"], [[0, 1], [0, 1]], r"word 1 has head \[0, 1\]"),
        (["a", "b"], [0, 1, 2], "3 heads for 2 tokens"),
        (["a", "b", "c"], [0, 3, 2], "not a tree: word 2"),
        (["a"], [1], "not a tree: word 1"),
    ],
)
def test_what_is_not_a_tree_is_refused(draw, tokens, heads, message):
    with pytest.raises(ValueError, match=message):
        draw(tokens, heads)


@pytest.mark.parametrize("draw", [tree_text, tree_svg, tree_latex, tree_conllu])
def test_heads_of_padding_are_left_out(draw):
    assert draw(["a", "b"], [2, 0, -1, -1]) == draw(["a", "b"], [2, 0])


@pytest.mark.parametrize("draw", [alignment_text, alignment_svg])
@pytest.mark.parametrize("z", [torch.eye(2, 3), torch.eye(2), torch.ones(3, 2, dtype=torch.bool), [0, 1]], ids=str)
def test_a_matrix_is_not_a_path(draw, z):
    with pytest.raises(ValueError, match=r"path has the entry .*alignment\.path\(z\)"):
        draw(["a", "b"], ["c", "d", "e"], z)


@pytest.mark.parametrize("draw", [spans_text, spans_svg])
@pytest.mark.parametrize("span", [(0,), (0, None), (0, 1, "NP", 3), ("a", 1)], ids=str)
def test_what_is_not_a_span_is_refused(draw, span):
    with pytest.raises(ValueError, match=r"a span is .*; it must be \(first, last\)"):
        draw(["a", "b"], [span])


@pytest.mark.parametrize("draw", [segments_text, segments_svg])
def test_what_is_not_a_segment_is_refused(draw):
    for label in (2, -1, None, float("nan")):
        with pytest.raises(ValueError, match=r"the label of segment .* is not from 0 to 1"):
            draw(["a", "b"], [(0, 2, label)], labels=["NP", "VP"])
    with pytest.raises(ValueError, match=r"a segment is \[0, 2\]; it must be \(start, end, label\)"):
        draw(["a", "b"], [(0, 2)])


@pytest.mark.parametrize("wrong", [None, float("nan"), 5, -2], ids=str)
def test_what_is_not_a_position_is_refused(wrong):
    with pytest.raises(ValueError, match=f"the tag of word 1 is {wrong}"):
        tags_text(["a", "b"], [0, wrong], names=["X", "Y"])
    with pytest.raises(ValueError, match=f"item {wrong} is chosen"):
        subset_text(["a", "b"], [0, wrong])


def test_a_string_is_not_a_list_of_words():
    with pytest.raises(TypeError, match="pass its words"):
        tree_text("ab", [0, 1])


@pytest.mark.parametrize("mu", [[[1.0]], [1.0, 0.0], [[1.0, 0.0], [0.0, 1.5]], [[1.0, float("nan")], [0.0, 0.0]]])
def test_what_are_not_marginals_is_refused(mu):
    with pytest.raises(ValueError, match="marginal"):
        heatmap_text(["a", "b"], mu)
