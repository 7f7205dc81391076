"""Which runs a number needs, how one setting is chosen from several, and the runs behind the choice."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from pullback_study.results.cells import MEAN, Cell, Reference, Summary, history, number
from pullback_study.results.tables import Row, Table
from pullback_study.runs.store import Stored, list_runs
from pullback_study.tasks import Method, Task


class Runs:
    """A folder of runs, which is read once; a directory that cannot be read is a run that is not done."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._settings: dict[str, dict[tuple[Any, ...], dict[int, Stored]]] = {}  # by task

    @cached_property
    def all(self) -> list[Stored]:
        return list_runs(self.folder)

    def by_seed(self, task: Task, config: Any) -> Mapping[int, Stored]:
        """The runs of a config that are done, for any seed."""
        if task.name not in self._settings:
            self._settings[task.name] = self._indexed(task)
        return self._settings[task.name].get(_setting(config), {})

    def _indexed(self, task: Task) -> dict[tuple[Any, ...], dict[int, Stored]]:
        found: dict[tuple[Any, ...], dict[int, Stored]] = {}
        names = {each.name for each in fields(task.config_type)}
        for stored in self.of(task.name):
            config = task.config_type(**{name: value for name, value in stored.config.items() if name in names})
            if task.run(config, self.folder).id == stored.id:
                found.setdefault(_setting(config), {})[config.seed] = stored
        return found

    def find(self, task: Task, config: Any) -> Stored | None:
        """The run of a config, if it is done."""
        return self.by_seed(task, config).get(config.seed)

    @cached_property
    def estimators(self) -> set[tuple[str, str]]:
        """The tasks and estimators of which there are runs that are done."""
        return {(run.task, str(run.config.get("estimator"))) for run in self.all if run.state == "done"}

    def command(self, *words: str) -> str:
        """The command line of ours that would make what is missing here, for people to copy."""
        where = [] if self.folder == Path("runs") else ["--runs", str(self.folder)]
        return shlex.join(["pullback", "reproduce", *words, *where])

    def of(self, task: str) -> list[Stored]:
        """The runs of a task that are done and that its present version would reuse."""
        return [run for run in self.all if run.task == task and run.state == "done" and not run.older]


@dataclass(frozen=True)
class Plan:
    """A row in one setting of a table: candidate settings, each with one config per seed."""

    task: Task
    estimator: str
    settings: Sequence[Mapping[str, Any]]  # the fields of each candidate
    seeds: Sequence[int]  # of the table
    deciders: Sequence[int] = ()  # the seeds whose mean metric decides; none where there is no choice
    searched: Mapping[str, Any] = field(default_factory=dict)  # the fields that differ in the runs that decide

    @cached_property
    def candidates(self) -> list[tuple[Any, ...]]:
        """For each setting its configs, in the order of the seeds."""
        return [_seeded(config, self.seeds) for config in self._configs({})]

    @cached_property
    def deciding(self) -> list[tuple[Any, ...]]:
        """For each setting the configs that decide."""
        return [_seeded(config, self.deciders) for config in self._configs(self.searched)] if self.deciders else []

    def _configs(self, other: Mapping[str, Any]) -> list[Any]:
        return [self.task.configure(estimator=self.estimator, **{**setting, **other}) for setting in self.settings]

    @property
    def configs(self) -> list[Any]:
        return [config for candidate in self.candidates for config in candidate]

    @property
    def first(self) -> list[Any]:
        """The configs that decide."""
        return [config for candidate in self.deciding for config in candidate]

    def choose(self, runs: Runs) -> Chosen:
        """The candidate with the highest mean validation metric (the first of equals).

        A run that diverged counts as 0, or as the worst of all where that is lower.
        None of them until every deciding run is done: a choice among fewer would be another rule.
        """
        if not self.deciders:
            return Chosen.of(self.task, self.candidates[0], runs)
        if (self.task.name, self.estimator) not in runs.estimators:
            return Chosen(self.task, self.estimator)
        there = [runs.by_seed(self.task, config) for config in self._configs(self.searched)]
        if any(seed not in each for each in there for seed in self.deciders):
            return Chosen(self.task, self.estimator)
        values = [[number(each[seed], self.task.selected_by) for seed in self.deciders] for each in there]
        worst = min((value for each in values for value in each if value < 0), default=0.0)
        scores = [sum(worst if math.isnan(value) else value for value in each) for each in values]
        return Chosen.of(self.task, self.candidates[scores.index(max(scores))], runs)

    def finished(self, runs: Runs) -> Chosen:
        """The chosen setting once all its runs are done."""
        return chosen if (chosen := self.choose(runs)).complete else Chosen(self.task, self.estimator)


