"""Replica groups: seeds, learning rates and step sizes of one method, trained as one batched model."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from pullback.estimators import Estimator, LocallyProjected, PulledBack
from pullback.structures import DependencyTree
from pullback_study.runs.files import content_hash
from pullback_study.tasks.latent.runtime import CapturedSteps, RandomNumbers, Stopwatch
from pullback_study.tasks.listops.config import Config
from pullback_study.tasks.listops.data import Split, batches, deeper, generate, in_order
from pullback_study.tasks.listops.measures import counts, shares, summed
from pullback_study.tasks.listops.methods import LSTMS, methods
from pullback_study.tasks.listops.model import Model
from pullback_study.tasks.synthetic.model import Adam
from pullback_study.tasks.task import Trainer

_EVALUATED = 4000  # expressions of the smallest width, over all replicas, in a batch of evaluation; ten times as many on a GPU


class ReplicaGroup(Trainer):
    """Trains R replicas on the same expressions, each in the order of its seed; the best model on the validation data counts.

    A replica's initialisation and order depend on its own config alone; dropout and the estimators' noise are the group's.

    Args:
        configs: they differ in seed, learning rate and step size only.
        device: `cpu` or `cuda`; on the latter steps are captured as CUDA graphs.
    """

    def __init__(self, configs: Sequence[Config], device: str = "cpu") -> None:
        self.configs, self.config = configs, configs[0]
        self._device, self._dtype = torch.device(device), getattr(torch, self.config.dtype)
        self._method, self.replicas = methods()[self.config.estimator], len(configs)
        config = self.config
        sizes = config.train_examples, config.validation_examples, config.test_examples
        splits = generate(config.depth, config.tokens, sizes, config.data_seed)
        self._train, self._validation, self._test = (split.to(self._device) for split in splits)
        self.model = Model(
            size=config.size, lstms=LSTMS.get(config.estimator, 2), rounds=config.rounds or config.depth, dropout=config.dropout
        )
        self._estimator = self._made()
        if isinstance(self._estimator, torch.nn.Module):
            self._estimator.to(self._device)
        initial = torch.stack([self.model.initial(each.seed) for each in configs])
        self.theta = initial.to(self._device, self._dtype).requires_grad_()
        self._clock = torch.zeros((), dtype=torch.int64, device=self._device)
        rates = torch.tensor([each.learning_rate or 0.0 for each in configs], dtype=torch.float64, device=self._device)
        self._adam = Adam(self.theta, rates, self._clock)
        names = content_hash([str(dataclasses.astuple(each)) for each in configs])
        self._random = RandomNumbers(self._device, "listops", names)
        self._loss = torch.zeros(self.replicas, dtype=torch.float64, device=self._device)
        graphs = self._device.type == "cuda" and not self._method.reads_back
        self._graphs = CapturedSteps(self._update, Stopwatch(self._device)) if graphs else None
        self.step, self.steps, self._epoch = 0, config.steps, -1
        self._best, self._best_accuracy = self.theta.detach().clone(), torch.full((self.replicas,), -1.0).double()
        self._rows: list[list[dict[str, Any]]] = [[] for _ in configs]
        self._seconds = 0.0
        self._per_epoch = len(self._batches(0)[0])

    def advance(self, until: int, stop: Callable[[], bool]) -> None:
        with self._random.in_place():
            began = time.perf_counter()
            while self.step < min(until, self.steps) and not stop():
                epoch, number = divmod(self.step, self._per_epoch)
                if epoch != self._epoch:
                    self._epoch, (self._widths, self._order) = epoch, self._batches(epoch)
                self._take_step(self._order[number], self._widths[number])
                self.step += 1
                if self.step % self.config.evaluate_every == 0 or self.step == self.steps:
                    began = self._clocked(began)
                    self._evaluate_now()
                    began = time.perf_counter()
            self._clocked(began)

    def state(self) -> dict[str, Any]:
        return {
            "step": self.step, "parameters": self.theta.detach().cpu(), "best": self._best.cpu(),
            "best_accuracy": self._best_accuracy, "adam_mean": self._adam.mean.cpu(), "adam_square": self._adam.square.cpu(),
            "random": self._random.state, "rows": [list(rows) for rows in self._rows], "seconds": self._seconds,
            "loss": self._loss.cpu(), "estimator": self._estimator.state_dict() if self._estimator else {},
        }  # fmt: skip

    @torch.no_grad()
    def restore(self, state: dict[str, Any]) -> None:
        self.step, self._seconds = state["step"], state["seconds"]
        self._clock.fill_(self.step)
        self.theta.copy_(state["parameters"])
        self._best.copy_(state["best"])
        self._best_accuracy = state["best_accuracy"]
        self._adam.mean.copy_(state["adam_mean"])
        self._adam.square.copy_(state["adam_square"])
        self._loss.copy_(state["loss"])
        self._random.restore(state["random"])
        self._rows = [list(rows) for rows in state["rows"]]
        self._epoch = -1
        if self._estimator:
            self._estimator.load_state_dict(state["estimator"])

    def history(self) -> list[list[dict[str, Any]]]:
        return [list(rows) for rows in self._rows]

    def latest(self) -> list[dict[str, Any]]:
        return [rows[-1] for rows in self._rows] if self._rows[0] else []

    def results(self) -> list[dict[str, Any]]:
        """The numbers of the best model of each replica on the validation data, on all data; by depth, and deeper."""
        measured = {"validation": self.evaluate(self._validation, self._best), "test": self.evaluate(self._test, self._best)}
        for depth in range(1, self.config.depth + 1):
            rows = (self._test.depths == depth).nonzero()[:, 0]
            measured[f"depth_{depth}"] = self.evaluate(self._test.take(rows, self._test.tokens.shape[1]), self._best)
        for depth, split in deeper(self.config.deeper_examples, self.config.data_seed).items():
            measured[f"depth_{depth}"] = self.evaluate(split.to(self._device), self._best, rounds=max(depth, self.model.rounds))
        flat = {f"{split}_{name}": each for split, found in measured.items() for name, each in found.items()}
        best = [max(rows, key=lambda row: row["accuracy"]) for rows in self._rows]
        return [
            {name: each[r].item() for name, each in flat.items()}
            | {"best_step": best[r]["step"], "loss": self._rows[r][-1]["loss"], "parameters": sum(self.model.sizes)}
            | {"step_ms": 1000 * self._seconds / max(1, self.step)}
            for r in range(self.replicas)
        ]

    def parameters(self) -> list[dict[str, Tensor]]:
        return [{name: value.clone() for name, value in self.model.named(row).items()} for row in self._best]

    @torch.no_grad()
    def evaluate(self, split: Split, theta: Tensor, rounds: int | None = None) -> dict[str, Tensor]:
        """Each measure in percent, `[R]`, without noise."""
        parts = []
        named = self.model.named(theta)
        together = _EVALUATED * (10 if self._device.type == "cuda" else 1)
        for rows, width in in_order(split, max(1, together // self.replicas)):
            batch = split.take(rows.to(self._device).expand(self.replicas, -1), width)
            encoded, z, best = self.model.encode(named, batch, training=False), None, None
            if self._method.latent and self._estimator is not None:
                scores, structure = self.model.scores(encoded), self._structure(batch)
                z, best = self._estimator.predict(structure, scores), structure.argmax(scores)
            elif self.model.lstms == 0:
                z = best = batch.gold(self._dtype).flatten(0, 1)
            logits = self.model.final(named, encoded, batch) if z is None else self.model.logits(named, encoded, z, rounds)
            parts.append(counts(batch, logits, z, best))
        return shares(summed(parts))

    def _update(self, rows: Tensor, width: int) -> None:
        """One step of Adam on each replica's mean loss; rows `[R, B]`."""
        batch, named = self._train.take(rows, width), self.model.named(self.theta)
        losses = self._losses(named, batch).view(self.replicas, -1).mean(1)
        (gradient,) = torch.autograd.grad(losses.sum(), self.theta)
        self._adam.update(gradient)
        self._loss.add_(losses.detach())
        self._clock.add_(1)

    def _take_step(self, rows: Tensor, width: int) -> None:
        """An update, from a CUDA graph where it can be captured."""
        if self._graphs is not None:
            try:
                return self._graphs(rows, width)
            except RuntimeError as error:
                if "captur" not in str(error):
                    raise
                self._graphs = None  # nothing was changed: kernels are not run while they are captured
        self._update(rows, width)

    def _losses(self, named: dict[str, Tensor], batch: Split) -> Tensor:
        encoded = self.model.encode(named, batch, training=True)

        def downstream(z: Tensor) -> Tensor:
            logits = self.model.logits(named, encoded, z)
            return F.cross_entropy(logits.flatten(0, 1), batch.labels.flatten(), reduction="none")

        if self._estimator is not None:
            return self._estimator.objective(self._structure(batch), self.model.scores(encoded), downstream)
        if self.model.lstms == 0:
            return downstream(batch.gold(self._dtype).flatten(0, 1))
        logits = self.model.final(named, encoded, batch)
        return F.cross_entropy(logits.flatten(0, 1), batch.labels.flatten(), reduction="none")

    def _evaluate_now(self) -> None:
        found = self.evaluate(self._validation, self.theta.detach())
        since = self.step - (self._rows[0][-1]["step"] if self._rows[0] else 0)
        losses = (self._loss / since).tolist()
        self._loss.zero_()
        better = found["accuracy"].cpu() > self._best_accuracy
        self._best_accuracy = torch.where(better, found["accuracy"].cpu(), self._best_accuracy)
        self._best = torch.where(better.to(self._device)[:, None], self.theta.detach(), self._best)
        measured = {name: values.tolist() for name, values in found.items()}
        for r, rows in enumerate(self._rows):
            rows.append({"step": self.step, "loss": losses[r], **{name: values[r] for name, values in measured.items()}})

    def _structure(self, batch: Split) -> DependencyTree:
        # Without checks of values: they wait for the device, and a replica that diverges must not stop the others.
        return DependencyTree(batch.lengths.flatten(), projective=True, multiroot=False, validate=False)

    def _made(self) -> Estimator | None:
        made = self._method.build(**self._offered())
        if self.config.projection != "local":
            return made
        assert isinstance(made, PulledBack)
        return PulledBack(made.loss, made.start, LocallyProjected(made.update.step_size), made.steps)

    def _offered(self) -> dict[str, Any]:
        """What the replicas, equal consecutive parts of the batch, offer to an estimator."""
        sizes = torch.tensor([each.step_size or 0.0 for each in self.configs], dtype=self._dtype, device=self._device)
        step_size: Any = sizes.repeat_interleave(self.config.batch_size)[:, None, None]
        if len({each.step_size for each in self.configs}) == 1:
            step_size = self.config.step_size
        return {"groups": self.replicas, "step_size": step_size, "steps": self.config.inner_steps or 1}

    def _batches(self, epoch: int) -> tuple[list[int], Tensor]:
        widths, rows = batches(self._train, self.config.batch_size, [each.seed for each in self.configs], epoch)
        return widths, rows.to(self._device)

    def _clocked(self, began: float) -> float:
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)
        now = time.perf_counter()
        self._seconds += now - began
        return now
