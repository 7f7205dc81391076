"""The rows of a table of text results: a baseline and the registry's estimators, with the paper's best settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pullback_study.tasks.methods import Method, registered

BASELINE = "baseline"
PROJECTIONS = {"spigot": "exact", "spigot-ce": "local"}
"""What inner steps are projected onto by default. SPIGOT-CE's exact projections are means of hundreds of trees, which take too
long in training (docs/results/text.md)."""


def text_methods(best: Mapping[str, tuple[float, float | None]]) -> dict[str, Method]:
    """The methods of a task.

    Args:
        best: learning rate and step size of each row of the paper's table; these are the paper's rows.
    """
    settings: dict[str, dict[str, Any]] = {}
    for name, (rate, size) in best.items():
        settings[name] = {"learning_rate": rate} | ({} if size is None else {"step_size": size})
    baseline = Method(BASELINE, "Baseline", "", in_paper=True, defaults=settings[BASELINE])
    found = [baseline, *registered(settings, in_paper=lambda name: name in best)]
    return {method.name: method for method in found}
