"""What others leave in a folder of runs, and a disk that is full: a clear message, and the other runs go on."""

import errno
import json
import os
import pickle

import pytest
import torch

from fake import Config, Fake
from pullback_study import runs
from pullback_study.groups import Group
from pullback_study.runner import train
from pullback_study.status import list_runs

STUDY = Fake()
GOOD, BAD = Config("good"), Config("bad")


def test_a_full_disk_stops_one_run_and_leaves_no_half_file(tmp_path, monkeypatch):
    write = os.fsync
    bad = str(STUDY.run(BAD, tmp_path).path)

    def full(file):
        if os.readlink(f"/proc/self/fd/{file}").startswith((bad, str(Group((STUDY.run(BAD, tmp_path),)).path))):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        write(file)

    with monkeypatch.context() as patch:
        patch.setattr("os.fsync", full)
        outcome = train(STUDY, [BAD, GOOD], tmp_path, checkpoint_seconds=0.0)
    assert outcome.trained == 1
    assert outcome.failed == [
        f"bad 0: no space left on the disk of {tmp_path}/; free some, and run the same command again"
    ]
    for path in tmp_path.rglob("*.json"):
        json.loads(path.read_text())
    assert not [path for path in tmp_path.rglob(".*") if path.is_file() and path.name != ".index.json"]
    assert train(STUDY, [BAD, GOOD], tmp_path).trained == 1


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda path: path.write_text("a file"), "is not a folder"),
        (lambda path: (path.mkdir(), (path / "config.json").write_text("{half")), "cannot be read"),
        (lambda path: (path.mkdir(), (path / "config.json").write_text("{}")), "is not the config of this run"),
        (lambda path: (path.mkdir(), (path / "result.json").write_text("[]")), "holds no result"),
        (lambda path: (path.mkdir(), (path / "result.json").write_bytes(b"\xff")), "cannot be read"),
    ],
)
def test_a_directory_that_cannot_be_used(damage, said, tmp_path):
    damage(STUDY.run(BAD, tmp_path).path)
    outcome = train(STUDY, [BAD, GOOD], tmp_path)
    assert outcome.trained == 1
    (problem,) = outcome.failed
    assert said in problem
    assert "delete it" in problem
    assert STUDY.run(GOOD, tmp_path).done
    list(list_runs(tmp_path))


class Bomb:
    """Executed by an unpickler that trusts what it reads."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


@pytest.mark.parametrize("kind", ["pickle", "torch", "half", "empty", "other"])
def test_a_checkpoint_is_data_and_never_executed(kind, tmp_path):
    group, trace = Group((STUDY.run(BAD, tmp_path),)), tmp_path / "executed"
    with group.claim():
        pass
    path = group.path / "checkpoint.pt"
    if kind == "pickle":
        path.write_bytes(pickle.dumps({"trainer": Bomb(trace)}, protocol=2))
    elif kind == "torch":
        torch.save({"trainer": Bomb(trace), "seconds": 0.0}, path)
    elif kind == "other":
        torch.save([1, 2], path)
    else:
        torch.save({"trainer": {"x": torch.zeros(100)}, "seconds": 0.0}, path)
        path.write_bytes(path.read_bytes()[: 0 if kind == "empty" else 200])
    outcome = train(STUDY, [BAD, GOOD], tmp_path)
    assert not trace.exists()
    assert outcome.trained == 1
    assert "is damaged, or holds more than tensors and plain values, and was not loaded" in outcome.failed[0]
    path.unlink()
    assert train(STUDY, [BAD], tmp_path).trained == 1


def test_nothing_else_in_the_package_unpickles():
    """Every `torch.load` is restricted to tensors and plain values, and nothing loads a pickle by other means."""
    folder = os.path.dirname(os.path.dirname(runs.__file__))
    for where, _, names in os.walk(folder):
        for name in names:
            if name.endswith(".py"):
                with open(os.path.join(where, name)) as file:
                    text = file.read()
                assert "pickle.load" not in text, name
                assert text.count("torch.load(") == text.count("weights_only=True"), name
                assert "allow_pickle=True" not in text, name


def test_an_older_version_is_another_run(tmp_path):
    old = runs.Run(tmp_path, STUDY.name, STUDY.version - 1, GOOD)
    old.start()
    old.publish({"test_accuracy": 0.0})
    assert train(STUDY, [GOOD], tmp_path).trained == 1
    assert sorted(run.version for run in list_runs(tmp_path)) == [0, 1]
