"""entmax: sparse alternatives to softmax."""

from __future__ import annotations

import torch
from torch import Tensor

from benchmarks.comparison import Contender
from benchmarks.inputs import Case

NAME = "entmax"


def sparsemax_backward(case: Case) -> Contender:
    from entmax import sparsemax

    scores = case.scores.clone().requires_grad_()

    def call() -> tuple[Tensor, Tensor]:
        p = sparsemax(scores, dim=-1)
        return p.detach(), torch.autograd.grad(p, scores, case.direction)[0]

    return Contender(NAME, call)
