"""A batch on a device, its tolerances, and the answers that are further off."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from .inputs import Batch
from .subjects import STRUCTURES

TOLERANCE = {torch.float32: 1e-4, torch.float64: 1e-8, torch.float16: 2e-3, torch.bfloat16: 1e-2}
MOST_MEMBERS_OF = 8  # sizes above have too many members to enumerate


def slope_of(operation: str) -> str:
    """What the gradient of an operation is called."""
    return f"{operation}' gradient" if operation == "marginals" else f"{operation}'s gradient"


@dataclass(frozen=True)
class Problem:
    """What is wrong with an operation for an example of a batch."""

    operation: str
    example: int
    text: str


class Check:
    """A batch on a device, and what has been found wrong with the answers.

    Args:
        batch: the input.
        device: of the tensors.
        name: the backend that is checked.
    """

    def __init__(self, batch: Batch, device: torch.device, name: str) -> None:
        self.batch, self.device, self.name = batch, device, name
        self.subject = STRUCTURES[batch.name]
        self.is_large = max(map(max, batch.sizes)) > MOST_MEMBERS_OF
        self.is_interpreted = name == "cuda" and device.type == "cpu"
        # what the same kernels compute again, in minutes, is left out with checks of values and in float64
        self.is_brief = self.is_interpreted and (batch.validate or batch.scores.dtype == torch.float64)
        self.structure = batch.structure_on(device)
        self.scores = batch.scores_on(device)
        self.dtype = batch.scores.dtype
        self.infeasible = batch.infeasible
        self.problems: list[Problem] = []
        self.count = 0
        real = torch.where(batch.scores.isnan() | batch.masked, 0.0, batch.scores.double())
        self.size = real.abs().flatten(1).amax(1).tolist() if real.numel() else [0.0] * len(batch.scores)
        eps = torch.finfo(torch.float32 if self.dtype.itemsize == 2 else self.dtype).eps
        self.eps = eps * (32 + 8 * max(batch.parts) * self.is_large)
        self.direction = torch.sin(torch.arange(float(batch.scores.numel()))).reshape(batch.scores.shape).to(self.dtype)
        if batch.layout == "expanded":  # PyTorch's `jvp` takes a direction only in the layout of such scores
            self.direction = self.direction[:1].expand(self.direction.shape)
        self.weights = (0.5 + 0.5 * (torch.arange(len(batch.scores)) % 4)).to(self.dtype)

    def wrong(self, operation: str, example: int, text: str) -> None:
        self.problems.append(Problem(operation, example, text))

    def compare(self, operation: str, found: Tensor, expected: np.ndarray, factor: float = 1.0, rounding: float = 1.0) -> None:
        """Note the examples whose answers, `[B, ...]`, are further off than the tolerance and the rounding allow."""
        self.count += len(expected)
        got = found.detach().cpu().double().reshape(len(expected), -1).numpy()
        want = np.asarray(expected, dtype=float).reshape(got.shape)
        most = torch.finfo(self.dtype).max
        relative = 2 * torch.finfo(self.dtype).eps if self.dtype.itemsize == 2 else 0.0
        for i in range(len(want)):
            if np.isnan(want[i]).any():
                if self.infeasible[i] and not np.isnan(got[i]).all() and "gradient" not in operation and got.shape[1]:
                    self.wrong(operation, i, f"has no structure, and a result that is not NaN: {got[i]}")
                continue
            if (np.abs(want[i]) > most / 2).any():
                continue
            allowed = factor * (TOLERANCE[self.dtype] + relative * np.abs(want[i])) + rounding * self.eps * self.size[i]
            error = np.abs(got[i] - want[i])
            if not (error <= allowed).all():
                at = int(np.argmax(np.where(np.isnan(error), np.inf, error - allowed)))
                self.wrong(operation, i, f"is {got[i][at]:.9g} for {want[i][at]:.9g} at {at}")

    def differentiated(self, call: Callable[[Tensor], Tensor], weights: Tensor) -> tuple[Tensor, Tensor]:
        """A result, and the gradient of its weighted sum."""
        leaf = self.scores.detach().requires_grad_()
        value = call(leaf)
        shape = value.shape if weights.dim() == value.dim() else [len(weights)] + [1] * (value.dim() - 1)
        (gradient,) = torch.autograd.grad(value, leaf, weights.to(value).reshape(shape).expand_as(value))
        return value, gradient
