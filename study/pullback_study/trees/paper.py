"""The latent trees that the paper prints in its appendix, and the models that they belong to."""

from __future__ import annotations

from typing import NamedTuple

SENTENCES: tuple[tuple[str, ...], ...] = (
    ("An", "intelligent", ",", "moving", "and", "invigorating", "film", "."),
    ("A", "fascinating", "and", "fun", "film", "."),
    ("A", "taut", ",", "intelligent", "psychological", "drama", "."),
)


class PrintedTree(NamedTuple):
    """A tree of the paper for one of `SENTENCES`, and the models that it is reported for; heads: 0 is the root."""

    sentence: int
    models: tuple[str, ...]
    heads: tuple[int, ...]

    @property
    def tokens(self) -> tuple[str, ...]:
        return SENTENCES[self.sentence]

    @property
    def label(self) -> str:
        return f"the paper's {', '.join(self.models)}"


_RELAXED = ("Marginals", "SparseMAP")
OTHERS = (*_RELAXED, "Perturb-and-MAP", "STE-S", "STE-I", "SPIGOT-EG")
"""The models that the paper calls "all others" than SPIGOT and SPIGOT-CE."""
PRINTED: tuple[PrintedTree, ...] = (
    PrintedTree(0, ("SPIGOT-CE",), (8, 7, 2, 7, 7, 7, 1, 0)),
    PrintedTree(0, ("SPIGOT",), (8, 1, 5, 5, 2, 2, 2, 0)),
    PrintedTree(0, ("SPIGOT-EG",), (0, 1, 1, 1, 1, 1, 1, 1)),
    PrintedTree(0, ("STE-I", *_RELAXED), (6, 6, 6, 6, 6, 0, 6, 6)),
    PrintedTree(1, ("SPIGOT-CE",), (6, 5, 5, 5, 1, 0)),
    PrintedTree(1, ("SPIGOT",), (2, 3, 0, 0, 4, 4)),
    PrintedTree(1, ("SPIGOT-EG",), (0, 1, 1, 1, 1, 1)),
    PrintedTree(1, ("STE-I", "Marginals"), (2, 0, 2, 2, 2, 2)),
    PrintedTree(1, ("SparseMAP",), (4, 4, 4, 0, 4, 4)),
    PrintedTree(2, ("SPIGOT-CE",), (7, 6, 6, 6, 6, 1, 0)),
    PrintedTree(2, ("SPIGOT",), (2, 0, 2, 2, 4, 2, 2)),
    PrintedTree(2, OTHERS, (2, 0, 2, 2, 2, 2, 2)),
)


def printed_for(estimator: str) -> list[PrintedTree]:
    """The paper's own trees of an estimator, in the order of the sentences; not all have one for each."""
    return [tree for tree in PRINTED if estimator in (model.lower() for model in tree.models)]
