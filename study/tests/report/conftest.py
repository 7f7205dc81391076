"""One folder of runs, and the two pages made of it, for all tests that only read them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from pullback_study.report.page import write
from report.folders import whole_folder


@pytest.fixture(scope="session", autouse=True)
def _no_waiting_for_the_disk() -> Iterator[None]:
    """Hundreds of runs are written here, and none has to outlive a power cut."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("os.fsync", lambda descriptor: None)
        yield


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory, _no_waiting_for_the_disk: None) -> Path:
    return whole_folder(tmp_path_factory.mktemp("report") / "runs")


@pytest.fixture(scope="session")
def pages(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The report and the explorer."""
    report, explorer = write(tmp_path_factory.mktemp("page") / "report.html", folder)
    return report, explorer
