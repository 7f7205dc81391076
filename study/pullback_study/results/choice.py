"""How the rows of a study are run, how one setting is chosen from several, and the runs behind the choice."""

from __future__ import annotations

import math
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from pullback_study.results.cells import MEAN, Cell, Reference, Summary, history, number
from pullback_study.results.tables import Column, Row, Table
from pullback_study.runs.store import Stored, list_runs
from pullback_study.tasks import Method, Task, find_task
from pullback_study.tasks.schema import options

Fields = tuple[tuple[str, Any], ...]
_SIZES = ("steps", "epochs", "train_examples")


class Runs:
    """A folder of runs, which is read once; a directory that cannot be read is a run that is not done."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._by_config: dict[str, dict[Any, Stored]] = {}  # by task

    @cached_property
    def all(self) -> list[Stored]:
        return list_runs(self.folder)

    def find(self, task: Task, config: Any) -> Stored | None:
        """The run of a config, if it is done."""
        if task.name not in self._by_config:
            names, found = options(task.config_type), {}
            for run in self.of(task.name):
                made = task.config_type(**{name: value for name, value in run.config.items() if name in names})
                if task.run(made, self.folder).id == run.id:
                    found[made] = run
            self._by_config[task.name] = found
        return self._by_config[task.name].get(config)

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
class Protocol:
    """How the rows of a study are run: the full version, or less.

    The rule: of the settings of the grid, a row has the one with the highest mean validation metric over the deciding seeds.
    """

    task: str
    seeds: tuple[int, ...]  # of the results
    fields: Fields = ()  # of all configs
    rates: tuple[float, ...] = ()  # the grid's learning rates
    sizes: tuple[float, ...] = ()  # the grid's step sizes
    deciding: tuple[int, ...] = (0,)
    searched: Fields = ()  # the fields that differ in the runs that decide
    whole: Protocol | None = None  # the full version of a part

    def __getitem__(self, name: str) -> Any:
        """A field of the configs."""
        return dict(self.fields).get(name, getattr(find_task(self.task).config_type(), name))

    def having(self, **fields: Any) -> Protocol:
        """The same with other values of some fields."""
        return replace(self, fields=tuple({**dict(self.fields), **fields}.items()))

    def on(self, seeds: Sequence[int]) -> Protocol:
        """The same on other seeds."""
        return replace(self, seeds=tuple(seeds), whole=self.whole or self)

    def first(self, count: int | None) -> Protocol:
        """The same on that many seeds; on its own without a number."""
        return self.on(range(self.seeds[0], self.seeds[0] + count)) if count else self

    @property
    def warning(self) -> str:
        """What is less than in the full version; empty if nothing is."""
        if self.whole is None:
            return ""
        sizes = {name: (self[name], self.whole[name]) for name in _SIZES if hasattr(find_task(self.task).config_type, name)}
        sizes = {"seeds": (len(self.seeds), len(self.whole.seeds)), **sizes}
        less = [
            f"{mine} of {full or 'all'} {name.replace('_', ' ')}"
            for name, (mine, full) in sizes.items()
            if mine is not None and (full is None or mine < full)
        ]
        return f"Reduced: {', '.join(less)}. These numbers are not comparable with the paper's." if less else ""

    def plan(self, estimator: str, rates: Sequence[Any] = (), sizes: Sequence[Any] = (), **fields: Any) -> Plan:
        """A row over these learning rates and step sizes, by default its own; with more than one setting, the rule chooses."""
        common = {**dict(self.fields), **fields}
        grid = [(rate, size) for rate in rates or [None] for size in sizes or [None]]
        settings = [{**common, "learning_rate": rate, "step_size": size} for rate, size in grid]
        deciding = self.deciding if len(settings) > 1 else ()
        return Plan(find_task(self.task), estimator, settings, self.seeds, deciding, dict(self.searched))


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
        return self._configs(self.seeds, {})

    @cached_property
    def deciding(self) -> list[tuple[Any, ...]]:
        """For each setting the configs that decide."""
        return self._configs(self.deciders, self.searched) if self.deciders else []

    def _configs(self, seeds: Sequence[int], other: Mapping[str, Any]) -> list[tuple[Any, ...]]:
        configs = [self.task.configure(estimator=self.estimator, **{**setting, **other}) for setting in self.settings]
        return [tuple(replace(config, seed=seed) for seed in seeds) for config in configs]

    @property
    def configs(self) -> list[Any]:
        return [config for candidate in self.candidates for config in candidate]

    @property
    def first(self) -> list[Any]:
        """The configs that decide, of all settings."""
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
        there = [[runs.find(self.task, config) for config in configs] for configs in self.deciding]
        values = [[number(run, self.task.selected_by) for run in each if run] for each in there]
        if any(len(each) < len(self.deciders) for each in values):
            return Chosen(self.task, self.estimator)
        worst = min((value for each in values for value in each if value < 0), default=0.0)
        scores = [sum(worst if math.isnan(value) else value for value in each) for each in values]
        return Chosen.of(self.task, self.candidates[scores.index(max(scores))], runs)


@dataclass(frozen=True)
class Chosen:
    """A row's setting, and its runs in the order of the seeds, None for those that are not done; false if none is chosen."""

    task: Task
    estimator: str
    configs: tuple[Any, ...] = ()
    runs: tuple[Stored | None, ...] = ()

    @classmethod
    def of(cls, task: Task, configs: Sequence[Any], runs: Runs) -> Chosen:
        return cls(task, configs[0].estimator, tuple(configs), tuple(runs.find(task, config) for config in configs))

    def __bool__(self) -> bool:
        return bool(self.configs)

    @property
    def method(self) -> Method:
        return self.task.methods[self.estimator]

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
    def label(self) -> str:
        """The method's name in tables, with a star if it is stochastic."""
        return "*" * self.method.stochastic + self.method.label

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

    def cell(self, measure: str, digits: int = 2) -> Cell:
        return Cell.of(self.done, measure, digits=digits)

    def row(self, columns: Iterable[Column]) -> Row:
        """Its row of a table, with what the columns say of it."""
        found = {column.name: column.of(self) for column in columns}
        cells = {name: each for name, each in found.items() if isinstance(each, Cell)}
        texts = {name: each for name, each in found.items() if isinstance(each, str)}
        return Row(self.label, cells, texts, self.method.kind, self.estimator, self.setting)

    def histories(self, measure: str, unit: str = "step") -> list[dict[float, float]]:
        """For each seed that is done, the measure at every evaluation."""
        return [history(run.curve(), measure, unit) for run in self.done]

    def replace(self, runs: Runs, **fields: Any) -> Chosen:
        """The same setting and seeds with other values of some fields."""
        return Chosen.of(self.task, [replace(config, **fields) for config in self.configs], runs) if self else self


