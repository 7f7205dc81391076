"""What commands share: training with a progress display, and messages instead of stack traces."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn

import typer
from rich.console import Console

from pullback.experiments.study import Study

console = Console()


def train(study: Study, configs: Sequence[Any], runs: Path, *, device: str, tensorboard: bool) -> None:
    """Train what is not done; leaves the program if that cannot be finished now."""
    import torch

    from pullback.experiments import events, runner
    from pullback.experiments.progress import LiveReport, PlainReport

    if device == "cuda" and not torch.cuda.is_available():
        stop("--device cuda: this PyTorch sees no GPU; use --device cpu")
    if tensorboard and not events.available():
        stop("--tensorboard: TensorBoard is not installed; pip install 'pullback[experiments]'")
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    with LiveReport(console) if console.is_terminal else PlainReport(console) as report:
        outcome = runner.train(study, configs, runs, device=device, report=report, tensorboard=tensorboard)
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
