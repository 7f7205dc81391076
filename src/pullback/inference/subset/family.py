"""The family of subsets of exactly k of n items, or of at most k."""

from __future__ import annotations

from pullback.inference.front.family import FUSED, PROJECTION, STANDARD, Family, Nouns
from pullback.inference.front.layout import Layout, Size

SUBSET = Family(
    "subset",
    Layout("Subset", "n", sizes=(Size("lengths", bounds="n"), Size("k", bounds=None)), centre=(-1,)),
    folder=lambda operation, options: "at_most" if options["at_most"] else "subset",
    nouns=Nouns(
        example="example",
        structure="subset",
        part="item",
        infeasible="k is larger than the number of {part}s that are not forbidden (-inf)",
    ),
    options={"most": int, "at_most": bool},
    operations=STANDARD + FUSED + PROJECTION,
)
