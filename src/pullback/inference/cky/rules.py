"""The CKY algorithm as rules: a span of words is one word, or split into two spans."""

from pullback.inference.engine.rules.definition import Recursion, Spans, Sum

RECURSION = Recursion(
    Spans((
        Sum("span(i, i)", part="i, i"),
        Sum("split(i, j)", "span(i, k)", "span(k + 1, j)", k=("i", "j")),
        Sum("span(i, j)", "split(i, j)", part="i, j"),
    )),
    goal="span(0, n - 1)",
    wide=True,
    abreast=4,
)  # fmt: skip
