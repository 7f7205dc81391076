"""The loop that all trainers share: steps, from CUDA graphs where they can be captured, evaluations and checkpoints."""

from __future__ import annotations

import abc
import time
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from pullback.estimators import Estimator
from pullback_study.tasks.runtime import Captured, RandomNumbers, Stopwatch, wait_for
from pullback_study.tasks.task import Task, Trainer


class Loop(Trainer):
    """Takes steps of training and evaluates now and then. A subclass makes the model and the estimator.

    The random numbers depend on the words after the device.
    """

    evaluate_every: int  # steps between evaluations
    evaluate_last = False  # whether the last step is evaluated in any case

    def __init__(self, task: Task, configs: Sequence[Any], device: str, *noise: str | int) -> None:
        self.task, self.configs, self.config = task, configs, configs[0]
        self.method = task.methods[self.config.estimator]
        self.device, self.dtype = torch.device(device), getattr(torch, self.config.dtype)
        self.estimator: Estimator | None = None
        self.step = self.steps = 0
        self.rows: list[list[dict[str, Any]]] = [[] for _ in configs]
        self.seconds = 0.0
        self.loss = torch.zeros(len(configs), dtype=torch.float64, device=self.device)  # over the steps since an evaluation
        self.random, self.stopwatch = RandomNumbers(self.device, *noise), Stopwatch(self.device)
        self.graphs: Captured | None = None

    @abc.abstractmethod
    def batch(self) -> tuple[Tensor, int]:
        """What the next step is trained on: rows of the training data, and their width."""

    @abc.abstractmethod
    def update(self, rows: Tensor, width: int) -> None:
        """One step: everything that it changes, it changes in place."""

    @abc.abstractmethod
    def evaluate_now(self) -> None:
        """Add a row to the curve of each run."""

    @abc.abstractmethod
    def own_state(self) -> dict[str, Any]:
        """What this trainer adds to a checkpoint: its model and optimiser."""

    @abc.abstractmethod
    def restore_own(self, state: dict[str, Any]) -> None:
        """Take it from a checkpoint."""

    def use(self, estimator: Estimator | None, *, captured: bool) -> None:
        """Train with this estimator; in CUDA graphs or not."""
        self.estimator = estimator
        if isinstance(estimator, nn.Module):
            estimator.to(self.device)
        varies = ("seed", "learning_rate", "step_size", "epochs", "steps")
        same = [value for name, value in vars(self.config).items() if name not in varies]
        self.kind = (self.task.name, len(self.configs), *same)  # of steps whose kernels are the same
        self.graphs = Captured(self.update, self.stopwatch, self.kind) if captured else None

    def advance(self, until: int, stop: Callable[[], bool]) -> None:
        with self.random.in_place():
            while self.step < min(until, self.steps) and not stop():
                began = time.perf_counter()
                last = min(until, self.steps, self.step - self.step % self.evaluate_every + self.evaluate_every)
                while self.step < last and not stop():
                    self.take_step(*self.batch())
                    self.step += 1
                wait_for(self.device)  # replays are far behind the host
                self.seconds += time.perf_counter() - began
                if self.step % self.evaluate_every == 0 or (self.evaluate_last and self.step == self.steps):
                    self.evaluate_now()

    def take_step(self, rows: Tensor, width: int) -> None:
        try:
            (self.graphs or self.update)(rows, width)
        except RuntimeError:
            if self.graphs is None or not self.graphs.capturing:
                raise
            self.graphs = None  # nothing was changed: kernels are not run while they are captured
            torch.cuda.synchronize(self.device)
            self.update(rows, width)

    def state(self) -> dict[str, Any]:
        return {
            "step": self.step, "steps": self.steps, "rows": self.history(), "seconds": self.seconds, "loss": self.loss.cpu(),
            "random": self.random.state, "estimator": self.estimator.state_dict() if self.estimator else {}, **self.own_state(),
        }  # fmt: skip

    @torch.no_grad()
    def restore(self, state: dict[str, Any]) -> None:
        self.rows = [list(rows) for rows in state["rows"]]
        self.step, self.steps, self.seconds = state["step"], state["steps"], state["seconds"]
        self.loss.copy_(state["loss"])
        self.random.restore(state["random"])
        self.stopwatch.take()
        self.restore_own(state)
        self.use(self.estimator, captured=self.graphs is not None)
        if self.estimator:
            self.estimator.load_state_dict(state["estimator"])

    def history(self) -> list[list[dict[str, Any]]]:
        return [list(rows) for rows in self.rows]
