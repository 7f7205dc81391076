import dataclasses
import json

import pytest
import torch

from pullback_study.groups import Group, plan
from pullback_study.runner import train
from pullback_study.runs import Run, write_atomically
from pullback_study.status import list_runs
from pullback_study.synthetic.study import Synthetic
from small import small

STUDY = Synthetic()


def statuses(root):
    return sorted(run.status for run in list_runs(root))


def test_the_hash_is_of_the_config_and_of_the_version(tmp_path):
    one, same = (STUDY.run(small(seed=3), tmp_path).hash for _ in range(2))
    assert one == same
    assert one != STUDY.run(small(seed=4), tmp_path).hash
    assert one != Run(tmp_path, "synthetic", STUDY.version + 1, small(seed=3)).hash


def test_equal_runs_have_equal_configs():
    assert small("softmax") == small("marginals")
    with pytest.raises(ValueError, match="makes no inner steps"):
        small("softmax", step_size=1.0)


def test_a_run_leaves_what_it_promises(tmp_path):
    config = small(seed=0)
    outcome = train(STUDY, [config], tmp_path)
    run = STUDY.run(config, tmp_path)
    assert outcome.trained == 1
    assert outcome.complete
    files = {path.name for path in run.path.iterdir()}
    assert files == {"config.json", "metrics.jsonl", "result.json", "checkpoint.pt"}
    assert json.loads((run.path / "config.json").read_text())["config"] == dataclasses.asdict(config)
    assert [row["step"] for row in run.metrics] == [10, 20, 30, 40, 50]
    assert run.result["validation_accuracy"] == run.metrics[-1]["accuracy"]
    assert {"torch", "pullback", "commit", "device", "threads"} <= run.result.keys()
    assert set(torch.load(run.path / "checkpoint.pt", weights_only=True)) >= {"encoder.weight", "decoder.weight"}
    assert not list((tmp_path / "groups").iterdir())


def test_what_is_done_is_skipped(tmp_path):
    train(STUDY, [small(seed=0)], tmp_path)
    before = STUDY.run(small(seed=0), tmp_path).path.joinpath("result.json").stat().st_mtime_ns
    outcome = train(STUDY, [small(seed=0), small(seed=1)], tmp_path)
    assert (outcome.skipped, outcome.trained) == (1, 1)
    assert STUDY.run(small(seed=0), tmp_path).path.joinpath("result.json").stat().st_mtime_ns == before


def test_the_same_config_gives_the_same_numbers(tmp_path):
    configs = [small("perturb-and-map", seed=seed) for seed in (0, 1)]
    for folder in ("a", "b"):
        train(STUDY, configs, tmp_path / folder)
    for config in configs:
        assert STUDY.run(config, tmp_path / "a").metrics == STUDY.run(config, tmp_path / "b").metrics


def test_a_failure_is_kept_and_retried(tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(Synthetic, "trainer", lambda *args: 1 / 0)
        outcome = train(STUDY, [small()], tmp_path)
    assert outcome.failed == ["SPIGOT-CE, 4 clusters: ZeroDivisionError: division by zero"]
    assert statuses(tmp_path) == ["failed"]
    assert train(STUDY, [small()], tmp_path).trained == 1
    assert statuses(tmp_path) == ["done"]


def test_one_process_trains_a_group(tmp_path):
    (group,) = plan(STUDY, [small()], tmp_path)
    group.runs[0].start()
    with group.claim():
        assert statuses(tmp_path) == ["running"]
        outcome = train(STUDY, [small()], tmp_path)
        assert outcome.busy == 1
        assert not outcome.complete
    assert statuses(tmp_path) == ["killed"]


def test_groups_hold_all_that_differs_in_seed_rate_and_step_size(tmp_path):
    configs = [small(seed=s, learning_rate=r, step_size=e) for e in (1.0, 2.0) for s in (1, 0) for r in (0.1, 0.2)]
    (group,) = plan(STUDY, configs, tmp_path)
    assert [run.config.seed for run in group.runs] == [0] * 4 + [1] * 4
    assert group == plan(STUDY, configs[::-1], tmp_path)[0]
    ragged = STUDY.partition([*configs, small(seed=7)])
    assert sorted(map(len, ragged)) == [1, 8]
    assert len(STUDY.partition([small("spigot"), small("spigot-ce"), small("spigot", clusters=3)])) == 3


def test_an_interrupted_group_keeps_its_members(tmp_path):
    configs = [small(seed=seed) for seed in range(3)]
    (group,) = plan(STUDY, configs, tmp_path)
    with group.claim():
        pass
    group.runs[1].start()
    group.runs[1].publish({"validation_accuracy": 1.0})
    resumed = plan(STUDY, configs, tmp_path)
    assert resumed == [group]
    assert plan(STUDY, configs[:2], tmp_path) == [Group((group.runs[0],))]


def test_files_appear_complete_or_not_at_all(tmp_path, monkeypatch):
    path = tmp_path / "file"
    write_atomically(path, "old")
    monkeypatch.setattr("os.replace", lambda *args: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        write_atomically(path, "new")
    assert path.read_text() == "old"


def test_what_is_not_finite_becomes_null(tmp_path):
    run = STUDY.run(small(), tmp_path)
    run.publish({"loss": float("nan"), "values": [1.0, float("inf")]})
    assert run.result == {"loss": None, "values": [1.0, None]}


def test_event_files_on_request(tmp_path):
    pytest.importorskip("tensorboard")
    train(STUDY, [small()], tmp_path, tensorboard=True)
    assert list(STUDY.run(small(), tmp_path).path.glob("events.*"))
