"""Our calls that more than one benchmark times."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from benchmarks.inputs import Case


def with_backward(operation: Callable[[Tensor], Tensor], case: Case) -> Callable[[], tuple[Tensor, Tensor]]:
    """A call of the operation and of its backward pass at the case's direction."""
    scores = case.scores.clone().requires_grad_()

    def call() -> tuple[Tensor, Tensor]:
        mu = operation(scores)
        return mu.detach(), torch.autograd.grad(mu, scores, case.direction)[0]

    return call
