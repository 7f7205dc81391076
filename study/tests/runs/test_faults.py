"""Kills, full disks, folders that cannot be written to, and what others leave in a folder of runs."""

import errno
import json
import os

import pytest

from pullback_study.runs import list_runs
from pullback_study.runs.run import Group
from pullback_study.runs.train import train
from runs import chaos
from runs.fake import FAKE, Config, Recorder

GOOD, BAD = Config(name="good"), Config(name="bad")


def test_every_run_exists_once_whatever_is_killed():
    """Six kills here; `python study/tests/runs/chaos.py --kills 100` for more."""
    told = chaos.check(runs=24, kills=6, seconds=240)
    assert "0 workers and 0 parents" not in told
    print(told)


def full_disk(monkeypatch, *folders):
    """No space left below these folders."""
    sync = os.fsync

    def full(file):
        if os.readlink(f"/proc/self/fd/{file}").startswith(tuple(map(str, folders))):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        sync(file)

    monkeypatch.setattr("os.fsync", full)


def test_a_full_disk_stops_one_run_and_leaves_no_half_file(tmp_path, monkeypatch):
    bad = FAKE.run(BAD, tmp_path)
    with monkeypatch.context() as patch:
        full_disk(patch, bad.path, Group((bad,)).path)
        outcome = train(FAKE, [BAD, GOOD], tmp_path, checkpoint_seconds=0.0)
    assert outcome.trained == 1
    assert outcome.failed == [f"bad 0: no space left on the disk of {tmp_path}/; free some, and run the same command again"]
    for path in tmp_path.rglob("*.json"):
        json.loads(path.read_text())
    assert not list(tmp_path.rglob("*.tmp"))
    assert train(FAKE, [BAD, GOOD], tmp_path).trained == 1


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda path: path.write_text("a file"), "File exists"),
        (lambda path: (path.mkdir(), (path / "config.json").write_text("{half")), "cannot be read"),
        (lambda path: (path.mkdir(), (path / "config.json").write_text("[" * 100_000)), "cannot be read"),
        (lambda path: (path.mkdir(), (path / "config.json").write_text("{}")), "is not the config of a run"),
        (lambda path: (path.mkdir(), (path / "result.json").write_text("[]")), "cannot be read"),
        (lambda path: (path.mkdir(), (path / "result.json").write_text('{"a":' * 100_000)), "cannot be read"),
        (lambda path: (path.mkdir(), (path / "result.json").write_bytes(b"\xff")), "cannot be read"),
        (lambda path: (path.mkdir(), os.mkfifo(path / "result.json")), "cannot be read"),
    ],
)
def test_a_directory_that_cannot_be_used(damage, said, tmp_path):
    damage(FAKE.run(BAD, tmp_path).path)
    outcome = train(FAKE, [BAD, GOOD], tmp_path)
    assert outcome.trained == 1
    (problem,) = outcome.failed
    assert said in problem
    assert str(FAKE.run(BAD, tmp_path).path) in problem


def cannot_write(path):
    """Whether the file system refuses, also to root: a file in the place of a folder does."""
    path.write_text("")
    return path


@pytest.mark.parametrize("where", ["file", "below a file"])
def test_a_folder_that_cannot_be_made_is_one_mistake(where, tmp_path):
    folder = cannot_write(tmp_path / "runs")
    report = Recorder()
    with pytest.raises(ValueError, match="--runs"):
        train(FAKE, [BAD, GOOD], folder if where == "file" else folder / "below", report=report)
    assert report.ended == []


def test_a_read_only_folder(tmp_path, monkeypatch):
    train(FAKE, [GOOD], tmp_path)
    monkeypatch.setattr("os.access", lambda path, mode: not mode & os.W_OK)
    assert train(FAKE, [GOOD], tmp_path).skipped == 1
    with pytest.raises(ValueError, match=f"{tmp_path} cannot be written to; choose another one"):
        train(FAKE, [GOOD, BAD], tmp_path)
    assert [run.state for run in list_runs(tmp_path)] == ["done"]


def test_missing_data_is_a_mistake_before_anything_is_written(tmp_path, monkeypatch):
    def missing(self, config):
        raise ValueError("no train.txt in data")

    monkeypatch.setattr(type(FAKE), "sources", missing)
    with pytest.raises(ValueError, match="no train"):
        train(FAKE, [GOOD], tmp_path / "runs")
    assert not (tmp_path / "runs").exists()
