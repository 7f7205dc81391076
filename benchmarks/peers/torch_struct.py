"""torch-struct: semiring parsing by automatic differentiation. Its layout is ours."""

from __future__ import annotations

import warnings
from typing import Any

import torch

from benchmarks.comparison import Contender
from benchmarks.inputs import Case

NAME = "torch-struct"


def _import() -> Any:
    warnings.filterwarnings("ignore", message=".*does not define `arg_constraints`.*")
    import torch_struct

    return torch_struct


def argmax(case: Case) -> Contender:
    library, scores = _import(), _leaf(case)
    return Contender(NAME, lambda: library.DependencyCRF(scores, lengths=case.lengths).argmax.detach())


def marginals(case: Case) -> Contender:
    library, scores = _import(), _leaf(case)
    return Contender(NAME, lambda: library.DependencyCRF(scores, lengths=case.lengths).marginals.detach())


def marginals_backward(case: Case) -> Contender:
    library, scores = _import(), _leaf(case)

    def call() -> tuple[torch.Tensor, torch.Tensor]:
        mu = library.DependencyCRF(scores, lengths=case.lengths).marginals
        return mu.detach(), torch.autograd.grad(mu, scores, case.direction)[0]

    return Contender(NAME, call)


def nonprojective_marginals(case: Case) -> Contender:
    library = _import()
    return Contender(
        NAME,
        lambda: library.NonProjectiveDependencyCRF(case.scores, lengths=case.lengths, multiroot=True).marginals,
    )


def _leaf(case: Case) -> torch.Tensor:
    """Its projective trees raise on scores that do not require a gradient."""
    return case.scores.clone().requires_grad_()
