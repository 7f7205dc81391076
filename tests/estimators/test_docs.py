"""The documentation's table is the registry's, and the quickstart runs and learns."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from pullback.estimators.registry import ENTRIES
from pullback.estimators.tables import renewed

ROOT = Path(__file__).parents[2]
QUICKSTART = ROOT / "examples" / "quickstart.py"


def test_the_table_is_the_registrys() -> None:
    page = (ROOT / "docs" / "estimators.md").read_text()
    assert renewed(page) == page, "run: python -m pullback.estimators.tables docs/estimators.md"


def test_every_estimator_is_described() -> None:
    page = (ROOT / "docs" / "estimators.md").read_text()
    for entry in ENTRIES:
        assert f"`{type(entry.make()).__name__}" in page.split("## What each does")[1]


def test_the_quickstart_is_short_and_learns_a_tree() -> None:
    assert len(QUICKSTART.read_text().splitlines()) < 40
    run = subprocess.run(
        [sys.executable, str(QUICKSTART)],
        capture_output=True, text=True, check=True, env=os.environ | {"OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    accuracies = [float(value) for value in re.findall(r"accuracy ([\d.]+)", run.stdout)]
    assert accuracies[0] < 0.75
    assert min(accuracies[-2:]) > 0.85
