"""What commands share: training with a progress display, and messages instead of stack traces."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import typer
from rich.console import Console

from pullback_study.study import Study

if TYPE_CHECKING:
    from pullback_study.workers import Workers

console = Console()


def train(
    study: Study,
    configs: Sequence[Any],
    runs: Path,
    *,
    device: str,
    tensorboard: bool,
    workers: Workers | int | None = None,
    wait: bool = False,
) -> None:
    """Train what is not done; leaves the program if that cannot be finished now.

    Args:
        study: whose configs they are.
        configs: to be trained.
        runs: the folder of the runs.
        device: `cpu`, `cuda`, or `auto` for a GPU if there is one.
        tensorboard: also write event files.
        workers: where to train, or how many processes; None for this process.
        wait: for runs that other processes train.
    """
    from pullback_study import events, runner
    from pullback_study.progress import LiveReport, PlainReport

    device = find_device(device)
    if tensorboard and not events.available():
        stop("--tensorboard: TensorBoard is not installed; pip install 'pullback-study'")
    with LiveReport(console) if console.is_terminal else PlainReport(console) as report:
        outcome = runner.train(
            study, configs, runs, device=device, report=report, tensorboard=tensorboard,
            workers=pool(workers, device) if isinstance(workers, int) else workers, wait=wait,
        )  # fmt: skip
    console.print(
        f"{outcome.total} runs: {outcome.skipped} done before, {outcome.trained} trained now, in {runs}/",
        highlight=False, soft_wrap=True,
    )  # fmt: skip
    if outcome.interrupted:
        stop("Stopped; what was running is saved. Run the same command again to go on from there.", code=130)
    if outcome.failed:
        stop("\n".join(["Failed:", *outcome.failed, "Run the same command again to retry."]), code=1)
    if outcome.busy:
        stop(f"{outcome.busy} runs are being trained by another process; run this again when it is done.", code=1)


def find_device(device: str) -> str:
    """`cpu` or `cuda`; leaves the program if a GPU is asked for and there is none."""
    import torch

    if device == "cuda" and not torch.cuda.is_available():
        stop("--device cuda: this PyTorch sees no GPU; use --device cpu")
    if device == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    return device


def pool(workers: int | None, device: str, per_gpu: int = 1) -> Workers | None:
    """That many worker processes, for the GPUs or the cores there are; None, this process, for a single one on a CPU."""
    import torch

    from pullback_study.sweep.pool import Pool

    if workers is not None and workers < 1:
        stop(f"--workers {workers}: there must be at least one")
    gpus = torch.cuda.device_count() if device == "cuda" else 0
    if workers == 1 and gpus <= 1:
        return None
    return Pool(workers, gpus=gpus, per_gpu=per_gpu)


@contextlib.contextmanager
def user_errors() -> Iterator[None]:
    """A user's mistake is a message, not a stack trace."""
    try:
        yield
    except ValueError as error:
        stop(str(error), code=2)


def stop(message: str, code: int = 2) -> NoReturn:
    Console(stderr=True).print(message, style="red", markup=False, highlight=False, soft_wrap=True)
    raise typer.Exit(code)
