"""Every estimator on the structures that `worlds.py` does not have: finite, and zero where no parts are."""

from __future__ import annotations

import pytest
import torch

from cases import ENTRIES, Entry
from oracles import mask_of, poisoned
from pullback.estimators import registry

NAMES = ("factored chain", "at most", "knapsack", "path", "grid", "segmentation", "semi-Markov", "binary tree", "ctc")
PROJECTS = {"sparsemap", "spigot", "spigot-ce", "lpgd", "perturbed-sparsemap", "sparse-expectation"}
"""The estimators that need SparseMAP."""


@pytest.mark.filterwarnings("ignore::pullback.NotConverged")
@pytest.mark.parametrize("case", [case for case in ENTRIES if case.name in NAMES], ids=lambda case: case.name)
def test_estimators_work_where_their_operations_exist(case: Entry) -> None:
    structure, mask = case.structure(), mask_of(case)
    weight = case.scores(seed=1)
    refused = set()
    for entry in registry.ENTRIES:
        if not entry.supports(structure):
            continue
        torch.manual_seed(0)
        scores = poisoned(case, case.scores()).requires_grad_()
        try:
            losses = entry.make().objective(structure, scores, lambda z: (1 + (weight * z).flatten(1).sum(1)).square())
            (gradient,) = torch.autograd.grad(losses.sum(), scores)
        except NotImplementedError:  # of SparseMAP alone
            refused.add(entry.name)
            continue
        assert losses.isfinite().all(), entry.name
        assert gradient.isfinite().all(), entry.name
        assert not gradient[~mask].any(), entry.name
    assert refused == (set() if case.projects else PROJECTS)
