"""The family of knapsacks: items whose costs sum to at most a budget."""

from __future__ import annotations

from pullback.inference.front.family import FUSED, STANDARD, Family, Nouns
from pullback.inference.front.layout import Layout, Size
from pullback.inference.sparsemap.operation import SPARSEMAP

_SIZES = Size("lengths", bounds="n"), Size("budget", bounds=None)

SAME = Layout("Knapsack", "n", sizes=_SIZES)
"""Of examples whose items have the same costs."""

KNAPSACK = Family(
    "knapsack",
    Layout("Knapsack", "n", sizes=(*_SIZES, Size("costs", bounds=None, dims=1))),
    folder="knapsack",
    nouns=Nouns(structure="knapsack", part="item", infeasible="costs must be positive integers"),
    operations=STANDARD + FUSED + SPARSEMAP,
    most_parts=lambda shape: shape[0],
)
