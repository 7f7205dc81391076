"""The rows of the ListOps table: an LSTM without trees, gold trees, every estimator of the registry, and one of our own."""

from __future__ import annotations

import functools

from pullback_study.tasks.blended import BLENDED
from pullback_study.tasks.methods import Method, registered

LSTMS = {"lstm": 1, "gold": 0}
"""How many LSTMs a baseline has; all other rows have two."""
RATES = (5e-4, 1e-3, 2e-3)
"""The learning rates that are searched, the same for every row."""


@functools.cache
def methods() -> dict[str, Method]:
    rows = (
        Method("lstm", "LSTM, no trees", "Baselines", in_paper=True),
        Method("gold", "Gold trees", "Baselines", in_paper=True),
        *registered({}),
        BLENDED,
    )
    return {method.name: method for method in rows}
