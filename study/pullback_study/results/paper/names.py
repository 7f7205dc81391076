"""The names under which the paper's tables list the estimators, and the numbers it reports (`paper.json` beside this file)."""

from __future__ import annotations

import json
from importlib import resources
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from pullback_study.results.cells import Reference


class Name(NamedTuple):
    """An estimator in a table."""

    label: str  # the row's name
    heading: str  # above the row: what the decoder sees in training
    in_paper: bool = True  # whether the paper's tables have the row


OTHERS = "Not in the paper"

_PAPER: dict[str, Any] = json.loads(resources.files(__package__).joinpath("paper.json").read_text())
_ROWS = _PAPER["names"]  # estimator: categorical, structured, heading; in the order of the paper's tables


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


def reported(study: str, row: str, setting: str, measure: str) -> Reference | None:
    """One cell of the paper's tables; None for a row that they do not have.

    >>> reported("synthetic", "STE-I", "10 clusters", "v_measure")
    Reference(value=94.48, spread=1.35, source='paper')
    """
    from pullback_study.results.cells import Reference

    found = rows(study).get(row, {}).get(setting, {}).get(measure)
    return None if found is None else Reference(*found)


def rows(study: str) -> dict[str, Any]:
    """All rows of one of the two tables, `synthetic` and `structured`."""
    return _PAPER[study]["rows"]
