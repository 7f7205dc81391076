import pytest

from pullback.viz import heatmap_text, tree_conllu, tree_latex, tree_svg, tree_text


@pytest.mark.parametrize("draw", [tree_text, tree_svg, tree_latex, tree_conllu])
@pytest.mark.parametrize(
    ("tokens", "heads", "message"),
    [
        (["a", "b"], [0], "1 heads for 2 tokens"),
        (["a", "b"], [0, 3], "word 2 has head 3"),
        (["a", "b"], [0, -1], "word 2 has head -1"),
        (["a", "b"], [0, 0.5], "word 2 has head 0.5"),
        (["a", "b", "c"], [0, 3, 2], "not a tree: word 2"),
        (["a"], [1], "not a tree: word 1"),
    ],
)
def test_what_is_not_a_tree_is_refused(draw, tokens, heads, message):
    with pytest.raises(ValueError, match=message):
        draw(tokens, heads)


def test_a_string_is_not_a_list_of_words():
    with pytest.raises(TypeError, match="pass its words"):
        tree_text("ab", [0, 1])


@pytest.mark.parametrize("mu", [[[1.0]], [1.0, 0.0], [[1.0, 0.0], [0.0, 1.5]], [[1.0, float("nan")], [0.0, 0.0]]])
def test_what_are_not_marginals_is_refused(mu):
    with pytest.raises(ValueError, match="marginal"):
        heatmap_text(["a", "b"], mu)
