"""Runs of any task as tables and curves: a configuration is everything in a config but the seed."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from pullback_study.results.cells import MEAN_ERROR, Cell, history
from pullback_study.results.figures import Figure, panel
from pullback_study.results.tables import Column, Row, Table
from pullback_study.runs.store import Stored, rank
from pullback_study.tasks import Metric, Task, known_task
from pullback_study.tasks.schema import EstimatorConfig


def describe(name: str, runs: Sequence[Stored] = ()) -> Task:
    """A task with those of its metrics that some runs have; made of the runs alone if it is not installed."""
    found = known_task(name)
    if found is None:
        names = dict.fromkeys(name for run in runs for name in run.metrics if name.startswith(("validation_", "test_")))
        metrics = [Metric(each, each.replace("_", " ").capitalize(), each.removeprefix("validation_")) for each in names]
        selected_by = next((each for each in names if each.startswith("validation_")), "validation_accuracy")
        return Task(name=name, title=name, config_type=EstimatorConfig, metrics=tuple(metrics), selected_by=selected_by)
    there = {name for run in runs for name in (*run.result, *run.metrics)}
    return replace(found, metrics=tuple(metric for metric in found.metrics if metric.name in there))


def labels(task: Task) -> dict[str, str]:
    """Of the estimators, by their names."""
    return {name: method.label for name, method in task.methods.items()}


def configurations(
    task: str, runs: Sequence[Stored], *, by: Sequence[str] = (), limit: int | None = None, part: str = "",
    short: bool = False,
) -> Table:  # fmt: skip
    """The configurations of finished runs of a task, the best mean validation metric first, with all their seeds.

    With fields `by`, only the best for each of their values. `part` says in words which of the task's tables it is; a `short`
    one, for the terminal, has only headline metrics.
    """
    about = describe(task, runs)
    found = grouped(runs, about.selected_by)
    if by:
        best: dict[str, list[Stored]] = {}
        for group in found:
            best.setdefault(words(group[0].config, by), group)
        found = list(best.values())
    shown = found[:limit]
    names = [*by, *(name for name in varying([group[0].config for group in shown]) if name not in by)] or ["estimator"]
    metrics = [metric for metric in about.metrics if metric.headline or not short]
    rows = []
    for group in shown:
        cells = {metric.name: Cell.of(group, metric.name, MEAN_ERROR, digits=metric.digits) for metric in about.metrics}
        config = group[0].config
        rows.append(Row(words(config, names), cells, {"seeds": str(len(group))}, name=str(config.get("estimator", ""))))
    columns = [Column("seeds", "Seeds"), *(Column(metric.name, metric.label) for metric in metrics)]
    notes = [f"{len(found) - len(shown)} more configurations."] if len(found) > len(shown) else []
    label = next((metric.label for metric in about.metrics if metric.name == about.selected_by), about.selected_by)
    title = f"Best configuration for each {' and '.join(by)}" if by else "Configurations" + (f", {part}" if part else "")
    title += f", by {label[:1].lower()}{label[1:]}"
    return Table(title, columns, rows, notes, f"{task}-configurations", first="Configuration")


def best_curves(task: str, runs: Sequence[Stored], part: str = "") -> Figure:
    """Learning curves of any task: for each estimator its configuration with the best mean validation metric."""
    about = describe(task, runs)
    best: dict[str, list[Stored]] = {}
    for group in grouped(runs, about.selected_by):
        best.setdefault(str(group[0].config.get("estimator", "")), group)
    rows = {name: [run.curve() for run in group] for name, group in best.items()}
    unit = "epoch" if all("epoch" in row for each in rows.values() for curve in each for row in curve[:1]) else "step"
    drawn = []
    for metric in about.metrics:
        if metric.curve:
            histories = {labels(about).get(name, name): [history(each, metric.curve, unit) for each in curves]
                         for name, curves in rows.items()}  # fmt: skip
            drawn.append(panel(metric.curve, f"{unit.capitalize()}s", metric.label, histories))
    note = "The best configuration of each estimator; median and range of its seeds."
    title = f"{about.title}: learning curves" + (f", {part}" if part else "")
    return Figure(title, [each for each in drawn if each.curves], f"{task}-curves", note)


def listing(task: str, runs: Sequence[Stored]) -> Table:
    """Every run: what differs between their configs, their states and their metrics."""
    about = describe(task, runs)
    fields = [name for name in varying([run.config for run in runs]) if name != "estimator"]
    columns = {name: name.replace("_", " ") for name in fields} | {"seed": "Seed", "state": "State"}
    columns |= {metric.name: metric.label for metric in about.metrics} | {"run": "Run"}
    rows = []
    for run in sorted(runs, key=lambda run: [rank(run.config.get(name)) for name in ("estimator", *fields, "seed")]):
        given = {name: value for name in (*fields, "seed") if (value := run.config.get(name)) is not None}
        texts = {name: f"{value:g}" if isinstance(value, float) else str(value) for name, value in given.items()}
        texts |= {metric.name: metric.show(run.metrics.get(metric.name)) for metric in about.metrics}
        texts |= {"state": run.state + " (older)" * run.older, "run": run.id}
        estimator = str(run.config.get("estimator", "?"))
        rows.append(Row(labels(about).get(estimator, estimator), {}, texts, note=(run.error or "")[:2000]))
    older = sum(run.older for run in runs)
    some = "1 run of an older version of this task is" if older == 1 else f"{older} runs of an older version of this task are"
    notes = [f"{some} listed, and not used in tables."] * bool(older)
    shown = [Column(name, label) for name, label in columns.items()]
    return Table(f"Every run ({len(runs)})", shown, rows, notes, first="Estimator")


def parts(task: str, runs: Sequence[Stored]) -> dict[str, list[Stored]]:
    """The runs of each table of a task, by what is special about it: the values of the task's `tables_by`."""
    names = describe(task).tables_by
    found: dict[str, list[Stored]] = {}
    for run in sorted(runs, key=lambda run: [str(run.config.get(name)).rjust(20) for name in names]):
        found.setdefault(words(run.config, names), []).append(run)
    return found


