"""Replicas: runs that differ in seed, learning rate and the like, trained together as one batched model."""

from __future__ import annotations

import abc
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from pullback_study.tasks.loop import Loop
from pullback_study.tasks.task import ReplicaTask


class Parameters(abc.ABC):
    """The named parameters of a model as a row of one matrix `[R, P]`, one for each of R replicas."""

    def __init__(self, shapes: Mapping[str, tuple[int, ...]]) -> None:
        self.shapes, self.sizes = shapes, [math.prod(shape) for shape in shapes.values()]

    @abc.abstractmethod
    def initial(self, seed: int) -> Tensor:
        """The first parameters of a replica, `[P]`."""

    def named(self, rows: Tensor) -> dict[str, Tensor]:
        """The parameters `[..., P]` by name, as views of their own shapes `[..., *shape]`."""
        parts = zip(self.shapes.items(), rows.split(self.sizes, -1), strict=True)
        return {name: part.reshape(*part.shape[:-1], *shape) for (name, shape), part in parts}


class Replicas(Loop):
    """Trains R replicas together. A step of Adam follows the gradient of each replica's mean loss.

    A replica's data and initialisation depend on its own config alone, so that it takes the same steps in every group, up to
    rounding. Random numbers that are not its own depend on the identities of the runs: an option that is added later, with its
    default, changes none. On a GPU steps are captured as CUDA graphs where the structure's operations can be.
    """

    best_by: str | None = None  # the measure by which the best model is kept; None where the last one counts
    curve_loss: str | None = "mean"  # what curves show: the mean `loss` since the last evaluation, the `last` one, or None
    splits: dict[str, Any]  # examples by name, `validation` and `test` among them

    def __init__(self, task: ReplicaTask, configs: Sequence[Any], device: str = "cpu") -> None:
        if len({task.common(each) for each in configs}) > 1:
            raise ValueError(f"the replicas of a group may differ in {', '.join(task.varied)} only")
        super().__init__(task, configs, device, *(task.run(each, Path()).id for each in configs))
        self.replicas, self.steps, self.evaluate_every = len(configs), self.config.steps, self.config.evaluate_every
        self.evaluate_last = self.best_by is not None
        self.clock = torch.zeros((), dtype=torch.int64, device=self.device)  # the step, on the device
        self.model = self.prepare()
        initial = torch.stack([self.model.initial(each.seed) for each in configs])
        self.theta = initial.to(self.device, self.dtype).requires_grad_()
        self.adam = Adam(self.theta, self.rates(), self.clock)
        self.best = torch.full_like(self.theta, math.nan).detach()  # of no evaluation yet, or of none without a NaN
        self.best_value = torch.full((self.replicas,), -math.inf).double()
        self.use(self.method.build(**self.offered()), captured=self.device.type == "cuda" and not self.method.reads_back)

    @abc.abstractmethod
    def prepare(self) -> Parameters:
        """Make the data and the model."""

    @abc.abstractmethod
    def offered(self) -> dict[str, Any]:
        """What the replicas, equal consecutive parts of the batch, offer to an estimator: own step sizes, own noise."""

    @abc.abstractmethod
    def losses(self, rows: Tensor, width: int) -> Tensor:
        """Of all examples of a batch, replica by replica, with the parameters `theta`."""

    @abc.abstractmethod
    def measures(self, examples: Any, theta: Tensor) -> dict[str, Tensor]:
        """By name, a number for each replica, `[R]`, without noise."""

    def batch(self) -> tuple[Tensor, int]:
        return self.clock[None], 0  # the step finds its examples by the clock

    def update(self, rows: Tensor, width: int) -> None:
        losses = self.losses(rows, width).view(self.replicas, -1).mean(1)
        (gradient,) = torch.autograd.grad(losses.sum(), self.theta)
        self.adam.update(self.scaled(gradient))
        (self.loss.copy_ if self.curve_loss == "last" else self.loss.add_)(losses.detach())
        self.clock.add_(1)

    def rates(self) -> Tensor:
        """Learning rates, `[R]`, or `[R, P]` where parameters have their own."""
        return torch.tensor([each.learning_rate or 0.0 for each in self.configs], dtype=torch.float64)

    def scaled(self, gradient: Tensor) -> Tensor:
        """What Adam sees of the gradient `[R, P]`."""
        return gradient

    def evaluate_now(self) -> None:
        found = self.measured(self.splits["validation"], self.theta.detach())
        if self.best_by is not None:
            value = found[self.best_by].cpu()
            better = value > self.best_value
            self.best_value = torch.where(better, value, self.best_value)
            self.best = torch.where(better.to(self.device)[:, None], self.theta.detach(), self.best)
        if self.curve_loss == "mean":
            found = {"loss": self.loss / (self.step - (self.rows[0][-1]["step"] if self.rows[0] else 0)), **found}
            self.loss.zero_()
        elif self.curve_loss == "last":
            found = {"loss": self.loss, **found}
        columns = {name: values.tolist() for name, values in found.items()}
        for r, rows in enumerate(self.rows):
            rows.append({"step": self.step, **{name: values[r] for name, values in columns.items()}})

    def measured(self, examples: Any, theta: Tensor, **options: Any) -> dict[str, Tensor]:
        """The measures; NaN for a replica that diverged, whatever a model with such parameters predicts."""
        finite = theta.isfinite().all(1)
        return {name: values.where(finite, math.nan) for name, values in self.measures(examples, theta, **options).items()}

    def measured_at_last(self) -> dict[str, dict[str, Tensor]]:
        """By split, the measures of the final model."""
        return {split: self.measured(self.splits[split], self.final) for split in ("validation", "test")}

    def more(self, replica: int) -> dict[str, Any]:
        """What else a result has."""
        return {}

    def results(self) -> list[dict[str, Any]]:
        found = {f"{split}_{name}": each.tolist() for split, of in self.measured_at_last().items() for name, each in of.items()}
        return [{name: values[r] for name, values in found.items()} | self.more(r) for r in range(self.replicas)]

    def parameters(self) -> list[dict[str, Tensor]]:
        return [{name: value.clone() for name, value in self.model.named(row).items()} for row in self.final]

    @property
    def final(self) -> Tensor:
        """The parameters that count, `[R, P]`."""
        return self.theta.detach() if self.best_by is None else self.best

    def own_state(self) -> dict[str, Any]:
        return {
            "parameters": self.theta.detach().cpu(), "adam_mean": self.adam.mean.cpu(), "adam_square": self.adam.square.cpu(),
            "best": self.best.cpu(), "best_accuracy": self.best_value,
        }  # fmt: skip

    def restore_own(self, state: dict[str, Any]) -> None:
        self.clock.fill_(self.step)
        self.theta.copy_(state["parameters"])
        self.adam.mean.copy_(state["adam_mean"])
        self.adam.square.copy_(state["adam_square"])
        self.best.copy_(state["best"])
        self.best_value = state["best_accuracy"]

    def step_sizes(self, examples: int, dims: int, scale: float = 1.0) -> Tensor:
        """Of the examples of each replica, `[R * examples, 1, ...]` with so many dimensions more."""
        sizes = torch.tensor([(each.step_size or 0.0) / scale for each in self.configs], dtype=torch.float64)
        return sizes.to(self.device, self.dtype).repeat_interleave(examples).view(-1, *[1] * dims)


