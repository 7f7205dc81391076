"""The paper: the numbers that it reports (`paper.json` beside this file), its tables and figures, and its claims."""

from __future__ import annotations

import json
from importlib import resources
from typing import Any

from pullback_study.results.cells import Reference

_PAPER: dict[str, Any] = json.loads(resources.files(__package__).joinpath("paper.json").read_text())


def reported(study: str, row: str, setting: str, measure: str) -> Reference | None:
    """One cell of the paper's tables; None for a row that they do not have.

    >>> reported("synthetic", "STE-I", "10 clusters", "v_measure")
    Reference(value=94.48, spread=1.35, source='paper')
    """
    found = rows(study).get(row, {}).get(setting, {}).get(measure)
    return None if found is None else Reference(*found)


def rows(study: str) -> dict[str, Any]:
    """All rows of one of the two tables, `synthetic` and `structured`."""
    return _PAPER[study]["rows"]
