"""The training loop: one run, from word vectors to a model chosen by validation accuracy."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from pullback_study.corpora.batches import Batch, Batches, batches, gather
from pullback_study.corpora.corpus import UNKNOWN, Corpus, Split
from pullback_study.corpora.vectors import spellings
from pullback_study.study import Trainer
from pullback_study.text.captured import WIDTHS, CapturedSteps, Step, can_be_captured
from pullback_study.text.config import Config
from pullback_study.text.evaluation import evaluate
from pullback_study.text.latent import LatentTrees, losses
from pullback_study.text.methods import find_method
from pullback_study.text.model import count_parameters
from pullback_study.text.randomness import RandomNumbers
from pullback_study.text.tasks import find_task
from pullback_study.text.timing import Stopwatch


class TextTrainer(Trainer):
    """Trains one run; a step is one update of AdamW on the mean loss of a batch.

    After each epoch the model is evaluated on the validation data; the parameters of the best epoch (the first of
    equals) are kept, and are the run's result. Nothing waits for the device between two evaluations.

    Args:
        config: the run's.
        corpus: its data.
        device: `cpu` or `cuda`.
    """

    def __init__(self, config: Config, corpus: Corpus, device: str = "cpu") -> None:
        task, method = find_task(config.task), find_method(config.estimator)
        self.config = config
        self._device = torch.device(device)
        self._dtype = getattr(torch, config.dtype)
        self._description, self._vocabulary = corpus.description, corpus.vocabulary
        train = corpus.train if config.train_examples is None else first(corpus.train, config.train_examples)
        self._train, self._dev, self._test = (each.to(self._device) for each in (train, corpus.dev, corpus.test))
        self._vectors = corpus.vectors.to(self._device, self._dtype)

        with RandomNumbers(torch.device("cpu"), "parameters", config.task, config.seed).in_place():
            model = task.model(corpus.vectors.shape[1], method.latent)
        self.model = model.to(self._device, self._dtype)
        self._random = RandomNumbers(self._device, "noise", config.task, config.estimator, config.seed)
        self._stopwatch = Stopwatch(self._device)
        self._latent = latent_trees(config, self._stopwatch)
        self._captured = can_be_captured(self.model, method, config.inner_steps, self._device)
        self._optimizer = torch.optim.AdamW(
            self.model.parameters(), lr=config.learning_rate, weight_decay=config.weight_decay, fused=True,
            capturable=self._captured,
        )  # fmt: skip
        self._take_step = self._steps()

        self._epoch: Batches | None = None
        self._per_epoch = len(batches(self._train, config.batch_size, seed=config.seed))
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
                self._take_step(*self._epoch.examples(number))
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
            "estimator": self._latent.estimator.state_dict() if self._latent else {},
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
        if self._latent:
            self._latent.estimator.load_state_dict(state["estimator"])
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
            if self._latent and self._device.type == "cpu":
                row["latent_share"] = (self._latent_seconds + self._stopwatch.seconds) / self._seconds
        return [row] if self.step else []

    def results(self) -> list[dict[str, Any]]:
        """The best epoch's numbers, on the validation and the test data."""
        best = max(self._rows, key=lambda row: row["accuracy"])
        last = self._copy()
        self.model.load_state_dict(self._best)
        test = evaluate(self.model, self._latent, self._test, self._vectors)
        example = self._heads(find_task(self.config.task).example)
        self.model.load_state_dict(last)
        final = evaluate(self.model, self._latent, self._test, self._vectors)
        return [
            {
                "best_epoch": best["epoch"],
                "epochs": len(self._rows),
                "validation_accuracy": best["accuracy"],
                "test_accuracy": test["accuracy"],
                "validation_depth": best.get("depth"),
                "test_depth": test.get("depth"),
                "final_validation_accuracy": self._rows[-1]["accuracy"],
                "final_test_accuracy": final["accuracy"],
                "final_test_depth": final.get("depth"),
                "seconds_of_epoch": statistics.median(row["seconds"] for row in self._rows),
                "latent_share": statistics.median(row.get("latent_share", 0.0) for row in self._rows),
                "example_heads": example,
                "parameters": count_parameters(self.model),
                "data": self._description,
            }
        ]

    def parameters(self) -> list[dict[str, Tensor]]:
        return [self._best]

    def _steps(self) -> Step:
        return CapturedSteps(self._update, self._stopwatch) if self._captured else self._update

    def _update(self, examples: Tensor, width: int) -> None:
        each = self._losses(gather(self._train, examples, width))
        each.mean().backward()
        self._optimizer.step()
        self._optimizer.zero_grad()
        self._loss += each.detach().sum()

    def _losses(self, batch: Batch) -> Tensor:
        encoded = self.model.encode(self._vectors[batch.words], batch.lengths)

        def downstream(mu: Tensor | None) -> Tensor:
            return losses(self.model.logits(encoded, mu), batch.labels)

        if self._latent is None:
            return downstream(None)
        return self._latent.objective(self.model.scores(encoded), batch.lengths, downstream)

    def _end_epoch(self) -> None:
        latent = self._latent_seconds + self._stopwatch.take()
        measures = evaluate(self.model, self._latent, self._dev, self._vectors)
        examples = len(self._train)
        row = {
            "step": self.step,
            "epoch": self.step // self._per_epoch,
            "loss": self._loss.item() / examples,
            **measures,
            "seconds": round(self._seconds, 4),
            "examples_per_second": round(examples / self._seconds, 1),
        }
        if self._latent:
            row["latent_share"] = round(latent / self._seconds, 4)
        if not math.isfinite(row["loss"]):
            raise ArithmeticError(
                f"the loss of epoch {row['epoch']} is {row['loss']}; use a smaller learning rate or step size"
            )
        if measures["accuracy"] > max((earlier["accuracy"] for earlier in self._rows), default=-1.0):
            self._best = self._copy()
        self._rows.append(row)
        self.epochs = len(self._rows)
        self._loss.zero_()
        self._seconds = self._latent_seconds = 0.0
        best = max(range(len(self._rows)), key=lambda i: self._rows[i]["accuracy"])
        if self.config.patience is not None and len(self._rows) - 1 - best >= self.config.patience:
            self.steps = self.step

    @torch.no_grad()
    def _heads(self, tokens: Sequence[str]) -> list[int] | None:
        """The best tree of a sentence."""
        if self._latent is None or not tokens:
            return None
        rows = {word: row for row, word in enumerate(self._vocabulary)}
        known = [next((rows[word] for word in spellings(token) if word in rows), UNKNOWN) for token in tokens]
        lengths = torch.tensor([len(tokens)], device=self._device)
        scores = self.model.scores(self.model.encode(self._vectors[known][None], lengths))
        return self._latent.heads(scores, lengths)[0].tolist()

    def _batches(self, epoch: int) -> Batches:
        multiple = WIDTHS if self._captured else 1
        return batches(self._train, self.config.batch_size, seed=self.config.seed, epoch=epoch, multiple=multiple)

    def _copy(self) -> dict[str, Tensor]:
        return {name: value.detach().cpu().clone() for name, value in self.model.state_dict().items()}


def latent_trees(config: Config, stopwatch: Stopwatch | None = None) -> LatentTrees | None:
    """The latent layer that a config describes; None for the baseline."""
    size = None if config.step_size is None else config.step_size / config.gamma_divisor
    estimator = find_method(config.estimator).build(
        step_size=size, inner_steps=config.inner_steps, projection=config.projection
    )
    if estimator is None:
        return None
    return LatentTrees(
        estimator, projective=bool(config.projective), stopwatch=stopwatch, gradient_scale=config.gamma_divisor
    )


def first(split: Split, examples: int) -> Split:
    """The first examples of a split."""
    examples = min(examples, len(split))
    offsets = split.offsets[: examples * split.sides + 1]
    return Split(split.words[: int(offsets[-1])], offsets, split.labels[:examples], split.sides, split.dropped)
