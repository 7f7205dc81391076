"""Batches in a process of its own, so that one that ends the process is a failure like others."""

from __future__ import annotations

import json
import os
import pickle
import random
import subprocess
import sys
import tempfile
import time
import warnings
from dataclasses import dataclass, field
from pathlib import Path

import torch

from .checks import check
from .every_mask import TURNS, every_mask
from .inputs import Batch, draw
from .minimal import as_code, smallest

ROOT = Path(__file__).parents[2]


@dataclass
class Task:
    """What to fuzz.

    Attributes:
        device: "cpu" or "cuda".
        seed: of the first batch.
        seconds: when to stop.
        batches: how many at most.
        names: of structures.
        large: the share of batches with sizes at the switches of kernels.
        count: the most examples of a batch.
        every_mask: whether every kind of mask is taken once, instead of random batches.
        early: whether kernels for large inputs serve for small ones, in the interpreter.
        part: of the operations: see `check`.
    """

    device: str
    seed: int
    seconds: float
    batches: int
    names: list[str]
    large: float
    count: int
    every_mask: bool = False
    early: bool = False
    part: str = "all"


@dataclass
class Tally:
    """What was done."""

    batches: int = 0
    examples: int = 0
    checks: int = 0
    failures: list[str] = field(default_factory=list)
    ran: list[str] = field(default_factory=list)


def batch_of(task: Task, number: int) -> Batch:
    """The batch of this number: structures take turns, first without checks of values, then with them."""
    if task.every_mask:
        return every_mask(task.names[number // TURNS], number % TURNS, longer=int(task.part == "maxima"))
    seed = random.Random(f"{task.seed} {number}").getrandbits(40)
    turn, place = divmod(number, len(task.names))
    return draw(seed, task.names[place], turn % 2 == 1, large=task.large, count=task.count)


def problems_of(batch: Batch, device: str, part: str = "all") -> tuple[int, list[str]]:
    """How many answers were checked, and what is wrong: wrong answers, or an exception."""
    kernels = "cuda" if device == "cuda" else "cpu"
    place = torch.device("cuda" if device == "cuda" and torch.cuda.is_available() else "cpu")
    oracle = "cpu" if device == "cuda" else "reference"
    try:
        count, found = check(batch, place, kernels, oracle, part)
    except Exception as error:
        return 0, [f"{type(error).__name__}: {error}"]
    return count, [f"{problem.operation} of example {problem.example} {problem.text}" for problem in found]


def work(task: Task, start: int, state: Path, ran: set[str]) -> None:
    """Check batches from a number on, and keep the state in a file: the number in work, the tally so far, what `ran`."""
    warnings.simplefilter("ignore")
    tally, until = Tally(), time.monotonic() + task.seconds
    while time.monotonic() < until and start + tally.batches < task.batches and len(tally.failures) < 20:
        if tally.batches % 16 == 0 or task.device == "cuda":
            state.write_text(json.dumps(tally.__dict__))
        batch = batch_of(task, start + tally.batches)
        count, wrong = problems_of(batch, task.device, task.part)
        tally.batches, tally.examples, tally.checks = tally.batches + 1, tally.examples + len(batch.sizes), tally.checks + count
        if wrong:
            tally.failures.append(_report(batch, wrong, task, in_process=True))
            if "CUDA" in wrong[0] or "Triton Error" in wrong[0]:
                break  # nothing works on a GPU after such an error
    tally.ran = sorted(ran)
    state.write_text(json.dumps(tally.__dict__ | {"done": True}))


def _report(batch: Batch, wrong: list[str], task: Task, *, in_process: bool) -> str:
    """A failure with the smallest batch that shows it."""
    first = wrong[0].split(" of example")[0]

    def fails(other: Batch) -> bool:
        if not in_process:
            return _alone(other, task) is not None
        return any(text.startswith(first) for text in problems_of(other, task.device, task.part)[1])

    slow = batch.scores.numel() > 4000 or task.device == "cuda"
    least = smallest(batch, fails, tries=12 if not in_process else 30 if slow else 200)
    lines = [str(batch), *wrong[:4], f"the least batch found: {least}", as_code(least)[:4000]]
    return "\n  ".join(lines)


def _alone(batch: Batch, task: Task) -> str | None:
    """What is wrong with a batch in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "batch")
        file.write_bytes(pickle.dumps(batch))
        done = subprocess.run(
            [sys.executable, "-m", "tests.fuzz", "--device", task.device, "--batch", str(file), *["--early"] * task.early],
            cwd=ROOT, capture_output=True, text=True,
        )  # fmt: skip
    return None if done.returncode == 0 else f"{done.stdout}\nthe process ended with {done.returncode}"


def run(task: Task) -> Tally:
    """Check batches in processes, one after the other; one that ends before its time is a failure."""
    total, began = Tally(), time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        state = Path(folder, "state")
        while True:
            left = task.seconds - (time.monotonic() - began)
            if left <= 0 or total.batches >= task.batches or len(total.failures) >= 20:
                return total
            rest = Task(**task.__dict__ | {"seconds": left})
            (Path(folder) / "task").write_text(json.dumps(rest.__dict__))
            command = [sys.executable, "-m", "tests.fuzz", "--work", folder, str(total.batches), *["--early"] * task.early]
            state.unlink(missing_ok=True)
            process = subprocess.run(command, cwd=ROOT, env=os.environ | {"PULLBACK_QUIET": "1"})
            found = json.loads(state.read_text()) if state.exists() else Tally().__dict__
            done = found.pop("done", False)
            total.examples, total.checks = total.examples + found["examples"], total.checks + found["checks"]
            total.failures += found["failures"]
            total.batches += found["batches"]
            total.ran = sorted({*total.ran, *found["ran"]})
            if not done:
                total.failures.append(_crash(task, total, process.returncode))
            elif process.returncode != 0:  # such as compute-sanitizer's, which lets a process go on to its end
                total.failures.append(f"a process checked its batches and ended with {process.returncode}")


def _crash(task: Task, total: Tally, code: int) -> str:
    """The batch at which a process ended: the first one after those that it had counted; it is left out from now on."""
    for _ in range(17):
        batch = batch_of(task, total.batches)
        total.batches += 1
        wrong = _alone(batch, task)
        if wrong is not None and "the process ended with -" in wrong:
            return f"the process ended with {code}\n  " + _report(batch, [wrong], task, in_process=False)
    return f"the process ended with {code} near batch {total.batches}, none of which ends it alone"
