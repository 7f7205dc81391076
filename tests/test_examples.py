"""Every example runs, and its own assertions hold."""

import runpy
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("*.py"))


NEEDS = {"crf_trainer": ["transformers", "accelerate"], "crf_lightning": ["lightning"]}


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_it_is_read_in_ten_minutes(path):
    assert len(path.read_text().splitlines()) < 120


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_it_runs(path):
    for package in NEEDS.get(path.stem, []):
        pytest.importorskip(package)
    runpy.run_path(str(path), run_name="__main__")
