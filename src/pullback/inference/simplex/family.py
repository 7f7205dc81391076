"""The family of one-hot vectors. Sparsemax, their SparseMAP, is its only operation with kernels of its own.

Rows without a finite score are the caller's concern.
"""

from __future__ import annotations

from pullback.inference.front.family import PROJECTION, Family, Nouns
from pullback.inference.front.layout import Layout

SIMPLEX = Family(
    "simplex",
    Layout("Categorical", "K", centre=(-1,), positive="K"),
    folder="simplex",
    nouns=Nouns(part="class"),
    operations=PROJECTION,
)
