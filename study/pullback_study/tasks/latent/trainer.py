"""The training loop of one run: AdamW on batches, a model chosen by its validation score."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from pullback_study.tasks.latent.problem import Problem
from pullback_study.tasks.loop import Loop
from pullback_study.tasks.runtime import CapturedSums, RandomNumbers, Timed, can_be_captured, wait_for

if TYPE_CHECKING:
    from pullback_study.tasks.latent import LatentTask

_BATCH_SIZE = 64  # of evaluation


class LatentTrainer(Loop):
    """Trains one run; a step is one update of AdamW on the mean loss of a batch.

    After each epoch the model is evaluated on the validation data; the parameters of the best epoch (the first of
    equals) are kept, and are the run's result. Nothing waits for the device between two evaluations.
    """

    def __init__(self, task: LatentTask, config: Any, device: str = "cpu") -> None:
        super().__init__(task, [config], device, "noise", task.name, config.estimator, config.seed)
        with RandomNumbers(torch.device("cpu"), "parameters", task.name, config.seed).in_place():
            self.problem: Problem = task.problem(config)
        if config.train_examples is not None:
            self.problem.shorten(config.train_examples)
        self.problem.to(self.device, self.dtype)
        self.model = self.problem.model
        self._train, self._dev, self._test = self.problem.splits
        self._score = next(metric.curve or "" for metric in task.metrics if metric.name == task.selected_by)

        captured = self.problem.capturable and can_be_captured(self.model, self.method, config, self.device)
        self.problem.captured = captured
        self.use(task.estimator(config), captured=captured)
        self._optimizer = torch.optim.AdamW(
            self.model.parameters(), lr=config.learning_rate, weight_decay=config.weight_decay, fused=True, capturable=captured
        )
        self._dev_batches = self.problem.batches(self._dev, _BATCH_SIZE, seed=None)
        self._dev_counts: dict[str, int] = {}
        self._captured_validation = CapturedSums(self._validation_sums, self.graphs) if self.graphs else None
        self._batches: tuple[int, Sequence[tuple[Tensor, int]]] = -1, ()
        self._per_epoch = len(self._epoch(0))
        self.steps = self._per_epoch * config.epochs
        self._latent_seconds = 0.0
        self._best = self._copy()

    @property
    def evaluate_every(self) -> int:
        return self._per_epoch

    def batch(self) -> tuple[Tensor, int]:
        epoch, number = divmod(self.step, self._per_epoch)
        return self._epoch(epoch)[number]

    def own_state(self) -> dict[str, Any]:
        self._latent_seconds += self.stopwatch.take()
        return {
            "model": self._copy(),
            "optimizer": self._optimizer.state_dict(),
            "latent_seconds": self._latent_seconds,
            "best": self._best,
        }

    def restore_own(self, state: dict[str, Any]) -> None:
        self.model.load_state_dict(state["model"])
        self._optimizer.load_state_dict(state["optimizer"])
        for group in self._optimizer.param_groups:
            group["capturable"] = self.graphs is not None
        self._latent_seconds, self._best = state["latent_seconds"], state["best"]
        self.epochs = len(self.rows[0])

    def results(self) -> list[dict[str, Any]]:
        """The best epoch's numbers, on the validation and the test data."""
        best, last, parameters = max(self.rows[0], key=self._value), self.rows[0][-1], self._copy()
        self.model.load_state_dict(self._best)
        test, more = self.evaluate(self._test), self.problem.results()
        self.model.load_state_dict(parameters)
        final = self.evaluate(self._test)
        return [
            {
                "best_epoch": best["epoch"],
                "epochs": len(self.rows[0]),
                **{f"validation_{name}": best[name] for name in test},
                **{f"test_{name}": value for name, value in test.items()},
                **{f"final_validation_{name}": last[name] for name in final},
                **{f"final_test_{name}": value for name, value in final.items()},
                "seconds_of_epoch": statistics.median(row["seconds"] for row in self.rows[0]),
                "latent_share": statistics.median(row.get("latent_share", 0.0) for row in self.rows[0]),
                "parameters": sum(each.numel() for each in self.model.parameters() if each.requires_grad),
                **more,
            }
        ]

    def parameters(self) -> list[dict[str, Tensor]]:
        return [self._best]

    def evaluate(self, split: Any) -> dict[str, float]:
        """The mean of each measure on a split, without noise."""
        batches = self.problem.batches(split, _BATCH_SIZE, seed=None)
        counts: dict[str, int] = {}
        return self._means(lambda: self._sums(split, batches, counts), counts)

    def _means(self, summed: Callable[[], Tensor], counts: dict[str, int]) -> dict[str, float]:
        training = self.model.training
        self.model.eval()
        sums = summed()
        if self.device.type == "cuda":
            wait_for(torch.cuda.current_stream(self.device))
        self.model.train(training)
        return {name: total / counts[name] for name, total in zip(counts, sums.tolist(), strict=True)}

    def _validation_sums(self) -> Tensor:
        return self._sums(self._dev, self._dev_batches, self._dev_counts)

    @torch.no_grad()
    def _sums(self, split: Any, batches: Sequence[tuple[Tensor, int]], counts: dict[str, int]) -> Tensor:
        """The sum of each measure on a split; the number of items of each goes into `counts`."""
        sums: dict[str, Tensor] = {}
        counts.clear()
        for rows, width in batches:
            batch = self.problem.gather(split, rows, width)
            encoded, z, best = self.problem.encode(batch), None, None
            if self.estimator is not None:
                structure, scores = self.problem.structure(batch), self.problem.scores(batch, encoded)
                z, best = self.estimator.predict(structure, scores), structure.argmax(scores)
            for name, values in self.problem.measures(batch, encoded, z, best).items():
                total = values.double().sum()
                sums[name] = sums[name] + total if name in sums else total
                counts[name] = counts.get(name, 0) + values.numel()
        return torch.stack([*sums.values()])

    def update(self, rows: Tensor, width: int) -> None:
        each = self._losses(self.problem.gather(self._train, rows, width))
        each.mean().backward()
        self._optimizer.step()
        self._optimizer.zero_grad()
        self.loss += each.detach().sum()

    def _losses(self, batch: Any) -> Tensor:
        problem, encoded = self.problem, self.problem.encode(batch)
        if self.estimator is None:
            return problem.losses(batch, encoded, None)
        scores = problem.scores(batch, encoded)
        if problem.gradient_scale != 1.0 and scores.requires_grad:
            scores.register_hook(lambda gradient: gradient * problem.gradient_scale)
        structure = Timed(problem.structure(batch), self.stopwatch)
        return self.estimator.objective(structure, scores, lambda z: problem.losses(batch, encoded, z))

    def evaluate_now(self) -> None:
        rows, examples = self.rows[0], len(self._train)
        latent = self._latent_seconds + self.stopwatch.take()
        row = {
            "step": self.step,
            "epoch": self.step // self._per_epoch,
            "loss": self.loss.item() / examples,
            **self._means(self._captured_validation or self._validation_sums, self._dev_counts),
            "seconds": round(self.seconds, 4),
            "examples_per_second": round(examples / self.seconds, 1),
        }
        if self.estimator:
            row["latent_share"] = round(latent / self.seconds, 4)
        if not math.isfinite(row["loss"]):
            raise ArithmeticError(
                f"the loss of epoch {row['epoch']} is {row['loss']}; use a smaller learning rate or step size"
            )
        if not rows or self._value(row) > max(map(self._value, rows)):
            self._best = self._copy()
        rows.append(row)
        self.epochs = len(rows)
        self.loss.zero_()
        self.seconds = self._latent_seconds = 0.0
        best = max(range(len(rows)), key=lambda i: self._value(rows[i]))
        if self.config.patience is not None and len(rows) - 1 - best >= self.config.patience:
            self.steps = self.step

    def _value(self, row: dict[str, Any]) -> float:
        return row[self._score]

    def _epoch(self, epoch: int) -> Sequence[tuple[Tensor, int]]:
        """Its batches; those of the last one are kept."""
        if self._batches[0] != epoch:
            made = self.problem.batches(self._train, self.config.batch_size, seed=self.config.seed, epoch=epoch)
            self._batches = epoch, made
        return self._batches[1]

    def _copy(self) -> dict[str, Tensor]:
        return {name: value.detach().cpu().clone() for name, value in self.model.state_dict().items()}
