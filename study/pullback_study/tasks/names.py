"""The names of estimators in tables, and estimators of one's own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from pullback_study.listed import VariableError, listed, load

if TYPE_CHECKING:
    from pullback_study.tasks.task import Method

NAMES = {
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
"""The paper's, by estimator: for a categorical and for a structured latent variable, and the heading above its row."""
OWN = listed("PULLBACK_ESTIMATORS")
"""By name, where each estimator of one's own is found: module and attribute, a `Method`."""


def own_method(name: str) -> Method:
    """The estimator of that name in `OWN`; raises `ValueError` if it cannot be loaded."""
    from pullback_study.tasks.task import Method

    return load("estimator", name, OWN[name], Method)


def own_methods(taken: Iterable[str]) -> Iterator[Method]:
    """Those that can be loaded; the others stop only the commands that name them."""
    if both := sorted(OWN.keys() & set(taken)):
        raise VariableError(f"PULLBACK_ESTIMATORS names an estimator {both[0]!r}, which is built in; give yours another name")
    for name in OWN:
        try:
            yield own_method(name)
        except ValueError:
            continue
