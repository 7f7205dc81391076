"""`pullback reproduce recovery`: which estimator recovers the structure."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pullback_study.cli.options import Device, DeviceOption, MarkdownOption, QuickOption, RunsOption

if TYPE_CHECKING:
    from pullback_study.results.recovery.plans import Scope

_EMPTY = "# Which estimator recovers the structure?\n\n<!-- from the runs -->\n<!-- end -->\n"


def recovery(
    quick: QuickOption = False,
    structure: Annotated[list[str] | None, typer.Option(metavar="NAME", help="Only this structure; repeatable.")] = None,
    only: Annotated[list[str] | None, typer.Option(metavar="NAME", help="Only this estimator; repeatable.")] = None,
    seeds: Annotated[int | None, typer.Option(min=1, help="The number of seeds.  [default: 32]", metavar="N")] = None,
    train: Annotated[bool, typer.Option("--train/--no-train", help="Train missing runs of the planted beds.")] = True,
    page: Annotated[Path, typer.Option(help="The results page to write.")] = Path("docs/results/recovery.md"),
    workers: Annotated[int | None, typer.Option(help="Worker processes. [default: train in this process]")] = None,
    runs: RunsOption = Path("runs"),
    device: DeviceOption = Device.auto,
    markdown: MarkdownOption = False,
) -> None:
    """A leaderboard of estimators over test beds with gold structures, and its page.

    Trains the planted beds: first a search of learning rates and step sizes on separate seeds, then all settings, then short
    runs alone for the time per step. The other
    beds (clusters, SST, SNLI, ListOps) use existing runs. Finished runs are skipped, and interrupted runs resume.

    \b
    pullback reproduce recovery --quick --structure tree --page recovery.md
    pullback reproduce recovery --device cuda --workers 4
    pullback reproduce recovery --no-train
    """  # noqa: D301
    from pullback_study.cli.terminal import err, show, user_errors
    from pullback_study.results import pages
    from pullback_study.results.choice import Runs
    from pullback_study.results.recovery import page as recovered
    from pullback_study.results.recovery import plans
    from pullback_study.results.recovery.beds import all_beds
    from pullback_study.tasks.schema import nearest

    scope = plans.QUICK if quick else plans.FULL
    scope = dataclasses.replace(scope, seeds=tuple(range(scope.seeds[0], scope.seeds[0] + seeds))) if seeds else scope
    failed = False
    if train:
        with user_errors():
            for name in structure or ():
                if name not in plans.BASES:
                    raise ValueError(f"there is no structure {name!r}; {nearest(name, plans.BASES)}")
            names = [plans.TASK.find_method(name).name for name in only] if only else list(plans.METHODS)
        failed = not _train(scope, structure or [], names, runs, device, workers)
    found = Runs(runs)
    with user_errors():
        if not page.exists():
            page.parent.mkdir(parents=True, exist_ok=True)
            page.write_text(_EMPTY)
        pages.update(page, recovered.groups(found, scope, gradients=True))
    for table in [recovered.needs_structure(found, scope), *recovered.boards(all_beds(found, scope))]:
        show(table, markdown)
    err.print(f"wrote {page}", highlight=False, soft_wrap=True)
    if failed:
        raise typer.Exit(1)


def _train(
    scope: Scope, structures: list[str], names: list[str], runs: Path, device: Device, workers: int | None
) -> bool:
    """The search, each bed at the settings it chose, the times; True if every run is done. What fails stops nothing else."""
    from pullback_study.cli.terminal import train_or_exit
    from pullback_study.results.choice import Runs
    from pullback_study.results.recovery import plans

    beds, complete = plans.settings(structures, grid=scope.steps >= plans.FULL.steps), True
    for phase in ("search", "results", "times"):
        found, alone = Runs(runs), phase == "times"
        if phase == "search":
            once = dict.fromkeys(bed.structure for bed in beds)
            configs = [config for each in once for name in names for config in plans.search(name, each, scope)]
        else:
            wanted = [(name, bed) for bed in beds for name in names if plans.runs_on(name, bed)]
            rows = [plans.chosen(found, name, bed, scope) for name, bed in wanted]
            if alone:
                rows = [plans.timed(found, name, scope) for name in names if plans.BASES["tree"] in beds]
            configs = [config for row in rows for config in row.configs]
        try:
            if configs:
                train_or_exit(plans.TASK, configs, runs, device=device.value, workers=None if alone else workers)
        except typer.Exit as ended:
            if ended.exit_code != 1:  # stopped by the user, or a mistake
                raise
            complete = False
    return complete
