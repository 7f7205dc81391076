import pytest
from hypothesis import given
from hypothesis import strategies as st

from pullback.viz.characters import display_width, padded, visible

WORDS = ["film", "naïve", "e\u0301", "映画", "ｆｕｌｌ", "한국어", "👩‍🚀", "👍🏽", "🇩🇪", "❤️", "🎬🎬", "", "a\xa0b"]


@pytest.mark.parametrize("text", WORDS)
def test_widths_are_those_of_another_implementation(text):
    cells = pytest.importorskip("rich.cells")
    assert display_width(text) == cells.cell_len(text)


def test_two_flags_are_two_drawings():
    assert display_width("🇩🇪🇫🇷") == 4


@given(st.text())
def test_what_is_visible_prints_on_one_line_and_can_be_encoded(text):
    shown = visible(text)
    assert len(shown.splitlines()) <= 1
    assert "\x1b" not in shown
    shown.encode()
    assert visible(shown) == shown


@given(st.text(max_size=10), st.integers(0, 20), st.sampled_from("<>^"))
def test_padding_reaches_the_width(text, width, align):
    shown = visible(text)
    assert display_width(padded(shown, width, align)) == max(width, display_width(shown))
