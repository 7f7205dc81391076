"""What the documentation, the metadata and the code say of releases is what `make matrix` has run."""

from __future__ import annotations

import re
import tomllib

import pytest

import matrix
from pullback.inference._numba import usable

ROWS = matrix.rows(matrix.PAGE.read_text().partition(matrix.MARK)[2])


def test_the_table_has_a_row_for_each_combination():
    assert list(ROWS) == matrix.COMBINATIONS
    assert not [row for row in ROWS.values() if not re.search(r"\| \d+ passed(, \d+ skipped)? \|", row)]


def test_releases_that_run_without_a_trial_are_in_the_table():
    assert set(usable.TESTED) == {".".join(releases.numba.split(".")[:2]) for releases in ROWS}


@pytest.mark.parametrize("project", ["", "study/"])
def test_the_classifiers_name_what_was_run(project):
    classifiers = tomllib.loads((matrix.ROOT / f"{project}pyproject.toml").read_text())["project"]["classifiers"]
    prefix = "Programming Language :: Python :: 3."
    assert {"3." + each.removeprefix(prefix) for each in classifiers if each.startswith(prefix)} <= {row.python for row in ROWS}


def test_rows_of_a_run_take_the_places_of_earlier_ones(tmp_path, monkeypatch):
    first, second = matrix.COMBINATIONS[:2]
    page = tmp_path / "versions.md"
    page.write_text("text\n" + matrix.MARK)
    monkeypatch.setattr(matrix, "PAGE", page)
    matrix.write({second: f"| {' | '.join(second)} | 1 failed | a |"})
    matrix.write({first: f"| {' | '.join(first)} | 2 passed | b |"})
    matrix.write({second: f"| {' | '.join(second)} | 3 passed | b |"})
    found = matrix.rows(page.read_text())
    assert list(found) == [first, second]
    assert page.read_text().startswith("text\n")
    assert "3 passed" in found[second]
    assert "failed" not in page.read_text()


def test_a_python_that_is_not_there_is_said_to_be_missing(tmp_path):
    wanted = matrix.COMBINATIONS[0]._replace(python="3.99")
    passed, said = matrix.run(tmp_path / "environment", wanted, {"3.99": "/nowhere/python"}, [])
    assert not passed
    assert "no python3.99" in said
