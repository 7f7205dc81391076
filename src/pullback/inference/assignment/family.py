"""The family of matchings: every row gets one column, every column at most one row."""

from __future__ import annotations

from pullback.inference.front.family import Family, Nouns
from pullback.inference.front.layout import Layout, Size
from pullback.inference.front.operations import ARGMAX
from pullback.inference.sparsemap.operation import SPARSEMAP

MATCHING = Family(
    "matching",
    Layout("Matching", "n, m", sizes=(Size("lengths", bounds="n"), Size("other_lengths", bounds="m")), centre=(-1,)),
    folder="assignment",
    nouns=Nouns(
        example="example",
        structure="matching",
        part="pair",
        infeasible="more rows than columns, or too many {part}s are forbidden (-inf)",
    ),
    operations=ARGMAX + SPARSEMAP,
    most_parts=lambda shape: shape[0],
)
