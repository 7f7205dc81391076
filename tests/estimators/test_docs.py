"""The documentation's table is the registry's, and the quickstart runs and learns."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from pullback.estimators.registry import Entry

ROOT = Path(__file__).parents[2]
QUICKSTART = ROOT / "examples" / "quickstart.py"


@pytest.fixture(scope="module")
def rows() -> list[str]:
    return (ROOT / "docs" / "estimators.md").read_text().splitlines()


def test_the_table_has_a_row_for_every_entry(entry: Entry, rows: list[str]) -> None:
    names = ", ".join(f"`{name}`" for name in (entry.name, *entry.aliases))
    paper = (entry.categorical, entry.structured) if entry.in_paper else ("-", "-")
    calls = ", ".join(f"{name}: {count}" for name, count in entry.inference.items())
    cells = (names, f"`{entry.make()!r}`", *paper, str(entry.downstream), calls)
    assert "| " + " | ".join(cells) + " |" in rows


def test_the_quickstart_is_short_and_learns_a_tree() -> None:
    assert len(QUICKSTART.read_text().splitlines()) < 40
    run = subprocess.run(
        [sys.executable, str(QUICKSTART)],
        capture_output=True, text=True, check=True, env=os.environ | {"OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    accuracies = [float(value) for value in re.findall(r"accuracy ([\d.]+)", run.stdout)]
    assert accuracies[0] < 0.75
    assert min(accuracies[-2:]) > 0.85