@dataclass(frozen=True)
class Chosen:
    """A row's setting, and its runs in the order of the seeds, None for those that are not done; false if none is chosen."""

    task: Task
    estimator: str
    configs: tuple[Any, ...] = ()
    runs: tuple[Stored | None, ...] = ()

    @classmethod
    def of(cls, task: Task, configs: Sequence[Any], runs: Runs) -> Chosen:
        found = tuple(runs.find(task, config) for config in configs)
        return cls(task, configs[0].estimator, tuple(configs), found)

    def __bool__(self) -> bool:
        return bool(self.configs)

    @property
    def method(self) -> Method:
        return self.task.methods[self.estimator]

    @property
    def label(self) -> str:
        """The method's name in tables, with a star if it is stochastic."""
        return f"{'*' * self.method.stochastic}{self.method.label}"

    @property
    def config(self) -> Any:
        return self.configs[0]

    @property
    def done(self) -> list[Stored]:
        return [run for run in self.runs if run is not None]

    @property
    def complete(self) -> bool:
        return bool(self) and None not in self.runs

    @property
    def setting(self) -> str:
        """The learning rate and the step size, in words."""
        if not self:
            return ""
        size = getattr(self.config, "step_size", None)
        return f"learning rate {self.config.learning_rate:g}" + ("" if size is None else f", step size {size:g}")

    def values(self, measure: str) -> list[float]:
        """A measure of each seed that is done; NaN for a run that diverged."""
        return [number(run, measure) for run in self.done]

    def cell(self, measure: str, summary: Summary = MEAN, reference: Reference | None = None, digits: int = 2) -> Cell:
        return Cell.of(self.done, measure, summary, reference, digits)

    def row(self, cells: Mapping[str, Cell], texts: Mapping[str, str] | None = None) -> Row:
        """Its row of a table."""
        return Row(self.label, cells, texts or {}, self.method.kind, self.estimator, self.setting)

    def histories(self, measure: str, unit: str = "step") -> list[dict[float, float]]:
        """For each seed that is done, the measure at every evaluation."""
        return [history(run.curve(), measure, unit) for run in self.done]

    def replace(self, runs: Runs, **fields: Any) -> Chosen:
        """The same setting and seeds with other values of some fields."""
        return Chosen.of(self.task, [replace(config, **fields) for config in self.configs], runs) if self else self


def _setting(config: Any) -> tuple[Any, ...]:
    """What is the same for all seeds."""
    return tuple(value for name, value in vars(config).items() if name != "seed")


def _seeded(config: Any, seeds: Sequence[int]) -> tuple[Any, ...]:
    return tuple(replace(config, seed=seed) for seed in seeds)


def seed_by_seed(found: Sequence[Chosen]) -> list[Any]:
    """All configs of the rows, seed by seed: an interrupted table has its first seeds complete."""
    return [config for seed in zip(*(row.configs for row in found if row), strict=True) for config in seed]


def settings_of(rows: Sequence[Chosen], more: Sequence[Mapping[str, str]]) -> Table:
    """Which learning rate and step size each row has, and more words about it."""
    sizes = ["" if row.config.step_size is None else f"{row.config.step_size:g}" for row in rows]
    lines = [[row.method.label, f"{row.config.learning_rate:g}", size, *words.values()]
             for row, size, words in zip(rows, sizes, more, strict=True)]  # fmt: skip
    return Table.of_words("Settings", ["Model", "learning rate", "step size", *(more[0] if more else ())], lines)
