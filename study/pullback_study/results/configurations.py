"""Runs of any task as tables and curves: a configuration is everything in a config but the seed."""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from pullback_study.results.cells import MEAN_ERROR, Cell
from pullback_study.results.choice import history, number
from pullback_study.results.figures import Figure, Panel, over_seeds
from pullback_study.results.tables import Column, Row, Table

if TYPE_CHECKING:
    from pullback_study.runs.store import Stored


def configurations(
    task: str, runs: Sequence[Stored], *, by: Sequence[str] = (), limit: int | None = None, part: str = "",
    short: bool = False,
) -> Table:  # fmt: skip
    """The configurations of some runs, the best mean validation metric first, with all their seeds.

    Args:
        task: its name; metrics and labels are the task's, or the results' own where there is no such task.
        runs: of that task, done.
        by: fields; only the best configuration for each of their values is listed.
        limit: how many to list.
        part: which of the task's tables it is, in words.
        short: whether only headline metrics are shown, to fit into a terminal.
    """
    about = describe(task, runs)
    groups = _grouped(runs)
    rows = [(group[0].config, {m.name: _cell(group, m) for m in about.metrics}, group) for group in groups]
    rows.sort(key=lambda row: _rank(row[1].get(about.selected_by)), reverse=True)
    found = len(rows)
    if by:
        first: dict[str, Any] = {}
        for row in rows:
            first.setdefault(json.dumps([row[0].get(name) for name in by], default=str), row)
        rows = list(first.values())
    shown = rows[:limit]
    names = [*by, *(name for name in varying([config for config, *_ in shown]) if name not in by)] or ["estimator"]
    notes = [f"{found - len(shown)} more configurations."] if limit is not None and not by and found > limit else []
    shown_metrics = [metric for metric in about.metrics if metric.headline or not short]
    columns = [Column("seeds", "Seeds"), *(Column(metric.name, metric.label) for metric in shown_metrics)]
    lines = [
        Row(words(config, names), cells, {"seeds": str(len(group))}, name=str(config.get("estimator", "")))
        for config, cells, group in shown
    ]
    label = next((metric.label for metric in about.metrics if metric.name == about.selected_by), about.selected_by)
    best = f"Best configuration for each {' and '.join(by)}" if by else "Configurations" + (f", {part}" if part else "")
    title = f"{best}, by {label[:1].lower()}{label[1:]}"
    return Table(title, columns, lines, notes, f"{task}-configurations", first="Configuration")


def best_curves(task: str, runs: Sequence[Stored], part: str = "") -> Figure:
    """Learning curves of any task: for each estimator its configuration with the best mean validation metric."""
    about = describe(task, runs)
    best: dict[str, list[Stored]] = {}
    for group in sorted(_grouped(runs), key=lambda group: _rank(_cell(group, _named(about.selected_by))), reverse=True):
        best.setdefault(str(group[0].config.get("estimator", "")), group)
    curves = {name: [run.curve() for run in group] for name, group in best.items()}
    unit = "epoch" if all("epoch" in row for rows in curves.values() for each in rows for row in each[:1]) else "step"
    measures = {metric.curve: metric.label for metric in about.metrics if metric.curve}

    drawn = []
    for measure, label in measures.items():
        histories = {name: [history(rows, measure, unit) for rows in each] for name, each in curves.items()}
        lines = [over_seeds(label_of(task, name), each) for name, each in histories.items()]
        drawn.append(Panel(measure, f"{unit.capitalize()}s", label, [line for line in lines if line.x]))
    note = "The best configuration of each estimator; median and range of its seeds."
    title = f"{about.title}: learning curves" + (f", {part}" if part else "")
    return Figure(title, [panel for panel in drawn if panel.curves], f"{task}-curves", note)


def describe(task: str, runs: Sequence[Stored] = ()) -> Any:
    """Title, selecting metric and those metrics of a task that some runs have; from the runs alone if it is not installed."""
    found = _task(task)
    if found is not None:
        there = {name for run in runs for name in (*run.result, *run.metrics)}
        metrics = [metric for metric in found.metrics if metric.name in there]
        return SimpleNamespace(title=found.title, metrics=metrics, selected_by=found.selected_by, tables_by=found.tables_by)
    names = dict.fromkeys(name for run in runs for name in run.metrics if name.startswith(("validation_", "test_")))
    metrics = [_named(name) for name in names]
    selected = next((name for name in names if name.startswith("validation_")), "validation_accuracy")
    return SimpleNamespace(title=task, metrics=metrics, selected_by=selected, tables_by=())


def parts(task: str, runs: Sequence[Stored]) -> dict[str, list[Stored]]:
    """The runs of each table of a task, by what is special about it: the values of the task's `tables_by`."""
    names, found = describe(task).tables_by, {}  # type: tuple[str, ...], dict[str, list[Stored]]
    for run in sorted(runs, key=lambda run: [str(run.config.get(name)).rjust(20) for name in names]):
        found.setdefault(words(run.config, names), []).append(run)
    return found


def label_of(task: str, estimator: str) -> str:
    """The name of an estimator in a task's tables."""
    found = _task(task)
    return found.methods[estimator].label if found is not None and estimator in found.methods else estimator


def varying(configs: Sequence[Mapping[str, Any]]) -> list[str]:
    """The fields that have several values, those to which they do not apply left aside; never the seed."""
    names = dict.fromkeys(name for config in configs for name in config if name != "seed")
    return [name for name in names if len({json.dumps(c.get(name), default=str) for c in configs} - {"null"}) > 1]


def words(config: Mapping[str, Any], names: Sequence[str]) -> str:
    """Some fields of a config for people: a word speaks for itself, a number needs its name.

    >>> words({"estimator": "spigot", "learning_rate": 0.1, "patience": None}, ["estimator", "learning_rate", "patience"])
    'spigot, learning rate 0.1'
    """
    given = [(name, config.get(name)) for name in names if config.get(name) is not None]
    return ", ".join(
        value if isinstance(value, str) else f"{name.replace('_', ' ')} {value:g}" if isinstance(value, float)
        else f"{name.replace('_', ' ')} {value}"
        for name, value in given
    )  # fmt: skip


def _grouped(runs: Sequence[Stored]) -> list[list[Stored]]:
    groups: dict[str, list[Stored]] = {}
    for run in runs:
        setting = {name: value for name, value in run.config.items() if name != "seed"}
        groups.setdefault(json.dumps(setting, sort_keys=True, default=str), []).append(run)
    return [sorted(group, key=lambda run: run.seed or 0) for group in groups.values()]


def _cell(group: Sequence[Stored], metric: Any) -> Cell:
    values = tuple(number(run, metric.name) for run in group)
    return Cell(values, tuple(run.id for run in group), tuple(run.seed for run in group), MEAN_ERROR, digits=metric.digits)


def _rank(cell: Cell | None) -> float:
    return -math.inf if cell is None or cell.diverged or not cell.values else cell.value


def _named(name: str) -> Any:
    split, _, rest = name.partition("_")
    label = name.replace("_", " ").capitalize()
    return SimpleNamespace(name=name, label=label, curve=rest if split == "validation" else None, digits=2, headline=True)


@functools.cache
def _task(name: str) -> Any:
    from pullback_study.tasks import find_task

    try:
        return find_task(name)
    except ValueError:
        return None