def varying(configs: Sequence[Mapping[str, Any]]) -> list[str]:
    """The fields that have several values, those to which they do not apply left aside; never the seed."""
    names = dict.fromkeys(name for config in configs for name in config if name != "seed")
    return [name for name in names if len({json.dumps(c.get(name), default=str) for c in configs} - {"null"}) > 1]


def words(config: Mapping[str, Any], names: Sequence[str]) -> str:
    """Some fields of a config for people: a word speaks for itself, a number needs its name.

    >>> words({"estimator": "spigot", "learning_rate": 0.1, "patience": None}, ["estimator", "learning_rate", "patience"])
    'spigot, learning rate 0.1'
    """
    given = {name.replace("_", " "): config[name] for name in names if config.get(name) is not None}
    return ", ".join(
        value if isinstance(value, str) else f"{name} {value:g}" if isinstance(value, float) else f"{name} {value}"
        for name, value in given.items()
    )


def grouped(runs: Sequence[Stored], selected_by: str) -> list[list[Stored]]:
    """The runs of each configuration in the order of their seeds, the best first; with a run that diverged, last."""
    groups: dict[str, list[Stored]] = {}
    for run in runs:
        setting = {name: value for name, value in run.config.items() if name != "seed"}
        groups.setdefault(json.dumps(setting, sort_keys=True, default=str), []).append(run)

    def score(group: Sequence[Stored]) -> float:
        cell = Cell.of(group, selected_by)
        return -math.inf if cell.diverged else cell.value

    return sorted((sorted(group, key=lambda run: run.seed or 0) for group in groups.values()), key=score, reverse=True)
