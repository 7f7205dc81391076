"""`pullback train TASK`: a command for each task of the registry, with an option for each field of its config."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer
from typer.core import TyperGroup

from pullback_study.cli.options import SETTINGS, uses, with_options
from pullback_study.cli.terminal import out, train_or_exit, user_errors
from pullback_study.tasks import TASKS, find_task


class _Tasks(TyperGroup):
    """The registry's tasks as commands, each made when it is needed."""

    def list_commands(self, context: Any) -> list[str]:
        return list(TASKS)

    def get_command(self, context: Any, name: str) -> Any:
        if name not in TASKS:
            return None
        with user_errors():
            return _command(name)


app = typer.Typer(cls=_Tasks, **SETTINGS)


@app.callback()
def about() -> None:
    """Train models of a task."""


def _command(name: str) -> Any:
    task = find_task(name)

    @uses("data", "runs", "device", "tensorboard")
    def train(data: Path | None, runs: Path, device: str, tensorboard: bool, **fields: Any) -> None:
        seeds = fields.pop("seed") or [0]
        with user_errors():
            at = find_task(name, data)
            configs = [at.configure(seed=seed, **{**fields, "estimator": fields["estimator"] or ""}) for seed in seeds]
        train_or_exit(at, configs, runs, device=device, tensorboard=tensorboard)
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
    single = typer.Typer(pretty_exceptions_enable=False, **{**SETTINGS, "no_args_is_help": False})
    single.command(name, no_args_is_help=True)(with_options(train, task.config_type))
    return typer.main.get_command(single)
