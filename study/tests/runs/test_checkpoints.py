"""Checkpoints: when they are saved, and that only data is loaded from them."""

import itertools
import pickle
import time

import pytest
import torch

from pullback_study.runs import work
from pullback_study.runs.run import Group
from pullback_study.runs.train import train
from pullback_study.tasks import find_task
from runs.fake import FAKE, Config, Fake, FakeTrainer
from tasks.small import small


class Epochs(FakeTrainer):
    """Ten steps are an epoch."""

    def advance(self, until, stop):
        super().advance(until, stop)
        self.epochs = len(self.rows)


class WithEpochs(Fake):
    def trainer(self, configs, device):
        return Epochs(configs)


EPOCHS = WithEpochs(name="fake", title="Fake", config_type=Config, metrics=FAKE.metrics)


@pytest.fixture
def saves(monkeypatch):
    """When checkpoints were saved, and the steps they hold."""
    found = []
    save = Group.save

    def note(group, state):
        save(group, state)
        found.append((time.perf_counter(), state["trainer"]["step"]))

    monkeypatch.setattr(Group, "save", note)
    return found


def trained(task, folder, **options):
    assert train(task, [Config(name="epochs", **options)], folder, checkpoint_seconds=1000.0).complete


def test_an_epoch_is_saved_when_it_ends(saves, tmp_path, monkeypatch):
    monkeypatch.setattr(work, "_EPOCH_SECONDS", 0.0)
    trained(EPOCHS, tmp_path, steps=40)
    epochs = [step // 10 for _, step in saves]
    assert len(epochs) > 1
    assert epochs == sorted(set(epochs))


def test_of_short_epochs_one_per_second_is_saved(saves, tmp_path, monkeypatch):
    monkeypatch.setattr(work, "_EPOCH_SECONDS", 0.2)
    trained(EPOCHS, tmp_path, steps=150, pause=0.005)
    times = [when for when, _ in saves]
    assert len(times) >= 1
    assert all(later - earlier > 0.2 for earlier, later in itertools.pairwise(times))


def test_without_epochs_only_time_calls_for_a_checkpoint(saves, tmp_path, monkeypatch):
    monkeypatch.setattr(work, "_EPOCH_SECONDS", 0.0)
    trained(FAKE, tmp_path, steps=40)
    assert saves == []


def test_a_run_that_resumes_under_other_code_names_all_of_it(tmp_path, monkeypatch):
    job, ending = work.Job(FAKE, (Config(name="resumed", steps=600),), tmp_path), None
    codes = [{"device": "x", "threads": 1, "commit": name * 40, "torch": "2", "pullback": "1"} for name in "abb"]
    for code, until in zip(codes, (20, 100, 10**6), strict=True):
        monkeypatch.setattr(work, "provenance", lambda device, code=code: code)
        at = [0]
        ending = work.train_group(job, lambda event, at=at: at.append(event.step), lambda at=at, until=until: at[-1] >= until)
    assert ending.status == "done"
    both = [f"commit {name * 12}, torch 2, pullback 1" for name in "ab"]
    assert ending.message == f"done, by several versions of the code: {both[0]}; {both[1]}"
    result = job.group.runs[0].result
    assert result["commit"] == "b" * 40
    assert result["earlier"] == codes[:1]
    alone = work.Job(FAKE, (Config(name="fresh"),), tmp_path)
    assert work.train_group(alone, lambda event: None, lambda: False).message == "done"
    assert "earlier" not in alone.group.runs[0].result


class Planted:
    def __reduce__(self):
        return print, ("executed",)


@pytest.mark.parametrize("wrong", ["a name is missing", "other shapes"])
def test_a_checkpoint_that_does_not_fit_says_so(wrong, tmp_path):
    task, config = find_task("synthetic"), small("spigot")
    group = Group((task.run(config, tmp_path),))
    trainer = task.trainer([config], "cpu")
    state = trainer.state()
    if wrong == "a name is missing":
        del state["adam_mean"]
    else:
        state["parameters"] = torch.zeros(3, 4)
    group.save({"trainer": state, "seconds": 0.0, "checksums": {}})
    (problem,) = train(task, [config], tmp_path).failed
    assert f"{group.checkpoint}, the checkpoint of {group.runs[0].path}, does not fit these runs (" in problem
    assert "delete it to train them from the start" in problem
    group.checkpoint.unlink()
    assert train(task, [config], tmp_path).complete


@pytest.mark.parametrize("how", ["half", "code", "other"])
def test_a_checkpoint_is_data(how, tmp_path, capsys):
    config = Config(name="resumed")
    group = Group((FAKE.run(config, tmp_path),))
    group.save({"trainer": FakeTrainer([config]).state(), "seconds": 0.0})
    if how == "half":
        group.checkpoint.write_bytes(group.checkpoint.read_bytes()[:200])
    elif how == "code":
        group.checkpoint.write_bytes(pickle.dumps(Planted()))
    else:
        torch.save({"x": 1}, group.checkpoint)
    (problem,) = train(FAKE, [config], tmp_path).failed
    assert f"{group.checkpoint} is damaged" in problem
    assert "executed" not in capsys.readouterr().out
    group.checkpoint.unlink()
    assert train(FAKE, [config], tmp_path).complete
