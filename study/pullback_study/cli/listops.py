"""`pullback reproduce listops`: nested operations with gold dependency heads."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Annotated, Any

import typer

from pullback_study.cli.options import (
    Device,
    DeviceOption,
    FiguresOption,
    MarkdownOption,
    QuickOption,
    RunsOption,
    TensorBoardOption,
)


def listops(
    quick: QuickOption = False,
    screening: Annotated[bool, typer.Option("--screening", help="Only seed 0 at each learning rate.")] = False,
    long: Annotated[bool, typer.Option("--long", help="The baselines and the best two, in the published setting.")] = False,
    only: Annotated[list[str] | None, typer.Option(metavar="NAME", help="Only this row; repeat it for several.")] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Seeds 0 to N - 1 of the final rows.", metavar="N")] = 5,
    workers: Annotated[int | None, typer.Option(help="Worker processes. [default: train in this process]")] = None,
    runs: RunsOption = Path("runs"),
    figures: FiguresOption = Path("figures"),
    device: DeviceOption = Device.auto,
    tensorboard: TensorBoardOption = False,
    markdown: MarkdownOption = False,
) -> None:
    """ListOps: accuracy and recovery of the gold trees, for every estimator.

    All rows are screened with one seed at three learning rates; then the baselines, the paper's rows and the best five train
    with five seeds at the best rate. Finished runs are skipped, and interrupted runs resume.

    \b
    pullback reproduce listops --quick
    pullback reproduce listops --screening --only spigot --only marginals --device cuda
    """  # noqa: D301
    from pullback_study.cli.terminal import err, out, train_or_exit, user_errors
    from pullback_study.results import listops as bed
    from pullback_study.results.choice import Runs

    with user_errors():
        scope = bed.QUICK if quick else dataclasses.replace(bed.FULL, seeds=tuple(range(seeds)))
        wanted = {bed.TASK.find_method(name).name for name in only or bed.ROWS}
        plans = {name: bed.plan(name, scope) for name in bed.ROWS if name in wanted}

    def train(configs: list[Any]) -> None:
        train_or_exit(bed.TASK, configs, runs, device=device.value, workers=workers, tensorboard=tensorboard)

    if long:
        train([config for name in bed.contenders(Runs(runs)) if name in wanted for config in bed.plan(name, bed.LONG).configs])
        table = bed.long_runs(Runs(runs))
        return typer.echo(table.markdown()) if markdown else out.print(table.rich(), markup=False, highlight=False)
    train([config for plan in plans.values() for config in plan.first])
    if not screening:
        found = Runs(runs)
        rows = [plans[name].choose(found) for name in (wanted if only else bed.finalists(found, scope))]
        train([config for row in rows for config in row.configs])
    found = Runs(runs)
    tables = [bed.results(found, scope, final=False)]
    tables += [] if screening else [bed.results(found, scope, final=True), bed.by_depth(found, scope), bed.published()]
    for table in tables:
        typer.echo(table.markdown() + "\n") if markdown else out.print(table.rich(), markup=False, highlight=False)
    figure = bed.curves(found, scope)
    for path in figure.write(figures) if figure.drawn and not screening else ():
        err.print(f"wrote {path}", highlight=False, markup=False, soft_wrap=True)
