"""The training loop of one run: AdamW on batches, a model chosen by its validation score."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from pullback.estimators import Estimator
from pullback_study.tasks.latent.problem import Problem
from pullback_study.tasks.latent.runtime import CapturedSteps, RandomNumbers, Step, Stopwatch, Timed, can_be_captured
from pullback_study.tasks.task import Trainer

if TYPE_CHECKING:
    from pullback_study.tasks.latent.task import LatentTask

_BATCH_SIZE = 64  # of evaluation


class LatentTrainer(Trainer):
    """Trains one run; a step is one update of AdamW on the mean loss of a batch.

    After each epoch the model is evaluated on the validation data; the parameters of the best epoch (the first of
    equals) are kept, and are the run's result. Nothing waits for the device between two evaluations.
    """

    def __init__(self, task: LatentTask, config: Any, device: str = "cpu") -> None:
        self.config = config
        self._device = torch.device(device)
        with RandomNumbers(torch.device("cpu"), "parameters", task.name, config.seed).in_place():
            self.problem: Problem = task.problem(config)
        if config.train_examples is not None:
            self.problem.shorten(config.train_examples)
        self.problem.to(self._device, getattr(torch, config.dtype))
        self.model = self.problem.model
        self._train, self._dev, self._test = self.problem.splits
        self._score = next(metric.curve or "" for metric in task.metrics if metric.name == task.selected_by)

        self._random = RandomNumbers(self._device, "noise", task.name, config.estimator, config.seed)
        self._stopwatch = Stopwatch(self._device)
        self._estimator: Estimator | None = task.estimator(config)
        if isinstance(self._estimator, nn.Module):
            self._estimator.to(self._device)
        self._captured = self.problem.captured = self.problem.capturable and can_be_captured(
            self.model, task.methods[config.estimator], config, self._device
        )
        self._optimizer = torch.optim.AdamW(
            self.model.parameters(), lr=config.learning_rate, weight_decay=config.weight_decay, fused=True,
            capturable=self._captured,
        )  # fmt: skip
        self._take_step = self._steps()

        self._epoch: Sequence[tuple[Tensor, int]] | None = None
        self._per_epoch = len(self._batches(0))
        self.step, self.steps, self.epochs = 0, self._per_epoch * config.epochs, 0
        self._loss = torch.zeros((), dtype=torch.float64, device=self._device)
        self._seconds = self._latent_seconds = 0.0
        self._rows: list[dict[str, Any]] = []
        self._best = self._copy()

    def advance(self, until: int, stop: Callable[[], bool]) -> None:
        with self._random.in_place():
            while self.step < min(until, self.steps) and not stop():
                began = time.perf_counter()
                number = self.step % self._per_epoch
                if number == 0 or self._epoch is None:
                    self._epoch = self._batches(self.step // self._per_epoch)
                self._take_step(*self._epoch[number])
                self.step += 1
                ends = self.step % self._per_epoch == 0
                last = ends or self.step >= min(until, self.steps)
                if last and self._device.type == "cuda":  # replays are far behind the host
                    torch.cuda.synchronize(self._device)
                self._seconds += time.perf_counter() - began
                if ends:
                    self._end_epoch()

    def state(self) -> dict[str, Any]:
        self._latent_seconds += self._stopwatch.take()
        return {
            "step": self.step,
            "steps": self.steps,
            "model": self._copy(),
            "optimizer": self._optimizer.state_dict(),
            "random": self._random.state,
            "estimator": self._estimator.state_dict() if self._estimator else {},
            "loss": self._loss.cpu(),
            "seconds": self._seconds,
            "latent_seconds": self._latent_seconds,
            "rows": list(self._rows),
            "best": self._best,
        }

    @torch.no_grad()
    def restore(self, state: dict[str, Any]) -> None:
        self.step, self.steps = state["step"], state["steps"]
        self.model.load_state_dict(state["model"])
        self._optimizer.load_state_dict(state["optimizer"])
        for group in self._optimizer.param_groups:
            group["capturable"] = self._captured
        self._take_step = self._steps()
        self._stopwatch.take()
        self._random.restore(state["random"])
        if self._estimator:
            self._estimator.load_state_dict(state["estimator"])
        self._loss.copy_(state["loss"])
        self._seconds, self._latent_seconds = state["seconds"], state["latent_seconds"]
        self._rows, self._best = list(state["rows"]), state["best"]
        self.epochs = len(self._rows)
        self._epoch = None

    def history(self) -> list[list[dict[str, Any]]]:
        return [list(self._rows)]

    def latest(self) -> list[dict[str, Any]]:
        """The last evaluation, with the throughput of the epoch that is under way."""
        row: dict[str, Any] = {"step": self.step, **(self._rows[-1] if self._rows else {})}
        if (updates := self.step % self._per_epoch) and self._seconds:
            row["examples_per_second"] = updates * self.config.batch_size / self._seconds
        return [row] if self.step else []

    def results(self) -> list[dict[str, Any]]:
        """The best epoch's numbers, on the validation and the test data."""
        best, last, parameters = max(self._rows, key=self._value), self._rows[-1], self._copy()
        self.model.load_state_dict(self._best)
        test, more = self.evaluate(self._test), self.problem.results()
        self.model.load_state_dict(parameters)
        final = self.evaluate(self._test)
        return [
            {
                "best_epoch": best["epoch"],
                "epochs": len(self._rows),
                **{f"validation_{name}": best[name] for name in test},
                **{f"test_{name}": value for name, value in test.items()},
                **{f"final_validation_{name}": last[name] for name in final},
                **{f"final_test_{name}": value for name, value in final.items()},
                "seconds_of_epoch": statistics.median(row["seconds"] for row in self._rows),
                "latent_share": statistics.median(row.get("latent_share", 0.0) for row in self._rows),
                "parameters": sum(each.numel() for each in self.model.parameters() if each.requires_grad),
                **more,
            }
        ]

    def parameters(self) -> list[dict[str, Tensor]]:
        return [self._best]

    @torch.no_grad()
    def evaluate(self, split: Any) -> dict[str, float]:
        """The mean of each measure on a split, without noise."""
        training = self.model.training
        self.model.eval()
        sums: dict[str, Tensor] = {}
        counts: dict[str, int] = {}
        for rows, width in self.problem.batches(split, _BATCH_SIZE, seed=None):
            batch = self.problem.gather(split, rows, width)
            encoded, z, best = self.problem.encode(batch), None, None
            if self._estimator is not None:
                structure, scores = self.problem.structure(batch), self.problem.scores(batch, encoded)
                z, best = self._estimator.predict(structure, scores), structure.argmax(scores)
            for name, values in self.problem.measures(batch, encoded, z, best).items():
                total = values.double().sum()
                sums[name] = sums[name] + total if name in sums else total
                counts[name] = counts.get(name, 0) + values.numel()
        self.model.train(training)
        return {name: total.item() / max(1, counts[name]) for name, total in sums.items()}

    def _steps(self) -> Step:
        return CapturedSteps(self._update, self._stopwatch) if self._captured else self._update

    def _update(self, rows: Tensor, width: int) -> None:
        each = self._losses(self.problem.gather(self._train, rows, width))
        each.mean().backward()
        self._optimizer.step()
        self._optimizer.zero_grad()
        self._loss += each.detach().sum()

    def _losses(self, batch: Any) -> Tensor:
        problem, encoded = self.problem, self.problem.encode(batch)
        if self._estimator is None:
            return problem.losses(batch, encoded, None)
        scores = problem.scores(batch, encoded)
        if problem.gradient_scale != 1.0 and scores.requires_grad:
            scores.register_hook(lambda gradient: gradient * problem.gradient_scale)
        structure = Timed(problem.structure(batch), self._stopwatch)
        return self._estimator.objective(structure, scores, lambda z: problem.losses(batch, encoded, z))

    def _end_epoch(self) -> None:
        latent = self._latent_seconds + self._stopwatch.take()
        measures = self.evaluate(self._dev)
        examples = len(self._train)
        row = {
            "step": self.step,
            "epoch": self.step // self._per_epoch,
            "loss": self._loss.item() / examples,
            **measures,
            "seconds": round(self._seconds, 4),
            "examples_per_second": round(examples / self._seconds, 1),
        }
        if self._estimator:
            row["latent_share"] = round(latent / self._seconds, 4)
        if not math.isfinite(row["loss"]):
            raise ArithmeticError(
                f"the loss of epoch {row['epoch']} is {row['loss']}; use a smaller learning rate or step size"
            )
        if not self._rows or self._value(row) > max(map(self._value, self._rows)):
            self._best = self._copy()
        self._rows.append(row)
        self.epochs = len(self._rows)
        self._loss.zero_()
        self._seconds = self._latent_seconds = 0.0
        best = max(range(len(self._rows)), key=lambda i: self._value(self._rows[i]))
        if self.config.patience is not None and len(self._rows) - 1 - best >= self.config.patience:
            self.steps = self.step

    def _value(self, row: dict[str, Any]) -> float:
        return row[self._score]

    def _batches(self, epoch: int) -> Sequence[tuple[Tensor, int]]:
        return self.problem.batches(self._train, self.config.batch_size, seed=self.config.seed, epoch=epoch)

    def _copy(self) -> dict[str, Tensor]:
        return {name: value.detach().cpu().clone() for name, value in self.model.state_dict().items()}
