import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pullback.viz import heatmap_text
from pullback.viz.characters import display_width
from viz.drawn import trees


def test_shades():
    mu = np.array([[0.0, 0.1, 0.25, 0.0], [0.5, 0.9, 0.0, 0.0], [0.5, 0.0, 0.0, 0.0], [0.0, 0.0, 0.75, 1.0]])
    lines = heatmap_text(["a", "bee", "c", "d"], mu).split("\n")
    assert [line.rstrip() for line in lines] == [
        "         1 2 3 4",
        "  root    ██  ██",
        "1 a       ··░░",
        "2 bee   ▒▒",
        "3 c     ▒▒",
        "4 d         ▓▓",
    ]


def test_what_does_not_fit_continues_below():
    tokens = [f"w{i}" for i in range(1, 31)]
    drawing = heatmap_text(tokens, np.eye(30), width=25)
    blocks = [block.split("\n") for block in drawing.split("\n\n")]
    assert len(blocks) == 2
    assert all(len(block) == 2 + 31 for block in blocks)
    assert "".join(block[2].rstrip()[9:] for block in blocks) == "█" * 30
    assert "".join(block[1][9:].rstrip() for block in blocks) == "123456789012345678901234567890"


@given(trees(max_size=14), st.integers(10, 60))
def test_lines_have_the_same_width(tree, width):
    tokens, heads = tree
    mu = np.zeros((len(heads), len(heads)))
    for word, head in enumerate(heads):
        mu[head - 1 if head else word, word] = 1
    drawing = heatmap_text(tokens, mu, width=width)
    lines = [line for line in drawing.split("\n") if line]
    assert len({display_width(line) for line in lines}) == 1
    assert drawing.count("█") in (len(heads), 2 * len(heads))
