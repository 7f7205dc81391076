"""The family of monotone alignments of n rows with m columns."""

from __future__ import annotations

from pullback.inference.front.family import FUSED, STANDARD, Family, Nouns
from pullback.inference.front.layout import Layout, Size
from pullback.inference.sparsemap.operation import SPARSEMAP

MOVES = {"any": ((1, 1), (1, 0), (0, 1)), "forward": ((1, 1), (0, 1))}
"""Steps down and to the right, in the order that decides ties."""
_WHY = (
    "too many {part}s are forbidden (-inf), only one of the two sequences is empty, or there are more rows than columns "
    "with moves='forward'"
)
ALIGNMENT = Family(
    "alignment",
    Layout("Alignment", "n, m", sizes=(Size("lengths", bounds="n"), Size("other_lengths", bounds="m"))),
    folder="alignment",
    nouns=Nouns(example="example", structure="path", part="cell", infeasible=_WHY),
    options={"moves": str},
    operations=STANDARD + FUSED + SPARSEMAP,
    most_parts=lambda shape, *options: max(shape[0] + shape[1] - 1, 0),
)
