"""Checkpoints at the ends of epochs: long before the time for one has come, and not at all of them if they are short."""

import itertools
import time

import pytest

from fake import Config, Fake, FakeTrainer
from pullback_study import training
from pullback_study.groups import Group
from pullback_study.runner import train


class Epochs(FakeTrainer):
    """Ten steps are an epoch."""

    def advance(self, until, stop):
        super().advance(until, stop)
        self.epochs = len(self.rows)


class Study(Fake):
    def trainer(self, configs, device):
        return Epochs(configs)


@pytest.fixture
def saves(monkeypatch):
    """When checkpoints were saved, and the steps they hold."""
    found = []
    save = Group.save

    def note(group, state, lease):
        save(group, state, lease)
        assert len(group.runs[0].metrics) <= state["trainer"]["step"] // 10
        found.append((time.perf_counter(), state["trainer"]["step"]))

    monkeypatch.setattr(Group, "save", note)
    return found


def trained(study, root, **options):
    assert train(study, [Config("epochs", **options)], root, checkpoint_seconds=1000.0).complete


def test_an_epoch_is_saved_when_it_ends(saves, tmp_path, monkeypatch):
    monkeypatch.setattr(training, "_EPOCH_SECONDS", 0.0)
    trained(Study(), tmp_path, steps=40)
    epochs = [step // 10 for _, step in saves]
    assert len(epochs) > 1
    assert epochs == sorted(set(epochs))
    assert epochs[-1] == 4


def test_of_short_epochs_one_a_second_is_saved(saves, tmp_path, monkeypatch):
    monkeypatch.setattr(training, "_EPOCH_SECONDS", 0.2)
    trained(Study(), tmp_path, steps=150, pause=0.005)
    assert 1 <= len(saves) <= 5
    times = [when for when, _ in saves]
    assert all(later - earlier > 0.2 for earlier, later in itertools.pairwise(times))


def test_without_epochs_only_time_asks_for_a_checkpoint(saves, tmp_path, monkeypatch):
    monkeypatch.setattr(training, "_EPOCH_SECONDS", 0.0)
    trained(Fake(), tmp_path, steps=40)
    assert saves == []
