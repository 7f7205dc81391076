"""The numbers the paper reports, as data: `paper.json` beside this file."""

from __future__ import annotations

import functools
import json
from importlib import resources
from typing import Any, NamedTuple


class Reported(NamedTuple):
    """A number of the paper's with its spread: a standard error or a standard deviation, as the table says."""

    value: float
    spread: float


def reported(study: str, row: str, setting: str, measure: str) -> Reported:
    """One cell of the paper's tables.

    >>> reported("synthetic", "STE-I", "10 clusters", "v_measure")
    Reported(value=94.48, spread=1.35)
    """
    return Reported(*_tables()[study]["rows"][row][setting][measure])


@functools.cache
def _tables() -> Any:
    return json.loads(resources.files(__package__).joinpath("paper.json").read_text())
