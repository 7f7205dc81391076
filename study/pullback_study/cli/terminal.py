"""What commands share: results on stdout, progress and messages on stderr, and messages instead of stack traces."""

from __future__ import annotations

import contextlib
import importlib.util
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import typer
from rich.console import Console

if TYPE_CHECKING:
    from pullback_study.results.choice import Chosen, Plan, Runs
    from pullback_study.results.figures import Figure
    from pullback_study.runs.executor import Executor
    from pullback_study.tasks import Task


class _Console(Console):
    """Shows control characters, of names, arguments and files, and never sends them."""

    def print(self, *objects: Any, **options: Any) -> None:
        from pullback.viz import visible

        shown = ("\n".join(map(visible, each.split("\n"))) if isinstance(each, str) else each for each in objects)
        super().print(*shown, **options)


out = _Console(highlight=False, markup=False, emoji=False, soft_wrap=True)
err = _Console(stderr=True, highlight=False, markup=False, emoji=False, soft_wrap=True)


def train_or_exit(
    task: Task,
    configs: Sequence[Any],
    *,
    runs: Path,
    device: str = "auto",
    workers: Executor | int | None = None,
    streams: int | None = None,
    wait: bool = False,
    tensorboard: bool = False,
    **_: Any,
) -> None:
    """Train what is not done, as the options of a command say; leaves the program if that cannot be finished now.

    `workers` says where, or in how many processes (None: in this one); `streams`, how many runs train side by side on a GPU, in
    this process; `wait`, for runs that other processes train.
    """
    from pullback_study.runs.progress import Report
    from pullback_study.runs.side_by_side import SideBySide
    from pullback_study.runs.train import train

    if not configs:
        return
    device = find_device(device)
    if tensorboard and importlib.util.find_spec("tensorboard") is None:
        stop("--tensorboard: TensorBoard is not installed; pip install tensorboard")
    if streams is not None and (device != "cuda" or workers is not None):
        stop(f"--streams {streams}: runs share a GPU in one process; use --device cuda, and no --workers")
    executor = pool(workers, device) if isinstance(workers, int) else SideBySide(streams) if streams else workers
    with user_errors(), Report(err) as report:
        outcome = train(
            task, configs, runs, device=device, report=report, tensorboard=tensorboard, executor=executor, wait=wait
        )
    err.print(f"{count(outcome.total, 'run')} in {runs}/: {outcome.trained} trained, {outcome.skipped} already done")
    if outcome.interrupted:
        stop("Stopped; checkpoints are saved. Run the same command again to resume.", code=130)
    if outcome.failed:
        remedied = all("delete" in each for each in outcome.failed)  # damaged files: these messages say what to do
        stop("\n".join(["Failed:", *outcome.failed, *([] if remedied else ["Run the same command again to retry."])]), code=1)
    if outcome.busy:
        stop(f"{count(outcome.busy, 'run')} left to another process; run this again when it is done.", code=1)


def train_plans(task: Any, plans: Sequence[Plan], given: dict[str, Any]) -> tuple[Runs, list[Chosen]]:
    """Train the runs that choose a setting, and then those of the chosen one; all runs, and the choices."""
    from pullback_study.results.choice import Runs, seed_by_seed

    with user_errors():
        first = dict.fromkeys(config for plan in plans for config in plan.first)
    train_or_exit(task, list(first), **given)
    found = Runs(given["runs"])
    rest = [config for config in seed_by_seed([plan.choose(found) for plan in plans]) if config not in first]
    train_or_exit(task, rest, **given)
    found = Runs(given["runs"])
    return found, [plan.choose(found) for plan in plans]


def rows(task: Task, among: Iterable[str], only: Sequence[str] | None) -> list[str]:
    """The methods of these names or aliases, in the order of the table; all without names."""
    wanted = {task.find_method(name).name for name in only or among}
    return [name for name in among if name in wanted]


def find_device(device: str) -> str:
    """`cpu` or `cuda`; leaves the program if a GPU is wanted and there is none."""
    import torch

    if device == "cuda" and not torch.cuda.is_available():
        stop("--device cuda: this PyTorch sees no GPU; use --device cpu")
    return device if device != "auto" else "cuda" if torch.cuda.is_available() else "cpu"


def pool(workers: int | None, device: str, per_gpu: int = 1) -> Executor | None:
    """That many worker processes, for the GPUs or the cores there are; None, this process, for a single one on a CPU."""
    import torch

    from pullback_study.runs.executor import Pool

    gpus = torch.cuda.device_count() if device == "cuda" else 0
    return None if workers == 1 and gpus <= 1 else Pool(workers, gpus=gpus, per_gpu=per_gpu)


def show(*tables: Any, markdown: bool = False, json: bool = False, **_: Any) -> None:
    """Tables on stdout, where nothing else goes."""
    if json:
        typer.echo("[" + ",\n".join(table.json() for table in tables) + "]")
    elif markdown:
        typer.echo("\n\n".join(table.markdown() for table in tables))
    else:
        for table in tables:
            print_table(out, table)


def print_table(console: Console, table: Any) -> None:
    """A table with its title and notes. Nothing is cut off, and no word is broken; only a terminal limits the width."""
    made = table.rich(console.width if console.is_terminal else None)
    title, notes, made.title, made.caption = made.title, made.caption, None, None
    console.print(title, style="table.title")
    console.print(made, soft_wrap=False, crop=False)
    if notes:
        console.print(notes, style="table.caption")


def check_figures(folder: Path) -> None:
    """Leaves the program if figures cannot be written to a folder; called before training."""
    there = next((each for each in (folder, *folder.parents) if os.path.lexists(each)), folder)
    if not (there.is_dir() and os.access(there, os.W_OK | os.X_OK)):
        stop(f"cannot write figures to {folder}: {there} is not a folder that can be written to; choose another (--figures)")


def write_figures(figures: Sequence[Figure], folder: Path) -> None:
    for figure in (each for each in figures if each.drawn):
        with user_errors(f"write figures to {folder}"):
            paths = figure.write(folder)
        err.print("\n".join([*(f"wrote {path}" for path in paths), *([figure.note] if figure.note else [])]))


@contextlib.contextmanager
def user_errors(attempt: str = "") -> Iterator[None]:
    """A user's mistake, or a file that cannot be read or written, is a message, not a stack trace.

    `attempt` says in words what the system may refuse.
    """
    try:
        yield
    except OSError as error:
        place = str(error.filename2 or error.filename or "")  # the second one is where a file was to be moved
        words = [f"cannot {attempt}" * bool(attempt), place * (place not in attempt), error.strerror or str(error)]
        stop(": ".join(each for each in words if each), code=2)
    except ValueError as error:
        stop(str(error), code=2)


def stop(message: str, code: int = 2) -> NoReturn:
    err.print(message, style="red")
    raise typer.Exit(code)


def count(number: int, what: str) -> str:
    """The number and the noun, in the singular or the plural."""
    return f"{number} {what}{'s' * (number != 1)}"
