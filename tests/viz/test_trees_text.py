import pytest
from hypothesis import given

from pullback.viz import tree_above, tree_beside, tree_list, tree_text
from pullback.viz.characters import display_width, visible
from viz.drawn import trees

FILM = ["A", "fascinating", "and", "fun", "film", "."]


def exactly(drawing, expected):
    assert [line.rstrip() for line in drawing.split("\n")] == expected.strip("\n").split("\n")


def test_two_roots_above():
    exactly(tree_above(FILM, [2, 3, 0, 0, 4, 4]), """
  ┌─────────────────┬───┐
  │  ┌─────┐┌──────┐│   │┌───┬──┐
  │  ▼     │▼      │▼   ▼│   ▼  ▼
root A fascinating and fun film .
""")  # fmt: skip


def test_two_roots_beside():
    exactly(tree_beside(FILM, [2, 3, 0, 0, 4, 4]), """
┌────── root
│   ┌─► A
│ ┌─┴─► fascinating
├─┴───► and
└───┬─► fun
    ├─► film
    └─► .
""")  # fmt: skip


def test_crossing_arcs():
    tokens, heads = ["a", "b", "c", "d"], [3, 4, 0, 3]
    exactly(tree_above(tokens, heads), """
  ┌───────┐
  │  ┌───┐│┌──┐
  │  │ ┌─┼┼┼─┐│
  │  ▼ ▼ │▼│ │▼
root a b  c   d
""")  # fmt: skip
    exactly(tree_beside(tokens, heads), """
┌────── root
│ ┌───► a
│ │ ┌─► b
└─┼───► c
  └─┴─► d
""")  # fmt: skip


def test_wide_words_push_the_arcs_apart():
    exactly(tree_above(["映画", "は", "面白い"], [3, 1, 0]), """
  ┌─────────────┐
  │    ┌───────┐│
  │    │┌──┐   ││
  │    ▼│  ▼   │▼
root 映画 は 面白い
""")  # fmt: skip


def test_a_wide_sentence_has_its_arcs_beside_and_a_deep_one_becomes_a_list():
    chain = [f"w{i}" for i in range(40)]
    assert tree_text(FILM, [2, 3, 0, 0, 4, 4], width=40) == tree_above(FILM, [2, 3, 0, 0, 4, 4])
    assert tree_text(FILM, [2, 3, 0, 0, 4, 4], width=30) == tree_beside(FILM, [2, 3, 0, 0, 4, 4])
    assert tree_text(chain, range(40), width=60) == tree_list(chain, range(40))


def test_words_of_uncertain_width_stand_at_the_end_of_their_lines():
    assert tree_text(["👩‍🚀", "!"], [0, 1]) == tree_beside(["👩‍🚀", "!"], [0, 1])
    assert tree_text(["סרט", "!"], [0, 1]) == tree_beside(["סרט", "!"], [0, 1])


def test_arrays_and_no_words():
    torch, numpy = pytest.importorskip("torch"), pytest.importorskip("numpy")
    expected = tree_text(["fun", "film"], [2, 0])
    assert tree_text(["fun", "film"], torch.tensor([2, 0])) == tree_text(["fun", "film"], numpy.array([2, 0])) == expected
    for draw in (tree_text, tree_above, tree_beside, tree_list):
        assert "\n" not in draw([], [])


@pytest.mark.parametrize("draw", [tree_above, tree_beside, tree_list, tree_text])
@given(tree=trees())
def test_lines_have_the_same_width(draw, tree):
    assert len({display_width(line) for line in draw(*tree).split("\n")}) == 1


@given(tree=trees())
def test_the_tree_can_be_read_from_the_arcs_beside(tree):
    tokens, heads = tree
    grid = tree_beside(tokens, heads).split("\n")
    assert [line.partition("►")[2].strip(" ") for line in grid[1:]] == [visible(t).strip(" ") for t in tokens]
    assert [head_of(grid, word) for word in range(1, len(tokens) + 1)] == heads


@given(tree=trees())
def test_above_each_word_is_one_arrow(tree):
    lines = tree_above(*tree).split("\n")
    assert lines[-2].count("▼") == len(tree[0])
    assert "▼" not in "".join(lines[:-2])


def head_of(grid, word):
    """Follow a word's line to the left up to where it turns, then along that column to the row it starts from."""
    column = grid[word].index("►")
    while grid[word][column] not in "┌├└":
        column -= 1
    if grid[0][column] == "┌":
        return 0
    for step, arms in ((-1, "│├└┴┼─"), (1, "│├┌┬┼─")):
        row = word
        while grid[row][column] in arms:
            row += step
            if grid[row][column] in "┬┴┼":
                return row
    raise AssertionError(f"the arc into word {word} starts nowhere")