class Adam:
    """Adam as `torch.optim.Adam` (and AdamW without weight decay) has it, on parameters `[R, P]`.

        m <- b1 m + (1 - b1) g,   v <- b2 v + (1 - b2) g^2
        theta <- theta - lr / (1 - b1^t) * m / (sqrt(v / (1 - b2^t)) + eps)

    One replica is a row, with a learning rate of its own, `[R]`, or one for each parameter, `[R, P]`. Everything is a tensor
    that is updated in place, so that a step can be captured in a CUDA graph; `step`, t - 1, is advanced by the owner after
    each update.
    """

    betas, eps = (0.9, 0.999), 1e-8

    def __init__(self, parameters: Tensor, learning_rates: Sequence[float] | Tensor, step: Tensor) -> None:
        self.parameters = parameters
        self.mean, self.square = torch.zeros_like(parameters).detach(), torch.zeros_like(parameters).detach()
        rates = torch.as_tensor(learning_rates, dtype=torch.float64, device=parameters.device)
        self._rates = rates.view(len(parameters), -1)
        self._step = step

    @torch.no_grad()
    def update(self, gradient: Tensor) -> None:
        b1, b2 = self.betas
        t = (self._step + 1).double()
        self.mean.lerp_(gradient, 1 - b1)
        self.square.mul_(b2).addcmul_(gradient, gradient, value=1 - b2)
        rate = (self._rates / (1 - torch.pow(b1, t))).to(gradient.dtype)
        root = (1 - torch.pow(b2, t)).sqrt().to(gradient.dtype)
        self.parameters.sub_(rate * self.mean / (self.square.sqrt() / root + self.eps))
