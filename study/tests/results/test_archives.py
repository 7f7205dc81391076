"""The runs behind a page are in an archive beside it: the page is what they make."""

import shutil
import tarfile
from pathlib import Path

import pytest

from pullback_study.results.choice import Runs
from pullback_study.results.registry import find_section, update_page

PUBLISHED = Path(__file__).parents[3] / "docs" / "results"
FILES = {"config.json", "metrics.jsonl", "result.json"}


@pytest.mark.parametrize("study", ["text"])
def test_the_archive_makes_the_page(study, tmp_path):
    with tarfile.open(PUBLISHED / f"runs-{study}.tar.xz") as archive:
        members = archive.getmembers()
        assert {Path(member.name).name for member in members if member.isfile()} == FILES
        archive.extractall(tmp_path, filter="data")
    page, section, runs = tmp_path / f"{study}.md", find_section(study), Runs(tmp_path / "runs")
    assert all(run.state == "done" for run in runs.all)
    shutil.copy(PUBLISHED / page.name, page)
    update_page(page, section.groups(runs), section.claims(runs))
    written = [page, *tmp_path.glob("*.svg"), *tmp_path.glob("*.csv")]
    assert len(written) > 1
    assert {path.name: path.read_text() for path in written} == {
        path.name: (PUBLISHED / path.name).read_text() for path in written
    }
