"""The training loop of one run: AdamW on batches, a model chosen by its validation score."""

from __future__ import annotations

import dataclasses
import math
import operator
import statistics
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from pullback_study.tasks.latent import LatentTask
from pullback_study.tasks.loop import Loop
from pullback_study.tasks.runtime import Captured, RandomNumbers, Timed, wait_for

_BATCH_SIZE = 64  # of evaluation
_Batches = Sequence[tuple[Tensor, int]]


class LatentTrainer(Loop):
    """Trains one run; a step is one update of AdamW on the mean loss of a batch.

    After each epoch the model is evaluated on the validation data; the parameters of the best epoch (the first of
    equals) are kept, and are the run's result. Nothing waits for the device between two evaluations. With `frozen_after`, only
    the epochs after it count, in which the scorer alone is trained.
    """

    task: LatentTask

    def __init__(self, task: LatentTask, configs: Sequence[Any], device: str = "cpu") -> None:
        (config,) = configs
        super().__init__(task, configs, device, "noise", task.name, config.estimator, config.seed)
        with RandomNumbers(torch.device("cpu"), "parameters", task.name, config.seed).in_place():
            self.problem = problem = task.problem(config)
        if config.train_examples is not None:
            train, validation, test = problem.splits
            problem.splits = train.first(config.train_examples), validation, test
        problem.to(self.device, self.dtype)
        self.model = problem.model
        self._value = operator.itemgetter(*(metric.curve for metric in task.metrics if metric.name == task.selected_by))
        self._frozen_after = config.frozen_after or 0
        if self._frozen_after and not problem.scorer:
            raise ValueError(
                f"frozen_after is {self._frozen_after}; {config.estimator} has no scorer to train anew: leave it out"
            )
        estimator = task.estimator(dataclasses.replace(config, inner_steps=1) if self._frozen_after else config)
        changing = self.method.reads_back or bool(estimator and estimator.state_dict())  # such as a moving baseline
        problem.captured = problem.capturable and self.device.type == "cuda" and not changing
        self.use(estimator, captured=problem.captured)
        self._optimizer = self._adam()
        self._evaluated: dict[int, _Batches] = {}  # the batches of a split
        self._counts: dict[str, int] = {}  # the items of each measure in the last evaluation
        kind = "validation", self.kind
        self._captured = self.graphs and Captured(self._sums, self.stopwatch, kind, self.graphs.pool)
        self._batches: tuple[int, _Batches] = -1, ()
        self.evaluate_every = len(self._epoch(0))
        self.steps = self.evaluate_every * (self._frozen_after + config.epochs)
        self._latent_seconds = 0.0
        self._best = self._initial = self._copy()

    def batch(self) -> tuple[Tensor, int]:
        epoch, number = divmod(self.step, self.evaluate_every)
        return self._epoch(epoch)[number]

    def own_state(self) -> dict[str, Any]:
        self._latent_seconds += self.stopwatch.take()
        mine = {"model": self._copy(), "optimizer": self._optimizer.state_dict()}
        return {**mine, "latent_seconds": self._latent_seconds, "best": self._best}

    def restore_own(self, state: dict[str, Any]) -> None:
        if 0 < self._frozen_after <= len(self.rows[0]):
            self._freeze()
        self.model.load_state_dict(state["model"])
        self._optimizer.load_state_dict(state["optimizer"])
        for group in self._optimizer.param_groups:
            group["capturable"] = self.graphs is not None
        self._latent_seconds, self._best = state["latent_seconds"], state["best"]
        self.epochs = len(self.rows[0])

    def results(self) -> list[dict[str, Any]]:
        """The best epoch's numbers, on the validation and the test data."""
        rows, parameters = self.rows[0], self._copy()
        best, last = max(self._counted, key=self._value), rows[-1]
        self.model.load_state_dict(self._best)
        test, more = self._means(self._sums, 2), self.problem.results()
        self.model.load_state_dict(parameters)
        final = self._means(self._sums, 2)
        return [
            {
                "best_epoch": best["epoch"],
                "epochs": len(rows),
                **{f"validation_{name}": best[name] for name in test},
                **{f"test_{name}": value for name, value in test.items()},
                **{f"final_validation_{name}": last[name] for name in final},
                **{f"final_test_{name}": value for name, value in final.items()},
                "seconds_of_epoch": statistics.median(row["seconds"] for row in rows),
                "latent_share": statistics.median(row.get("latent_share", 0.0) for row in rows),
                "parameters": sum(each.numel() for each in self.model.parameters() if each.requires_grad),
                **more,
            }
        ]

    def parameters(self) -> list[dict[str, Tensor]]:
        return [self._best]

    def _means(self, summed: Callable[[Tensor, int], Tensor], split: int) -> dict[str, float]:
        """The mean of each measure on a split, without noise."""
        self.model.eval()
        sums = summed(self.loss, split)
        wait_for(self.device)
        self.model.train()
        return {name: total / self._counts[name] for name, total in zip(self._counts, sums.tolist(), strict=True)}

    @torch.no_grad()
    def _sums(self, _: Tensor, number: int) -> Tensor:
        """The sum of each measure on a split."""
        sums: dict[str, Tensor] = {}
        self._counts, split = {}, self.problem.splits[number]
        if number not in self._evaluated:
            self._evaluated[number] = self.problem.batches(split, _BATCH_SIZE, seed=None)
        for rows, width in self._evaluated[number]:
            batch = self.problem.gather(split, rows, width)
            encoded, z, best = self.problem.encode(batch), None, None
            if self.estimator is not None:
                structure, scores = self.problem.structure(batch), self.problem.scores(batch, encoded)
                z, best = self.estimator.predict(structure, scores), structure.argmax(scores)
            for name, values in self.problem.measures(batch, encoded, z, best).items():
                total = values.double().sum()
                sums[name] = sums[name] + total if name in sums else total
                self._counts[name] = self._counts.get(name, 0) + values.numel()
        return torch.stack([*sums.values()])

    def update(self, rows: Tensor, width: int) -> None:
        self._optimizer.zero_grad()  # of a capture that failed
        each = self._losses(self.problem.gather(self.problem.splits[0], rows, width))
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
        losses = self.estimator.objective(structure, scores, lambda z: problem.losses(batch, encoded, z))
        more = problem.supervision(batch, structure, scores)
        return losses if more is None else losses + more

    def evaluate_now(self) -> None:
        rows, examples = self.rows[0], len(self.problem.splits[0])
        latent, epoch, loss = self._latent_seconds + self.stopwatch.take(), len(rows) + 1, self.loss.item() / examples
        if not math.isfinite(loss):
            raise ArithmeticError(f"the loss of epoch {epoch} is {loss}; use a smaller learning rate or step size")
        if not torch.stack([each.isfinite().all() for each in self.model.parameters()]).all():  # by the last step
            raise ArithmeticError(f"epoch {epoch} ends with parameters that are not finite; use a smaller learning rate")
        row = {"step": self.step, "epoch": epoch, "loss": loss, **self._means(self._captured or self._sums, 1)}
        row |= {"seconds": round(self.seconds, 4), "examples_per_second": round(examples / self.seconds, 1)}
        row |= {"latent_share": round(latent / self.seconds, 4)} if self.estimator else {}
        rows.append(row)
        self.epochs, counted = len(rows), self._counted
        best = max(range(len(counted)), key=lambda i: self._value(counted[i]))
        if counted[best] is row:
            self._best = self._copy()
        self.loss.zero_()
        self.seconds = self._latent_seconds = 0.0
        if self.epochs == self._frozen_after:
            self._freeze()
        elif self.config.patience is not None and len(counted) - 1 - best >= self.config.patience:
            self.steps = self.step

    @property
    def _counted(self) -> list[dict[str, Any]]:
        """The evaluations that the best one is chosen from."""
        return self.rows[0][self._frozen_after :] or self.rows[0]

    def _freeze(self) -> None:
        """From here on, the model of the best epoch, with its scorer as it was at first, and that alone is trained."""
        self.model.load_state_dict({**self._best, **{name: self._initial[name] for name in self.problem.scorer}})
        for name, parameter in self.model.named_parameters():
            parameter.requires_grad_(name in self.problem.scorer)
        self._optimizer = self._adam()
        self.use(self.task.estimator(self.config), captured=self.graphs is not None)

    def _adam(self) -> torch.optim.AdamW:
        trained = [each for each in self.model.parameters() if each.requires_grad]
        rates = {"lr": self.config.learning_rate, "weight_decay": self.config.weight_decay}
        return torch.optim.AdamW(trained, **rates, fused=True, capturable=self.problem.captured)

    def _epoch(self, epoch: int) -> _Batches:
        """Its batches; those of the last one are kept."""
        if self._batches[0] != epoch:
            train, config = self.problem.splits[0], self.config
            self._batches = epoch, self.problem.batches(train, config.batch_size, seed=config.seed, epoch=epoch)
        return self._batches[1]

    def _copy(self) -> dict[str, Tensor]:
        return {name: value.detach().cpu().clone() for name, value in self.model.state_dict().items()}
