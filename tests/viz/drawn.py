"""Random trees and tokens of the nasty kind, for properties of drawings."""

from __future__ import annotations

from hypothesis import strategies as st

NASTY = (
    "<script>alert('x')</script>", "&amp;", "&", '"', "'", "]]>", "<!--", "\x00", "\x1b[31m", "\t", "\n", "a\r\nb", "\ud800",
    "\ufffe", "\u202e", "\u2028", "", " ", "_", "\xa0", "%", "$x_1^2$", "{", "}", "\\", "\\&", "#", "~", "--", "[1]",
    "|", "-LRB-", "映画", "ｆｕｌｌ", "한국어", "e\u0301", "\u0301", "👩‍🚀", "👍🏽", "🇩🇪", "❤️", "סרט", "فيلم", "\U000e0041",
)  # fmt: skip

tokens_ = st.one_of(st.sampled_from(NASTY), st.text(max_size=8), st.sampled_from(("A", "fun", "film", ".")))


@st.composite
def trees(draw: st.DrawFn, max_size: int = 12, words: st.SearchStrategy[str] = tokens_) -> tuple[list[str], list[int]]:
    """Tokens and heads of any tree: words join in a random order, each to the root or to one that is in."""
    n = draw(st.integers(1, max_size))
    order = draw(st.permutations(range(1, n + 1)))
    heads = [0] * n
    for i, word in enumerate(order):
        heads[word - 1] = draw(st.sampled_from([0, *order[:i]]))
    return draw(st.lists(words, min_size=n, max_size=n)), heads