def measured(
    labels: Mapping[str, str], measure: str = "{}", summary: Summary = MEAN, digits: int = 2,
    paper: Callable[[Chosen, str], Reference | None] | None = None, judged: bool = True,
) -> list[Column]:  # fmt: skip
    """A column for each of these names, with its label.

    `measure` makes of a name that of a number in the results; `paper` finds the published number, which stands beside it.
    """

    def cell(row: Chosen, name: str) -> Cell:
        reference = paper(row, name) if paper else None
        return replace(Cell.of(row.done, measure.format(name), summary, reference, digits), judged=judged)

    return [Column(name, label, paper is not None, of=partial(cell, name=name)) for name, label in labels.items()]


def said(name: str, label: str, words: Callable[[Chosen], str]) -> Column:
    """A column of words, empty for a row without a setting."""
    return Column(name, label, of=lambda row: words(row) if row else "")


def seeds_of(protocol: Protocol) -> Column:
    """How many seeds are done."""
    return Column("seeds", "Seeds", of=lambda row: f"{len(row.done)} of {len(protocol.seeds)}")


def seed_by_seed(found: Sequence[Chosen]) -> list[Any]:
    """All configs of the rows, seed by seed: an interrupted table has its first seeds complete."""
    return [config for seed in zip(*(row.configs for row in found if row), strict=True) for config in seed]


def table_of(title: str, rows: Iterable[Chosen], columns: Sequence[Column], notes: Sequence[str] = (), **about: Any) -> Table:
    """A line for each row, with what the columns say of it."""
    return Table(title, columns, [row.row(columns) for row in rows], notes, **about)


def settings_of(rows: Sequence[Chosen], more: Mapping[str, Callable[[Chosen], Any]]) -> Table:
    """Which learning rate and step size each row has, and more about it."""
    sizes = ["" if row.config.step_size is None else f"{row.config.step_size:g}" for row in rows]
    lines = [[row.method.label, f"{row.config.learning_rate:g}", size, *(str(words(row)) for words in more.values())]
             for row, size in zip(rows, sizes, strict=True)]  # fmt: skip
    return Table.of_words("Settings", ["Model", "learning rate", "step size", *more], lines)
