"""Configs that train in a moment."""

from __future__ import annotations

from typing import Any

from pullback_study.tasks import find_task

SIZES: dict[str, Any] = {
    "features": 8,
    "train_examples": 60,
    "validation_examples": 20,
    "test_examples": 20,
    "evaluate_every": 10,
}


def small(estimator: str = "spigot-ce", **options: Any) -> Any:
    fields = {"clusters": 4, "steps": 50, "dtype": "float64", **SIZES, **options}
    return find_task("synthetic").configure(estimator=estimator, **fields)
