"""Which runs each table needs, and how one setting of a row is chosen by the search."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pullback_study.runs import Run
from pullback_study.text.config import VECTORS, Config, configure
from pullback_study.text.study import TextStudy

INNER_STEPS = (1, 2, 5)
DECIDING_SEED = 0
STEPPED = ("spigot", "spigot-ce", "spigot-eg")


@dataclass(frozen=True)
class Scope:
    """How much is run: the full version, or less.

    Args:
        task: `sst` or `snli`.
        seeds: of initialisation, order and noise.
        epochs: of each run.
        rates: the learning rates of the search, of the paper's grid and the same for every row.
        data: the name of the training data.
        vectors: the name of the word vectors.
        train_examples: only the first so many; None: all.
    """

    task: str
    seeds: tuple[int, ...]
    epochs: int
    rates: tuple[float, ...]
    data: str
    vectors: str = VECTORS
    train_examples: int | None = None

    @property
    def options(self) -> dict[str, Any]:
        names = ("epochs", "data", "vectors", "train_examples")
        return {name: getattr(self, name) for name in names}


FULL = {
    "sst": Scope("sst", (0, 1, 2), 40, (1e-4, 5e-4, 1e-3), "sst"),
    "snli": Scope("snli", (0, 1), 5, (1e-4, 3e-4, 1e-3), "snli_1.0_train.first100k"),
}
QUICK = {
    "sst": dataclasses.replace(FULL["sst"], seeds=(0,), epochs=2, rates=(1e-3,)),
    "snli": dataclasses.replace(FULL["snli"], seeds=(0,), epochs=1, rates=(1e-3,), train_examples=5000),
}


@dataclass(frozen=True)
class Cell:
    """A row of a table: its candidates, each a setting with one config for each seed.

    Where there are several, the runs of the deciding seed choose: the same number of runs for every row.
    """

    estimator: str
    candidates: tuple[tuple[Config, ...], ...]

    @property
    def deciding(self) -> list[Config]:
        """For each candidate the run that it is judged by; empty where there is no choice."""
        if len(self.candidates) == 1:
            return []
        return [dataclasses.replace(candidate[0], seed=DECIDING_SEED) for candidate in self.candidates]


@dataclass(frozen=True)
class Chosen:
    """The setting of a row, and its runs in the order of the seeds, done or not."""

    config: Config
    runs: tuple[Run, ...]

    @property
    def complete(self) -> bool:
        return all(run.done for run in self.runs)

    def values(self, measure: str) -> list[float]:
        """A measure of `result.json` for each seed that is done; NaN where it is missing."""
        found = [run.result[measure] for run in self.runs if run.done]
        return [math.nan if value is None else value for value in found]


def table_cell(estimator: str, scope: Scope, *, search: bool, **options: Any) -> Cell:
    """A row at the paper's best setting, or over the learning rates of the search.

    Args:
        estimator: the row.
        scope: seeds, epochs and data.
        search: every row has the same few learning rates to choose from; step sizes stay the paper's.
        options: other fields of the configs, for all candidates.
    """
    rates: Sequence[float | None] = scope.rates if search else (None,)
    settings = [configure(scope.task, estimator, learning_rate=rate, **scope.options, **options) for rate in rates]
    return Cell(estimator, tuple(_over_seeds(config, scope.seeds) for config in settings))


def choose(cell: Cell, root: Path) -> Chosen | None:
    """The candidate with the best validation accuracy for the deciding seed (the first of equals).

    None until that seed's run of every candidate is done: a choice among fewer would be another rule.
    """
    study = TextStudy()
    deciding = [study.run(config, root) for config in cell.deciding]
    if not all(run.done for run in deciding):
        return None
    best = max(range(len(deciding)), key=lambda i: deciding[i].result["validation_accuracy"], default=0)
    configs = cell.candidates[best]
    return Chosen(configs[0], tuple(study.run(config, root) for config in configs))


def with_steps(chosen: Chosen, inner_steps: int, root: Path) -> Chosen:
    """The same setting and seeds with another number of inner steps."""
    configs = [dataclasses.replace(run.config, inner_steps=inner_steps) for run in chosen.runs]
    return Chosen(configs[0], tuple(TextStudy().run(config, root) for config in configs))


def deciding(cells: Iterable[Cell]) -> list[Config]:
    """What must be trained before settings can be chosen."""
    return [config for cell in cells for config in cell.deciding]


def configs_of(rows: Iterable[Chosen | None]) -> list[Config]:
    """All runs of the rows, seed by seed: an interrupted table has its first seeds complete."""
    found = [[run.config for run in row.runs] for row in rows if row]
    return [config for seed in zip(*found, strict=True) for config in seed]


def _over_seeds(config: Config, seeds: Sequence[int]) -> tuple[Config, ...]:
    return tuple(dataclasses.replace(config, seed=seed) for seed in seeds)
