"""A run: its identity, its files, and that what is done is never trained again."""

import dataclasses
import json
import os
from pathlib import Path

import pytest
import torch

from pullback_study.runs import Run, list_runs, read_run, write_atomically
from pullback_study.runs.files import create_once
from pullback_study.runs.run import Group, plan
from pullback_study.runs.train import train
from pullback_study.tasks.schema import option
from runs.fake import FAKE, Config, Fake


def configs(count=2, **fields):
    return [Config(name="run", seed=seed, **fields) for seed in range(count)]


def states(folder):
    return [run.state for run in list_runs(folder)]


def test_the_identity_is_what_differs_from_the_defaults(tmp_path):
    run = FAKE.run(Config(name="a", rate=0.5, seed=3), tmp_path)
    assert run.identity == {"task": "fake", "version": 1, "config": {"name": "a", "seed": 3}}
    assert run.id == FAKE.run(Config(name="a", seed=3), tmp_path).id
    assert run.id != FAKE.run(Config(name="a", seed=4), tmp_path).id
    assert run.id != Run(tmp_path, "fake", 2, Config(name="a", seed=3)).id


def test_an_option_that_is_added_orphans_nothing(tmp_path):
    @dataclasses.dataclass(frozen=True)
    class Newer(Config):
        momentum: float = option(0.9, help="New.", positive=True)

    train(FAKE, configs(), tmp_path)
    newer = dataclasses.replace(FAKE, config_type=Newer)
    outcome = train(newer, [Newer(**dataclasses.asdict(config)) for config in configs()], tmp_path)
    assert (outcome.skipped, outcome.trained) == (2, 0)
    changed = train(newer, [Newer(**dataclasses.asdict(configs()[0]), momentum=0.5)], tmp_path)
    assert (changed.skipped, changed.trained) == (0, 1)


def test_a_run_leaves_what_it_promises(tmp_path):
    (config,) = configs(1)
    assert train(FAKE, [config], tmp_path).trained == 1
    run = FAKE.run(config, tmp_path)
    assert {path.name for path in run.path.iterdir()} == {"config.json", "metrics.jsonl", "result.json", "checkpoint.pt"}
    assert json.loads((run.path / "config.json").read_text())["config"] == dataclasses.asdict(config)
    assert [row["step"] for row in read_run(run.path).curve()] == [10, 20, 30, 40, 50]
    assert {"torch", "pullback", "commit", "device", "threads"} <= run.result.keys()
    assert torch.load(run.path / "checkpoint.pt", weights_only=True)["x"] == run.result["validation_accuracy"]


def test_a_result_is_created_once(tmp_path):
    run = FAKE.run(configs()[0], tmp_path)
    run.publish({"test_accuracy": 1.0})
    with pytest.raises(FileExistsError):
        run.publish({"test_accuracy": 2.0})
    assert run.result == {"test_accuracy": 1.0}
    assert [path.name for path in run.path.iterdir()] == ["result.json"]


def test_what_is_done_is_skipped(tmp_path):
    train(FAKE, configs(1), tmp_path)
    before = (FAKE.run(configs(1)[0], tmp_path).path / "result.json").stat().st_mtime_ns
    outcome = train(FAKE, configs(2), tmp_path)
    assert (outcome.skipped, outcome.trained) == (1, 1)
    assert (FAKE.run(configs(1)[0], tmp_path).path / "result.json").stat().st_mtime_ns == before


def test_a_failure_is_kept_and_retried(tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(Fake, "trainer", lambda *args: 1 / 0)
        outcome = train(FAKE, configs(1), tmp_path)
    assert outcome.failed == ["run 0: ZeroDivisionError: division by zero"]
    assert states(tmp_path) == ["failed"]
    assert train(FAKE, configs(1), tmp_path).trained == 1
    assert states(tmp_path) == ["done"]


def test_one_process_trains_a_run(tmp_path):
    (group,) = plan(FAKE, configs(1), tmp_path)
    with group.claimed():
        group.runs[0].start()
        assert states(tmp_path) == ["running"]
        outcome = train(FAKE, configs(1), tmp_path)
        assert outcome.busy == 1
        assert not outcome.complete
    assert states(tmp_path) == ["stopped"]


def test_an_interrupted_group_keeps_its_members(tmp_path):
    three = configs(3, members=3)
    (group,) = plan(FAKE, three, tmp_path)
    group.save({"trainer": {}, "seconds": 0.0})
    group.runs[1].publish({"validation_accuracy": 1.0})
    assert plan(FAKE, three, tmp_path) == [group]
    assert plan(FAKE, three[:2], tmp_path) == [Group((group.runs[0],))]
    for run in (group.runs[0], group.runs[2]):
        run.publish({"validation_accuracy": 1.0})
    assert plan(FAKE, three, tmp_path) == []
    assert not group.path.exists()


def test_killed_between_two_results_a_group_publishes_the_rest_with_the_same_numbers(tmp_path, monkeypatch):
    four = configs(4, members=4)
    train(FAKE, four, tmp_path / "whole")
    publish, published = Run.publish, []

    def once(run, result):
        if published:
            raise KeyboardInterrupt
        published.append(run)
        publish(run, result)

    with monkeypatch.context() as patch:
        patch.setattr(Run, "publish", once)
        with pytest.raises(KeyboardInterrupt):
            train(FAKE, four, tmp_path / "half")
    outcome = train(FAKE, four, tmp_path / "half")
    assert (outcome.skipped, outcome.trained) == (1, 3)
    for config in four:
        whole, half = (FAKE.run(config, tmp_path / name) for name in ("whole", "half"))
        assert read_run(whole.path).curve() == read_run(half.path).curve()
        assert whole.result["test_accuracy"] == half.result["test_accuracy"]


def test_files_appear_complete_or_not_at_all(tmp_path, monkeypatch):
    path = tmp_path / "file"
    write_atomically(path, "old")
    with pytest.raises(FileExistsError):
        create_once(path, "new")
    monkeypatch.setattr("os.replace", lambda *args: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        write_atomically(path, "new")
    assert path.read_text() == "old"


def test_links_and_pipes_stay_what_they_are(tmp_path):
    (tmp_path / "there").mkdir()
    for link, target in {"link": "there/file", "new": "there/missing"}.items():
        (tmp_path / link).symlink_to(target)
        write_atomically(tmp_path / link, link)
        assert (tmp_path / link).is_symlink()
        assert (tmp_path / target).read_text() == link
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    write_atomically(pipe, "content")
    assert os.read(reader, 100) == b"content"
    os.close(reader)
    assert pipe.is_fifo()
    for folder in (tmp_path, Path()):
        with pytest.raises(IsADirectoryError):
            write_atomically(folder, "content")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link", "new", "pipe", "there"]


def test_where_there_are_no_hard_links(tmp_path, monkeypatch):
    def refuse(*paths):
        raise PermissionError(1, "no links here")

    monkeypatch.setattr("os.link", refuse)
    create_once(tmp_path / "file", "first")
    with pytest.raises(FileExistsError):
        create_once(tmp_path / "file", "second")
    assert (tmp_path / "file").read_text() == "first"


def test_what_is_not_finite_becomes_null(tmp_path):
    run = FAKE.run(configs()[0], tmp_path)
    run.publish({"loss": float("nan"), "values": [1.0, float("inf")]})
    assert run.result == {"loss": None, "values": [1.0, None]}


def test_event_files_on_request(tmp_path):
    pytest.importorskip("tensorboard")
    train(FAKE, configs(1), tmp_path, tensorboard=True)
    assert list(FAKE.run(configs(1)[0], tmp_path).path.glob("events.*"))
