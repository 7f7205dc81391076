"""The family of subsets of exactly k of n items."""

from __future__ import annotations

from pullback.inference.front.family import FUSED, PROJECTION, STANDARD, Family, Nouns
from pullback.inference.front.layout import Layout, Size

SUBSET = Family(
    "subset",
    Layout("Subset", "n", sizes=(Size("lengths", bounds="n"), Size("k", bounds=None)), centre=(-1,)),
    folder="subset",
    nouns=Nouns(
        example="example",
        structure="subset",
        part="item",
        infeasible="k is larger than the number of {part}s that are not forbidden (-inf)",
    ),
    options={"most": int},
    operations=STANDARD + FUSED + PROJECTION,
)
