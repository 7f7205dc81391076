"""The runs behind a page are in an archive beside it: the page is what they make."""

import re
import shutil
import tarfile
from pathlib import Path

import pytest

from pullback_study.results.choice import Runs
from pullback_study.results.registry import (
    BEGIN,
    DONE,
    END,
    INTERRUPTED,
    SECTIONS,
    archive_of,
    find_section,
    pack,
    unpack,
    update_page,
)
from pullback_study.runs.provenance import unfit
from pullback_study.runs.run import Group
from pullback_study.tasks import find_task

PUBLISHED = Path(__file__).parents[3] / "docs" / "results"
ARCHIVES = sorted(path.name.removeprefix("runs-").removesuffix(".tar.xz") for path in PUBLISHED.glob("runs-*.tar.xz"))
NOT_KEPT = "runs behind this page are lost"
DIRTY = {"text"}  # made before archives had to come from a clean commit; their pages say so
SYNTHETIC = find_task("synthetic")


def test_every_page_has_its_archive_or_says_that_it_has_none():
    pages = {path.stem: path.read_text() for path in PUBLISHED.glob("*.md") if path.stem != "estimators"}
    empty = {name for name, text in pages.items() if BEGIN in text and not text.split(BEGIN)[1].split(END)[0].strip()}
    without = empty | {name for name, text in pages.items() if NOT_KEPT in text}
    assert set(ARCHIVES) == pages.keys() - without
    assert set(SECTIONS) <= pages.keys()


@pytest.mark.parametrize("study", ARCHIVES)
def test_the_archive_makes_the_page(study, tmp_path):
    section, runs = find_section(study), unpack(PUBLISHED / f"runs-{study}.tar.xz", tmp_path)
    assert all(run.state in ("done", "stopped") for run in runs.all)
    dirty = [why for run in runs.all if run.state == "done" and (why := unfit(run))]
    assert bool(dirty) == (study in DIRTY)
    said = f"{len(dirty)} of the {len(runs.all)} runs of the archive were trained by code with uncommitted changes"
    assert not dirty or said in (PUBLISHED / f"{study}.md").read_text()
    counted = re.findall(r"So far there are (\d+) runs", (PUBLISHED / f"{study}.md").read_text())
    assert counted == [str(sum(run.state == "done" for run in runs.all))] * len(counted)
    page = tmp_path / f"{study}.md"
    shutil.copy(PUBLISHED / page.name, page)
    update_page(page, section.groups(runs), section.claims(runs))
    written = [page, *tmp_path.glob("*.svg"), *tmp_path.glob("*.csv")]
    assert {path.name: path.read_text() for path in written} == {
        path.name: (PUBLISHED / path.name).read_text() for path in written
    }


def _run(folder, seed, commit="c0ffee", done=True):
    run = SYNTHETIC.run(SYNTHETIC.configure(estimator="linear", seed=seed), folder)
    run.start()
    run.write_curve([{"step": 100, "accuracy": 60.0}])
    if done:
        run.publish({"validation_accuracy": 60.0, "test_accuracy": 61.0 + seed, "commit": commit})
    return run


def test_an_archive_holds_what_is_done_and_the_checkpoints_of_what_is_not(tmp_path):
    folder = tmp_path / "runs"
    done, stopped = _run(folder, 0), _run(folder, 1, done=False)
    (done.path / "checkpoint.pt").write_text("parameters of a finished model are not kept")
    Group((stopped,)).save({"trainer": {}, "seconds": 1.0})
    other = find_task("planted")
    run = other.run(other.configure(estimator="gold"), folder)
    run.start()
    run.publish({"validation_accuracy": 1.0})
    page = tmp_path / "synthetic.md"
    assert pack(Runs(folder), ["synthetic"], archive_of(page)) == 1
    found = unpack(archive_of(page), tmp_path / "there")
    assert {each.id: each.state for each in found.all} == {done.id: "done", stopped.id: "stopped"}
    (kept,) = [each for each in found.all if each.state == "done"]
    assert kept.metrics["test_accuracy"] == 61.0
    assert kept.curve() == [{"step": 100, "accuracy": 60.0}]
    with tarfile.open(archive_of(page)) as archive:
        names = {Path(name) for name in archive.getnames()}
    work = Path("runs") / Group((stopped,)).path.relative_to(folder)
    mine = {Path("runs") / stopped.id / name for name in DONE[:2]}
    assert names == {*(Path("runs") / done.id / name for name in DONE), *(work / name for name in INTERRUPTED), *mine}
    before = archive_of(page).read_bytes()
    pack(Runs(tmp_path / "there" / "runs"), ["synthetic"], archive_of(page))
    assert archive_of(page).read_bytes() == before


@pytest.mark.parametrize("commit", ["c0ffee-dirty", None])
def test_runs_that_nobody_can_make_again_are_not_archived(commit, tmp_path):
    _run(tmp_path / "runs", 0, commit)
    archive = tmp_path / "runs-synthetic.tar.xz"
    with pytest.raises(ValueError, match="archives hold runs of clean commits; train these again, or use --force"):
        pack(Runs(tmp_path / "runs"), ["synthetic"], archive)
    assert not archive.exists()
    assert pack(Runs(tmp_path / "runs"), ["synthetic"], archive, force=True) == 1
