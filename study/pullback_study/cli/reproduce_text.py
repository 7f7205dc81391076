"""`pullback reproduce table2` and `steps --task sst`: the paper's tables on text."""

from __future__ import annotations

import dataclasses
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pullback_study.cli.options import (
    DataOption,
    Device,
    DeviceOption,
    MarkdownOption,
    QuickOption,
    RunsOption,
    TensorBoardOption,
)
from pullback_study.terminal import console, train, user_errors

if TYPE_CHECKING:
    from pullback_study.text.plans import Scope
    from pullback_study.text.study import TextStudy
    from pullback_study.text.tables import Rows


class Task(StrEnum):
    sst = "sst"
    snli = "snli"


WorkersOption = Annotated[
    int | None, typer.Option(help="Train so many runs at a time, each in a process. [default: one, in this process]")
]


def table2(
    task: Annotated[Task, typer.Option(help="The data set.")] = Task.sst,
    quick: QuickOption = False,
    search: Annotated[
        bool, typer.Option("--search", help="Choose each row's learning rate: the same few for every row.")
    ] = False,
    only: Annotated[list[str] | None, typer.Option(help="Only this row; repeat it for several.")] = None,
    seed: Annotated[list[int] | None, typer.Option(help="Repeat it for several. [default: all of the table's]")] = None,
    epochs: Annotated[int | None, typer.Option(help="[default: 40 for SST, 5 for SNLI]")] = None,
    projective: Annotated[
        bool | None,
        typer.Option("--projective/--non-projective", help="[default: projective for SST, non-projective for SNLI]"),
    ] = None,
    vectors: Annotated[str | None, typer.Option(help="Word vectors: a name in `vectors/`, or a file.")] = None,
    workers: WorkersOption = None,
    data: DataOption = None,
    runs: RunsOption = Path("runs"),
    device: DeviceOption = Device.auto,
    tensorboard: TensorBoardOption = False,
    markdown: MarkdownOption = False,
) -> None:
    """Latent dependency trees: accuracy of every row on SST or SNLI, beside the paper's.

    By default with the paper's best settings. What is done is skipped, and what was stopped goes on.

    For example:

    - `pullback reproduce table2 --data DATA --quick`
    - `pullback reproduce table2 --task sst --search --device cuda --workers 4`
    - `pullback reproduce table2 --task snli --only marginals --only spigot --seed 0`
    """
    from pullback_study.text import methods, plans, tables

    with user_errors():
        names = [methods.find_method(name).name for name in only or methods.ROWS]
        study, scope = _study(task, quick, data, seeds=seed, epochs=epochs, vectors=vectors)
        cells = [_cell(name, scope, search, projective) for name in names]
    how: dict[str, Any] = {"device": device.value, "tensorboard": tensorboard, "workers": workers}
    if needed := plans.deciding(cells):
        train(study, needed, runs, **how)
    rows: Rows = [(cell.estimator, plans.choose(cell, runs)) for cell in cells]
    train(study, plans.configs_of(row for _, row in rows), runs, **how)
    title = f"{task.value.upper()}, {'searched' if search else 'the paper’s best'} settings, {scope.epochs} epochs"
    found = [tables.results_table(title, task.value, rows), tables.settings_table(rows)]
    for table in [*found, tables.speed_table(task.value, rows)]:
        _show(table, markdown)
    _say_what_was_reduced(scope, quick)


def steps(
    task: str, quick: bool, vectors: str | None, workers: int | None, data: Path | None, runs: Path, device: str,
    tensorboard: bool, markdown: bool,
) -> None:  # fmt: skip
    """The table of inner steps: each row at the learning rate of its search."""
    from pullback_study.text import plans, tables

    with user_errors():
        study, scope = _study(Task(task), quick, data, vectors=vectors)
        cells = [_cell(name, scope, True, None) for name in plans.STEPPED]
    how: dict[str, Any] = {"device": device, "tensorboard": tensorboard, "workers": workers}
    if needed := plans.deciding(cells):
        train(study, needed, runs, **how)
    rows: Rows = [(cell.estimator, plans.choose(cell, runs)) for cell in cells]
    for count in plans.INNER_STEPS:
        train(study, plans.configs_of(plans.with_steps(row, count, runs) for _, row in rows if row), runs, **how)
    _show(tables.steps_table(f"{task.upper()}, {scope.epochs} epochs", rows, runs), markdown)
    _say_what_was_reduced(scope, quick)


def _study(task: Task, quick: bool, data: Path | None, **given: Any) -> tuple[TextStudy, Scope]:
    from pullback_study.corpora import find_data
    from pullback_study.text import plans
    from pullback_study.text.study import TextStudy
    from pullback_study.text.tasks import find_task

    folder = find_data(data)
    options = {name: value for name, value in given.items() if value is not None}
    if "seeds" in options:
        options["seeds"] = tuple(options["seeds"])
    scope = (plans.QUICK if quick else plans.FULL)[task.value]
    there = find_task(task.value).training_data(folder)
    return TextStudy(folder), dataclasses.replace(scope, data=there, **options)


def _cell(name: str, scope: Scope, search: bool, projective: bool | None) -> Any:
    from pullback_study.text import methods, plans

    trees = projective if methods.METHODS[name].latent else None
    return plans.table_cell(name, scope, search=search, projective=trees)


def _show(table: Any, markdown: bool) -> None:
    shown = table.markdown() + "\n" if markdown else table.rich()
    console.print(shown, markup=False, highlight=False, soft_wrap=markdown)


def _say_what_was_reduced(scope: Scope, quick: bool) -> None:
    from pullback_study.text.plans import FULL

    if quick:
        full = FULL[scope.task]
        part = f", the first {scope.train_examples} training examples" if scope.train_examples else ""
        console.print(
            f"Reduced by --quick: {len(scope.seeds)} seed instead of {len(full.seeds)}, {scope.epochs} of {full.epochs} "
            f"epochs{part}. These numbers only show that it works.",
            highlight=False, soft_wrap=True,
        )  # fmt: skip
