"""Eisner's algorithm as rules; README.md says what the items mean."""

from pullback.inference.engine.rules.definition import Line, Recursion, Spans, Sum

RECURSION = Recursion(
    Spans((
        Sum("right(i, i)"),
        Sum("left(i, i)"),
        Sum("between(i, j)", "right(i, k)", "left(k + 1, j)", k=("i", "j")),
        Sum("right_arc(i, j)", "between(i, j)", part="i, j"),
        Sum("left_arc(i, j)", "between(i, j)", part="j, i"),
        Sum("right(i, j)", "right_arc(i, k)", "right(k, j)", k=("i + 1", "j + 1")),
        Sum("left(i, j)", "left(i, k)", "left_arc(k, j)", k=("i", "j")),
    )),
    Line((
        Sum("prefix(0)"),
        Sum("starts(j)", "prefix(i)", "left(i, j)", i=("0", "j + 1"), only_first_unless="multiroot"),
        Sum("root_arc(j)", "starts(j)", part="j, j"),
        Sum("prefix(j + 1)", "root_arc(i)", "right(i, j)", i=("0", "j + 1")),
    )),
    goal="prefix(n)",
    options=("multiroot",),
)  # fmt: skip
