"""Runs on disk: killed and resumed, parsed with, and made from the command line."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from pullback_study.cli import app
from pullback_study.runs import read_run
from pullback_study.runs.run import Group
from pullback_study.runs.train import train
from pullback_study.tasks import find_task
from pullback_study.tasks.latent.trainer import LatentTrainer
from pullback_study.trees.parser import load_parser
from text.small import DIMENSION, EXAMPLE, config, write
from text.test_trainer import without_times

SECONDS = 600  # kernels may have to be compiled first
PROGRAM = """
import sys
from pathlib import Path
from text.test_runs import killed_config
from pullback_study.runs.train import train
from pullback_study.tasks import find_task
import torch
torch.set_num_threads(1)
train(find_task("sst", Path(sys.argv[1])), [killed_config()], Path(sys.argv[2]), checkpoint_seconds=0.0)
"""


def killed_config():
    return config("sst", "perturb-and-map", epochs=20, vectors="tiny")


@pytest.fixture
def data(tmp_path, own_cache):
    return write(tmp_path / "data")


def done(study, settings, root):
    outcome = train(study, [settings], root)
    assert outcome.complete, outcome.failed
    return study.run(settings, root)


def test_killed_and_resumed_it_ends_with_the_same_numbers(data, tmp_path):
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        study, killed = find_task("sst", data), tmp_path / "killed"
        env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[1]), *sys.path])}
        process = subprocess.Popen([sys.executable, "-c", PROGRAM, str(data), str(killed)], env=env)
        deadline = time.monotonic() + SECONDS
        while not list(killed.glob(".work/*/checkpoint.pt")):
            assert process.poll() is None, "it ended before it could be killed"
            assert time.monotonic() < deadline
            time.sleep(0.005)
        process.send_signal(signal.SIGKILL)
        assert process.wait(SECONDS) == -signal.SIGKILL
        assert not study.run(killed_config(), killed).done
        resumed = done(study, killed_config(), killed)
        whole = done(study, killed_config(), tmp_path / "whole")
    finally:
        torch.set_num_threads(threads)
    timed = ("seconds_of_group", "data")
    results = [
        {name: value for name, value in without_times([run.result])[0].items() if name not in timed} for run in (whole, resumed)
    ]
    assert results[0] == results[1]
    assert without_times(read_run(whole.path).curve()) == without_times(read_run(resumed.path).curve())
    expected, found = (torch.load(run.path / "checkpoint.pt", weights_only=True) for run in (whole, resumed))
    assert all(torch.equal(expected[name], found[name]) for name in expected)


@pytest.mark.parametrize(("task", "estimator"), [("sst", "marginals"), ("snli", "ste-s")])
def test_a_trained_run_parses(task, estimator, data, tmp_path):
    run = done(find_task(task, data), config(task, estimator), tmp_path / "runs")
    parser = load_parser(run.path, data)
    assert (parser.task, parser.estimator) == (task, estimator)
    long, short, unknown = parser.parse([EXAMPLE, ("taut",), ("never", "seen")])
    assert (len(long.heads), short.heads, len(unknown.heads)) == (7, (0,), 2)
    assert long.mu.shape == (7, 7)
    np.testing.assert_allclose(long.mu.sum(0), 1.0, rtol=1e-5)
    if task == "sst":
        assert list(long.heads) == run.result["example_heads"]
        assert long.label in ("negative", "positive")
    else:
        assert set(np.unique(long.mu)) == {0.0, 1.0}
    assert run.result["data"]["dimension"] == DIMENSION
    with pytest.raises(ValueError, match="sentence 2 has no words"):
        parser.parse([("A",), ()])


def test_what_is_no_parser_is_refused(data, tmp_path):
    with pytest.raises(ValueError, match=r"No such file.*config\.json"):
        load_parser(tmp_path, data)
    baseline = done(find_task("sst", data), config("sst", "baseline", vectors="tiny", epochs=1), tmp_path / "runs")
    with pytest.raises(ValueError, match="baseline, which has no latent trees"):
        load_parser(baseline.path, data)


def edited(path, **fields):
    path.write_text(json.dumps({**json.loads(path.read_text()), **fields}))


DAMAGES = {
    "no parameters": (lambda run: (run / "checkpoint.pt").unlink(), r"No such file.*checkpoint\.pt"),
    "half of them": (
        lambda run: (run / "checkpoint.pt").write_bytes((run / "checkpoint.pt").read_bytes()[:1000]), "does not hold",
    ),
    "others": (lambda run: torch.save({"x": torch.ones(1)}, run / "checkpoint.pt"), "does not hold"),
    "no tensors": (lambda run: torch.save([1], run / "checkpoint.pt"), "does not hold"),
    "a field too many": (lambda run: edited(run / "config.json", config={"new": 1}), "no latent trees"),
    "a list": (lambda run: (run / "config.json").write_text("[]"), r"config\.json is not a JSON object"),
    "half a config": (lambda run: (run / "config.json").write_text("{"), r"config\.json is not JSON"),
    "half a result": (lambda run: (run / "result.json").write_text('{"data"'), r"result\.json is not JSON"),
    "no dimension": (lambda run: edited(run / "result.json", data=None), "does not hold"),
}  # fmt: skip


def test_a_damaged_run_is_refused_with_its_name(data, tmp_path):
    whole = done(find_task("sst", data), config("sst", "marginals", vectors="tiny", epochs=1), tmp_path / "runs").path
    for name, (damage, said) in DAMAGES.items():
        run = shutil.copytree(whole, tmp_path / name)
        damage(run)
        with pytest.raises(ValueError, match=said) as caught:
            load_parser(run, data)
        assert str(run) in str(caught.value)
        result = CliRunner().invoke(app, ["trees", "--run", str(run), "--paper", "--data", str(data)])
        assert result.exit_code == 2, result.output


@pytest.mark.parametrize("form", ["npz", "txt"])
def test_vectors_of_another_dimension_are_refused(form, data, tmp_path):
    run = done(find_task("sst", data), config("sst", "marginals", vectors="tiny", epochs=1), tmp_path / "runs").path
    (data / "vectors" / "tiny.npz").unlink()
    if form == "npz":
        np.savez(data / "vectors" / "tiny.npz", words=np.array(["taut"]), vectors=np.ones((1, 4)))
    else:
        (data / "vectors" / "tiny.txt").write_text("taut 1 2 3 4\n")
    for command in (["parse", "--run", str(run), "taut"], ["trees", "--run", str(run), "--paper"]):
        result = CliRunner().invoke(app, [*command, "--data", str(data)])
        assert result.exit_code == 2, result.output
        said = " ".join(result.output.split())
        assert "have 4 dimensions" in said
        assert f"the run was trained with {DIMENSION}" in said


def test_a_run_on_other_training_data_is_refused(data, tmp_path):
    settings = config("snli", "baseline", data="snli_1.0_train.first100k")
    with pytest.raises(ValueError, match="the training data in"):
        train(find_task("snli", data), [settings], tmp_path / "runs")
    assert not (tmp_path / "runs").exists()


def test_a_result_on_other_data_is_no_answer(data, tmp_path):
    settings = config("sst", "baseline", vectors="tiny", epochs=1)
    run = done(find_task("sst", data), settings, tmp_path / "runs")
    assert train(find_task("sst", data), [settings], tmp_path / "runs").skipped == 1
    other = write(tmp_path / "other", examples=50)
    outcome = train(find_task("sst", other), [settings], tmp_path / "runs")
    (problem,) = outcome.failed
    assert str(run.path) in problem
    assert str(other / "sst" / "train.txt") in problem
    assert "--runs" in problem
    (other / "sst" / "dev.txt").unlink()  # what is not there is not compared
    assert train(find_task("sst", other), [settings], tmp_path / "runs").complete
    result = run.result
    del result["data"]["checksums"]
    (run.path / "result.json").write_text(json.dumps(result))
    assert train(find_task("sst", write(other, examples=50)), [settings], tmp_path / "runs").complete


def test_a_checkpoint_of_other_data_is_not_gone_on_from(data, own_cache, tmp_path, monkeypatch):
    settings, root = config("sst", "baseline", vectors="tiny", epochs=4), tmp_path / "runs"
    group = Group((find_task("sst", data).run(settings, root),))
    monkeypatch.setattr(LatentTrainer, "results", lambda trainer: 1 / 0)
    assert train(find_task("sst", data), [settings], root, checkpoint_seconds=0.0).failed
    monkeypatch.undo()
    monkeypatch.setenv("PULLBACK_CACHE", str(own_cache))
    other = write(tmp_path / "other", examples=50)
    (problem,) = train(find_task("sst", other), [settings], root).failed
    assert str(group.checkpoint) in problem
    assert str(group.runs[0].path) in problem
    assert str(other / "sst" / "train.txt") in problem
    checkpoint = torch.load(group.checkpoint, weights_only=True)
    del checkpoint["checksums"]  # as they were before
    torch.save(checkpoint, group.checkpoint)
    assert train(find_task("sst", other), [settings], root).complete


def test_commands(data, tmp_path, monkeypatch):
    monkeypatch.setenv("PULLBACK_DATA", str(data))
    runs, invoke = str(tmp_path / "runs"), CliRunner().invoke
    common = ["--runs", runs, "--device", "cpu", "--vectors", "tiny"]
    trained = invoke(app, ["train", "sst", "--estimator", "baseline", "--epochs", "1", "--seed", "3", *common])
    assert trained.exit_code == 0, trained.output
    assert "seed 3: validation accuracy" in trained.stdout
    table = ["reproduce", "table2", "--only", "marginals", "--epochs", "1", "--seed", "0", "--markdown", *common]
    made = invoke(app, table)
    assert made.exit_code == 0, made.output
    assert "tiny" in made.stdout
    assert "84.43" in made.stdout
    assert "0 trained, 1 already done" in invoke(app, table).stderr
    searched = invoke(app, [*table[:3], "spigot", *table[4:], "--search"])
    assert searched.exit_code == 0, searched.output
    assert "3 trained, 0 already done" in searched.stderr
    stepped = invoke(app, ["reproduce", "steps", "--task", "sst", "--quick", "--markdown", *common])
    assert stepped.exit_code == 0, stepped.output
    assert "Traceback" not in stepped.output
    write(data, examples=50)
    stale = invoke(app, ["train", "sst", "--estimator", "baseline", "--epochs", "1", "--seed", "3", *common])
    assert stale.exit_code == 1
    assert "validation accuracy" not in stale.output
    assert "train.txt has changed since" in stale.output
    wrong = invoke(app, ["train", "sst", "--estimator", "spiggot", *common])
    assert wrong.exit_code == 2
    assert "did you mean 'spigot'?" in wrong.output


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--vectors", "tinny"], "no vectors 'tinny'"),
        (["--data", "nowhere"], "nowhere is not a folder"),
    ],
)
def test_wrong_data_is_a_mistake_before_anything_is_written(options, said, data, tmp_path, monkeypatch):
    monkeypatch.setenv("PULLBACK_DATA", str(data))
    command = ["train", "sst", "--estimator", "baseline", "--runs", str(tmp_path / "runs"), "--device", "cpu"]
    result = CliRunner().invoke(app, [*command, *options])
    assert result.exit_code == 2
    assert said in " ".join(result.output.split())
    assert not (tmp_path / "runs").exists()
    (tmp_path / "sweep.toml").write_text('task = "sst"\n[fields]\nestimator = "baseline"\nvectors = "tinny"\n')
    planned = CliRunner().invoke(app, ["sweep", str(tmp_path / "sweep.toml"), "--dry-run"])
    assert planned.exit_code == 2
    assert "no vectors 'tinny'" in planned.output
    (data / "sst" / "dev.txt").unlink()
    missing = CliRunner().invoke(app, command)
    assert missing.exit_code == 2
    assert "no dev.txt" in missing.output
    assert not (tmp_path / "runs").exists()


def test_the_vectors_at_hand_are_taken_and_named(data, tmp_path, monkeypatch):
    monkeypatch.setenv("PULLBACK_DATA", str(data))
    runs = tmp_path / "runs"
    command = ["train", "sst", "--estimator", "baseline", "--epochs", "1", "--runs", str(runs), "--device", "cpu"]
    assert CliRunner().invoke(app, command).exit_code == 0
    (path,) = runs.glob("*/result.json")
    assert json.loads(path.read_text())["vectors"] == "tiny"
    assert json.loads((path.parent / "config.json").read_text())["config"]["vectors"] == "tiny"
