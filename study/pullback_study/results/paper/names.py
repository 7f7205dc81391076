"""The names under which the paper's tables list the estimators."""

from __future__ import annotations

from typing import NamedTuple


class Name(NamedTuple):
    """An estimator in a table."""

    label: str  # the row's name
    heading: str  # above the row: what the decoder sees in training
    in_paper: bool = True  # whether the paper's tables have the row


OTHERS = "Not in the paper"

_ROWS = {  # estimator: categorical, structured, heading; in the order of the paper's tables
    "marginals": ("Softmax", "Marginals", "Relaxed"),
    "sparsemap": ("Sparsemax", "SparseMAP", "Relaxed"),
    "perturbed-marginals": ("Gumbel-Softmax", "Perturbed marginals", "Relaxed"),
    "perturb-and-map": ("ST-Gumbel", "Perturb-and-MAP", "Argmax"),
    "sfe": ("SFE", "SFE", "Argmax"),
    "sfe-baseline": ("SFE w/ baseline", "SFE w/ baseline", "Argmax"),
    "ste-s": ("STE-S", "STE-S", "Argmax"),
    "ste-i": ("STE-I", "STE-I", "Argmax"),
    "spigot": ("SPIGOT", "SPIGOT", "Argmax"),
    "spigot-ce": ("SPIGOT-CE", "SPIGOT-CE", "Argmax"),
    "spigot-eg": ("SPIGOT-EG", "SPIGOT-EG", "Argmax"),
}
ORDER = tuple(_ROWS)
"""The paper's estimators, in the order of its tables."""


def name_of(estimator: str, *, structured: bool) -> Name:
    """The paper's name of an estimator for a structured or a categorical latent variable; its own name if it has none.

    >>> name_of("marginals", structured=False)
    Name(label='Softmax', heading='Relaxed', in_paper=True)
    >>> name_of("imle", structured=True)
    Name(label='imle', heading='Not in the paper', in_paper=False)
    """
    if estimator not in _ROWS:
        return Name(estimator, OTHERS, in_paper=False)
    categorical, other, heading = _ROWS[estimator]
    return Name(other if structured else categorical, heading)
