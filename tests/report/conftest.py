"""One folder of runs for all tests that only read it."""

from __future__ import annotations

from pathlib import Path

import pytest

from pullback.experiments.report.collect import collect
from report.folders import whole_folder


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return whole_folder(tmp_path_factory.mktemp("report") / "runs")


@pytest.fixture(scope="session")
def data(folder: Path) -> dict:
    return collect(folder)
