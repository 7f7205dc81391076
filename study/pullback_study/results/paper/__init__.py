"""The paper: its tables and figures beside our runs, and its claims."""

from __future__ import annotations

from pullback_study.published import rows
from pullback_study.results.cells import Reference


def reported(study: str, row: str, setting: str, measure: str) -> Reference | None:
    """One cell of the paper's tables; None for a row that they do not have.

    >>> reported("synthetic", "STE-I", "10 clusters", "v_measure")
    Reference(value=94.48, spread=1.35, source='paper')
    """
    found = rows(study).get(row, {}).get(setting, {}).get(measure)
    return None if found is None else Reference(*found)
