"""Which runs a number needs, how one setting is chosen from several, and the runs behind the choice."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pullback_study.results.cells import MEAN, Cell, Reference, Summary

if TYPE_CHECKING:
    from pullback_study.runs.store import Stored
    from pullback_study.tasks import Task


class Runs:
    """A folder of runs; each is read at most once, and a directory that cannot be read is a run that is not done."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._read: dict[str, Stored] = {}
        self._ids: dict[tuple[str, Any], str] = {}

    @cached_property
    def all(self) -> list[Stored]:
        from pullback_study.runs.store import list_runs

        found = list_runs(self.folder)
        self._read = {run.id: run for run in found}
        return found

    def find(self, task: Task, config: Any) -> Stored | None:
        """The run of a config, if it is done."""
        from pullback_study.runs.store import read_run

        if (task.name, config) not in self._ids:
            self._ids[task.name, config] = task.run(config, self.folder).id
        name = self._ids[task.name, config]
        if name not in self._read and "all" not in self.__dict__ and (self.folder / name).is_dir():
            self._read[name] = read_run(self.folder / name)
        run = self._read.get(name)
        return run if run is not None and run.state == "done" else None

    def of(self, task: str) -> list[Stored]:
        """The runs of a task that are done and that its present version would reuse."""
        return [run for run in self.all if run.task == task and run.state == "done" and not run.older]


@dataclass(frozen=True)
class Plan:
    """A row in one setting of a table: candidate settings, each with one config per seed."""

    task: Task
    estimator: str
    candidates: tuple[tuple[Any, ...], ...]  # for each setting, its configs in the order of the seeds
    deciding: tuple[tuple[Any, ...], ...]  # for each, the configs whose mean metric decides; empty where there is no choice

    @property
    def configs(self) -> list[Any]:
        return [config for candidate in self.candidates for config in candidate]

    @property
    def first(self) -> list[Any]:
        """The configs that decide."""
        return [config for candidate in self.deciding for config in candidate]

    def choose(self, runs: Runs) -> Chosen | None:
        """The candidate with the highest mean validation metric (the first of equals); a run that diverged counts as 0.

        None until every deciding run is done: a choice among fewer would be another rule.
        """
        found = [[runs.find(self.task, config) for config in candidate] for candidate in self.deciding]
        if any(run is None for candidate in found for run in candidate):
            return None
        metric = self.task.selected_by
        scores = [sum(0.0 if math.isnan(value := number(run, metric)) else value for run in each if run) for each in found]
        configs = self.candidates[scores.index(max(scores)) if scores else 0]
        return Chosen(self.task, configs, tuple(runs.find(self.task, config) for config in configs))

    def finished(self, runs: Runs) -> Chosen | None:
        """The chosen setting once all its runs are done."""
        chosen = self.choose(runs)
        return chosen if chosen is not None and chosen.complete else None


@dataclass(frozen=True)
class Chosen:
    """A setting, and its runs in the order of the seeds; None for those that are not done."""

    task: Task
    configs: tuple[Any, ...]
    runs: tuple[Stored | None, ...]

    @property
    def config(self) -> Any:
        return self.configs[0]

    @property
    def done(self) -> list[Stored]:
        return [run for run in self.runs if run is not None]

    @property
    def complete(self) -> bool:
        return None not in self.runs

    @property
    def setting(self) -> str:
        """The learning rate and the step size, in words."""
        rate, size = self.config.learning_rate, getattr(self.config, "step_size", None)
        return f"learning rate {rate:g}" + ("" if size is None else f", step size {size:g}")

    def values(self, measure: str) -> list[float]:
        """A measure of each seed that is done; NaN for a run that diverged."""
        return [number(run, measure) for run in self.done]

    def cell(self, measure: str, summary: Summary = MEAN, reference: Reference | None = None) -> Cell:
        ids, seeds = tuple(run.id for run in self.done), tuple(run.seed for run in self.done)
        return Cell(tuple(self.values(measure)), ids, seeds, summary, reference)

    def histories(self, measure: str, unit: str = "step") -> list[dict[float, float]]:
        """For each seed that is done, the measure at every evaluation."""
        return [history(run.curve(), measure, unit) for run in self.done]

    def replace(self, runs: Runs, **fields: Any) -> Chosen:
        """The same setting and seeds with other values of some fields."""
        configs = tuple(dataclasses.replace(config, **fields) for config in self.configs)
        return Chosen(self.task, configs, tuple(runs.find(self.task, config) for config in configs))


def over_seeds(config: Any, seeds: Iterable[int]) -> tuple[Any, ...]:
    return tuple(dataclasses.replace(config, seed=seed) for seed in seeds)


def history(rows: Sequence[Mapping[str, Any]], measure: str, unit: str = "step") -> dict[float, float]:
    """A measure by the step of its evaluation; what is not a number is left out."""
    good = [row for row in rows if isinstance(row, dict) and _is_number(row.get(unit)) and _is_number(row.get(measure))]
    return {row[unit]: row[measure] for row in good}


def number(run: Stored, measure: str) -> float:
    """A number of a run's result; NaN for what is not one."""
    value: Any = run.result.get(measure)
    return float(value) if _is_number(value) else math.nan


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
