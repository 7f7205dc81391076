"""`pullback train TASK`, with an option for each field of the task's config; `pullback sweep`: the runs of a file."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from pullback_study.cli import terminal
from pullback_study.cli.options import SETTINGS, lazily, single, uses, with_options
from pullback_study.cli.terminal import count, out, show, user_errors
from pullback_study.tasks import TASKS, find_task

if TYPE_CHECKING:
    from pullback_study.runs.sweep import Sweep

_SHOWN = 10


def _command(name: str) -> Any:
    try:
        task = find_task(name)
    except ValueError as error:  # of a task that PULLBACK_TASKS lists; the others work
        message, anything = str(error), {"ignore_unknown_options": True, "allow_extra_args": True}
        return TyperCommand(name, callback=lambda: terminal.stop(message), help=message, context_settings=anything)

    @uses("data", "runs", "device", "tensorboard")
    def train(data: Path | None, runs: Path, device: str, tensorboard: bool, **fields: Any) -> None:
        seeds = fields.pop("seed") or [0]
        with user_errors():
            at = find_task(name, data)
            configs = [at.configure(seed=seed, **{**fields, "estimator": fields["estimator"] or ""}) for seed in seeds]
        terminal.train_or_exit(at, configs, runs=runs, device=device, tensorboard=tensorboard)
        for config in configs:
            run = at.run(config, runs)
            result = run.result
            shown = [(metric.label, metric.show(result.get(metric.name))) for metric in at.metrics if metric.headline]
            numbers = ", ".join(f"{label.lower()} {value}" for label, value in shown if value)
            out.print(f"seed {config.seed}: {numbers}  ({run.path})")

    train.__doc__ = f"""{task.about}

    A run that was stopped or killed resumes from its last checkpoint when the same command is run again.

    Example: pullback train {name} --estimator spigot --seed 0 --seed 1
    """
    return single(name, with_options(train, task.config_type), needs_arguments=True)


app = typer.Typer(cls=lazily(TASKS, _command), **SETTINGS)


@app.callback()
def about() -> None:
    """Train models of a task."""


@uses("data", "runs", "device", "tensorboard", "markdown")
def sweep(
    file: Annotated[Path, typer.Argument(help="A TOML file with a task and lists of values for the fields of its config.")],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="List the runs without training.")] = False,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Worker processes.  [default: one per core, or --per-gpu per GPU]")
    ] = None,
    per_gpu: Annotated[int, typer.Option(min=1, help="Workers that share a GPU.")] = 1,
    ray: Annotated[str | None, typer.Option(metavar="ADDRESS", help="Train on this Ray cluster: HOST:PORT, or auto.")] = None,
    gpus_per_run: Annotated[float, typer.Option(min=0, help="With --ray: the share of a GPU per run.")] = 0.0,
    cpus_per_run: Annotated[int, typer.Option(min=1, help="With --ray: the cores per run.")] = 1,
    by: Annotated[
        list[str] | None, typer.Option(metavar="FIELD", help="Show the best run for each value of this field; repeatable.")
    ] = None,
    wait: Annotated[bool, typer.Option("--wait/--no-wait", help="Wait for runs that other sweeps train.")] = True,
    **given: Any,
) -> None:
    r"""Train all runs of a sweep file and show the best.

    Finished runs are skipped, killed runs resume from their last checkpoint, and failed runs are tried again. Several
    sweeps may share a folder of runs, also from several machines.

    \b
    pullback sweep FILE --dry-run
    pullback sweep FILE --workers 2 --by estimator
    pullback sweep FILE --device cuda --per-gpu 4
    pullback sweep FILE --ray auto --gpus-per-run 0.25 --runs /shared/runs
    """
    from pullback_study.results.choice import Runs
    from pullback_study.results.configurations import configurations
    from pullback_study.runs.executor import RayTasks
    from pullback_study.runs.sweep import read
    from pullback_study.tasks.schema import check_known, options

    with user_errors():
        found, runs = read(file, given["data"]), given["runs"]
        known = [name for name in options(found.task.config_type) if name != "seed"]
        for name in by or []:
            check_known(f"--by {name}: a config has no such field to choose by", name, known)
        if dry_run:
            return _show_plan(found, runs)
        cluster = RayTasks(ray, cpus=cpus_per_run, gpus=gpus_per_run) if ray is not None else None
    device = terminal.find_device(given["device"]) if ray is None else "cuda" if gpus_per_run else "cpu"
    given |= {"device": device, "workers": cluster or terminal.pool(workers, device, per_gpu), "wait": wait}
    try:
        terminal.train_or_exit(found.task, found.configs, **given)
    finally:
        stored = Runs(runs)
        if done := [run for config in found.configs if (run := stored.find(found.task, config))]:
            limit, markdown = None if by else _SHOWN, given["markdown"]
            show(configurations(found.task.name, done, by=by or (), limit=limit, short=not markdown), markdown=markdown)


def _show_plan(found: Sweep, runs: Path) -> None:
    from pullback.viz import Table
    from pullback_study.runs.run import plan
    from pullback_study.runs.store import list_runs

    task = found.task
    state = {run.id: run.state for run in list_runs(runs)}
    wanted = [task.run(config, runs) for config in found.configs]
    counts = Counter(state.get(run.id, "new") for run in wanted)
    for run in wanted:
        if state.get(run.id) != "done":
            task.sources(run.config)  # missing data is an error, as in training
    groups = plan(task, [run.config for run in wanted if state.get(run.id) != "unreadable"], runs)
    about = ", ".join(f"{number} {name}" for name, number in sorted(counts.items()))
    out.print(f"{count(len(wanted), 'run')}: {about}; {count(len(groups), 'group')} to train")
    if groups:
        rows = [[task.label([run.config for run in group.runs]), str(len(group.runs))] for group in groups]
        show(Table("To train", ["group", "runs"], rows))
