"""`pullback sweep`: the runs of a file, on one machine or many."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pullback_study import terminal
from pullback_study.cli.options import DataOption, Device, DeviceOption, MarkdownOption, RunsOption, TensorBoardOption
from pullback_study.terminal import console, user_errors

if TYPE_CHECKING:
    from pullback_study.sweep.file import Sweep
    from pullback_study.workers import Workers


def sweep(
    file: Annotated[Path, typer.Argument(help="A TOML file with a task and lists of values for fields of its config.")],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be trained.")] = False,
    workers: Annotated[
        int | None, typer.Option(help="Worker processes. [default: one a core, or --per-gpu for each GPU]")
    ] = None,
    per_gpu: Annotated[int, typer.Option(min=1, help="Workers that share a GPU.")] = 1,
    ray: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="Train on this Ray cluster: HOST:PORT, or `auto`.")
    ] = None,
    gpus_per_run: Annotated[float, typer.Option(min=0, help="With --ray: the share of a GPU for each worker.")] = 0.0,
    cpus_per_run: Annotated[int, typer.Option(min=1, help="With --ray: the cores for each worker.")] = 1,
    by: Annotated[list[str] | None, typer.Option(help="Report the best for each value of this field; repeatable.")] = None,
    wait: Annotated[bool, typer.Option("--wait/--no-wait", help="Wait for runs that other sweeps train.")] = True,
    data: DataOption = None,
    runs: RunsOption = Path("runs"),
    device: DeviceOption = Device.auto,
    tensorboard: TensorBoardOption = False,
    markdown: MarkdownOption = False,
) -> None:
    """Train all runs of a sweep file, several at a time, and show which configuration is best.

    What is done is skipped, what was killed goes on from its last checkpoint, what failed is tried again. Several sweeps may
    share a folder of runs, also from several machines. `docs/sweeps.md` explains the file.

    For example:

    - `pullback sweep examples/sweep.toml --dry-run`
    - `pullback sweep examples/sweep.toml --workers 2 --by estimator`
    - `pullback sweep examples/sweep.toml --device cuda --per-gpu 4`
    - `pullback sweep examples/sweep.toml --ray auto --gpus-per-run 0.25 --runs /shared/runs`
    """
    from pullback_study.sweep import file as sweep_file
    from pullback_study.sweep import summary

    with user_errors():
        found = sweep_file.read(file, data)
        summary.check(found.task.study, by or [])
    if dry_run:
        _show_plan(found, runs)
        return
    if ray is not None:
        where: Workers | None = _ray(ray, cpus_per_run, gpus_per_run)
        place = "cuda" if gpus_per_run else "cpu"
    else:
        place = terminal.find_device(device.value)
        where = terminal.pool(workers, place, per_gpu)
    try:
        terminal.train(
            found.task.study, found.configs, runs, device=place, tensorboard=tensorboard, workers=where, wait=wait
        )
    finally:
        table = summary.table(found.task.study, found.configs, runs, by or [])
        if table.rows:
            console.print(table.markdown() if markdown else table.rich(), markup=False, highlight=False)


def _ray(address: str, cpus: int, gpus: float) -> Workers:
    from pullback_study.sweep import ray_cluster

    with user_errors():
        return ray_cluster.RayCluster(address, cpus=cpus, gpus=gpus)


def _show_plan(found: Sweep, runs: Path) -> None:
    from pullback.viz.tables import Table
    from pullback_study.groups import plan
    from pullback_study.status import list_runs

    study = found.task.study
    status = {run.hash: run.status for run in list_runs(runs)}
    wanted = [study.run(config, runs) for config in found.configs]
    counts: dict[str, int] = {}
    for run in wanted:
        name = status.get(run.hash, "new")
        counts[name] = counts.get(name, 0) + 1
    groups = plan(study, [run.config for run in wanted if run.problem() is None], runs)
    about = ", ".join(f"{count} {name}" for name, count in sorted(counts.items()))
    console.print(f"{len(wanted)} runs: {about}; {len(groups)} groups to train", highlight=False, soft_wrap=True)
    if groups:
        table = Table("To train", ["group", "runs"])
        table.rows = [[study.label([run.config for run in group.runs]), str(len(group.runs))] for group in groups]
        console.print(table.rich(), markup=False, highlight=False)
