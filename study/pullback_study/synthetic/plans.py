"""Which runs each table and figure needs, and how one setting is chosen from a grid."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pullback_study.runs import Run
from pullback_study.synthetic.config import LEARNING_RATES, STEP_SIZES, Config, configure
from pullback_study.synthetic.methods import find_method
from pullback_study.synthetic.study import Synthetic

SEEDS = (0, 1, 2, 3)
SETTINGS = (3, 10)
INNER_STEPS = tuple(range(1, 11))
STEPPED = ("ste-i", "spigot", "spigot-ce", "spigot-eg")


@dataclass(frozen=True)
class Scope:
    """How much is run: the paper's full version, or less.

    Args:
        seeds: the study's seeds; data, initialisation and noise depend on them.
        steps: updates of each run.
        evaluate_every: steps between evaluations.
        inner_steps: the numbers of inner steps to compare.
        dtype: the precision of training.
        search: whether settings that the paper does not list are searched for.
    """

    seeds: tuple[int, ...] = SEEDS
    steps: int = 10_000
    evaluate_every: int = 100
    inner_steps: tuple[int, ...] = INNER_STEPS
    dtype: str = "float32"
    search: bool = True

    @property
    def options(self) -> dict[str, Any]:
        return {"steps": self.steps, "evaluate_every": self.evaluate_every, "dtype": self.dtype}


FULL = Scope()
QUICK = Scope(seeds=(0, 1), steps=1000, evaluate_every=50, inner_steps=(1, 3), search=False)


@dataclass(frozen=True)
class Cell:
    """A row of the table in one setting: its candidates, each a setting with one config for each seed."""

    estimator: str
    clusters: int
    candidates: tuple[tuple[Config, ...], ...]

    @property
    def configs(self) -> list[Config]:
        return [config for candidate in self.candidates for config in candidate]


@dataclass(frozen=True)
class Chosen:
    """The setting of a cell with the best validation accuracy, and its runs in the order of the seeds."""

    config: Config
    runs: tuple[Run, ...]

    def values(self, measure: str) -> list[float]:
        """A measure of `result.json` for each seed; NaN for a run that diverged."""
        return [float("nan") if run.result[measure] is None else run.result[measure] for run in self.runs]


def choose(cell: Cell, root: Path) -> Chosen | None:
    """The candidate with the highest mean validation accuracy over the seeds (the first of equals).

    None until every run of every candidate is done: a choice among fewer would be another rule.
    """
    study = Synthetic()
    candidates = [
        Chosen(candidate[0], tuple(study.run(config, root) for config in candidate)) for candidate in cell.candidates
    ]
    if not all(run.done for chosen in candidates for run in chosen.runs):
        return None
    return max(candidates, key=lambda chosen: sum(_or_zero(run.result["validation_accuracy"]) for run in chosen.runs))


def table_cell(
    estimator: str, clusters: int, *, grid: bool, gamma_scale: str = "paper", scope: Scope = FULL
) -> Cell:
    """One row of the table in one setting.

    Args:
        estimator: the row.
        clusters: 3 or 10.
        grid: search the paper's grid; else its best setting, where it lists one.
        gamma_scale: of pulled-back estimators.
        scope: seeds and steps.
    """
    method = find_method(estimator)
    search = grid or (method.learning_rate is None and scope.search)
    rates = LEARNING_RATES if search else (None,)
    sizes: Sequence[float | None] = (None,)
    if method.pulled_back and estimator != "ste-i":  # for STE-I, one step and Adam, the size does not matter
        if grid:
            sizes = STEP_SIZES
        elif gamma_scale == "example":
            sizes = (1.0,)
    scale = gamma_scale if method.pulled_back else None
    settings = [
        {"learning_rate": rate, "step_size": size, "gamma_scale": scale} for rate in rates for size in sizes
    ]
    return Cell(estimator, clusters, _over_seeds(estimator, clusters, settings, scope))


def steps_cell(estimator: str, inner_steps: int, *, scope: Scope = FULL) -> Cell:
    """One point of the figure on multiple updates: 10 clusters, the paper's learning rate, the best step size."""
    sizes = STEP_SIZES if scope.search else (find_method(estimator).step_size,)
    settings = [{"step_size": size, "inner_steps": inner_steps} for size in sizes]
    return Cell(estimator, 10, _over_seeds(estimator, 10, settings, scope))


def _over_seeds(
    estimator: str, clusters: int, settings: Sequence[dict[str, Any]], scope: Scope
) -> tuple[tuple[Config, ...], ...]:
    first = [configure(estimator, clusters=clusters, **setting, **scope.options) for setting in settings]
    return tuple(tuple(dataclasses.replace(config, seed=seed) for seed in scope.seeds) for config in first)


def _or_zero(value: float | None) -> float:
    return 0.0 if value is None else value
