"""The documentation's table is the registry's, and the quickstart runs and learns."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

import pullback as pb
from pullback.estimators.registry import ENTRIES, Entry
from pullback.estimators.tables import renewed

ROOT = Path(__file__).parents[2]
QUICKSTART = ROOT / "examples" / "quickstart.py"


def test_the_table_is_the_registrys() -> None:
    page = (ROOT / "docs" / "estimators.md").read_text()
    assert renewed(page) == page, "run: python -m pullback.estimators.tables docs/estimators.md"


def test_every_estimator_is_described() -> None:
    page = (ROOT / "docs" / "estimators.md").read_text()
    for entry in ENTRIES:
        assert f"`{type(entry.make()).__name__}" in page.split("## What each estimator does")[1]


@pytest.mark.parametrize("entry", [entry for entry in ENTRIES if entry.only is None], ids=lambda entry: entry.name)
def test_every_estimator_trains_a_latent_tree_as_in_the_quickstart(entry: Entry) -> None:
    """A few steps of its model: losses and gradients are finite, and the encoder of the tree moves."""
    torch.manual_seed(0)
    encoder, decoder, estimator = nn.Linear(7, 7), nn.Linear(7, 2), entry.make()
    optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=0.05)
    first = encoder.weight.detach().clone()
    for _ in range(3):
        x, y = torch.randn(16, 4, 7), torch.randint(2, (16,))
        scores = x @ encoder(x).mT

        def downstream(z: Tensor, x: Tensor = x, y: Tensor = y) -> Tensor:
            return nn.functional.cross_entropy(decoder((z.mT @ x)[:, -1]), y, reduction="none")

        optimizer.zero_grad()
        loss = estimator.objective(pb.DependencyTree(), scores, downstream).mean()
        loss.backward()
        optimizer.step()
        assert loss.isfinite()
    assert encoder.weight.isfinite().all()
    assert not torch.equal(encoder.weight, first)


def test_the_quickstart_is_short_and_learns_a_tree() -> None:
    assert len(QUICKSTART.read_text().splitlines()) < 40
    run = subprocess.run(
        [sys.executable, str(QUICKSTART)],
        capture_output=True, text=True, check=True, env=os.environ | {"OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    accuracies = [float(value) for value in re.findall(r"accuracy ([\d.]+)", run.stdout)]
    assert accuracies[0] < 0.75
    assert min(accuracies[-2:]) > 0.85
