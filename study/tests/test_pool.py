"""A pool of worker processes: its workers and its parent may die, and nothing is lost but the work since a checkpoint."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
import torch

from fake import Config, Fake
from pullback_study import processes
from pullback_study.groups import Group
from pullback_study.outcome import Report
from pullback_study.runner import train
from pullback_study.status import list_runs
from pullback_study.sweep.pool import Pool
from pullback_study.workers import Died, ThisProcess

SECONDS = 60
PROGRAM = """
import sys
from pathlib import Path
from test_pool import long
from fake import Fake
from pullback_study.runner import train
from pullback_study.sweep.pool import Pool
if __name__ == "__main__":
    outcome = train(Fake(), long(), Path(sys.argv[1]), workers=Pool(2), checkpoint_seconds=0.1)
    sys.exit(3 if outcome.interrupted else 0)
"""


def long():
    return [Config("long", seed=seed, steps=300) for seed in range(2)]


def held(root):
    """The processes that train now, by their leases."""
    return [int(path.name.split(".")[3]) for path in root.glob("groups/*/held.*")]


class Recorder(Report):
    def __init__(self, act=lambda group, step: None):
        self.act, self.said, self.begun, self.ended = act, [], [], []

    def begin(self, group, step, steps):
        self.begun.append((group, step))

    def at(self, group, step, latest):
        self.act(group, step)

    def end(self, group, status, message):
        self.ended.append(status)

    def say(self, group, message):
        self.said.append(message)


def test_workers_die_and_fail_and_the_others_go_on(tmp_path):
    """Three kinds of groups in one pool: one whose worker is killed, one that fails, and ordinary ones."""
    victim = [Config("a victim", steps=200, pause=0.01)]
    broken = [Config("broken", steps=20, trouble="it is what it is")]
    configs = [*victim, *broken, *(Config("fine", seed=seed, steps=20) for seed in range(4))]
    killed = []

    def kill(group, step):
        path = Fake().run(victim[0], tmp_path).hash
        if not killed and step > 20 and list(tmp_path.glob(f"{path}/metrics.jsonl")):
            killed.extend(pid for pid in held(tmp_path) if processes.start_of(pid))
            for pid in killed:
                os.kill(pid, signal.SIGKILL)

    report = Recorder(kill)
    outcome = train(Fake(), configs, tmp_path, workers=Pool(2), report=report, checkpoint_seconds=0.0)
    assert killed
    assert any("its worker died (killed by SIGKILL)" in message for message in report.said)
    assert any(step > 0 for _, step in report.begun), "it did not go on from its checkpoint"
    assert outcome.trained == 5
    assert outcome.failed == ["broken 0: RuntimeError: it is what it is"]
    assert report.ended.count("failed") == 1
    error = Fake().run(broken[0], tmp_path).error
    assert error["error"] == "RuntimeError: it is what it is"
    assert "in advance" in error["traceback"]
    train(Fake(), [Config("a victim", steps=200)], tmp_path / "alone")
    found, expected = Fake().run(victim[0], tmp_path), Fake().run(Config("a victim", steps=200), tmp_path / "alone")
    assert found.metrics == expected.metrics
    assert found.result["threads"] == max(1, processes.cores() // 2)


@pytest.mark.parametrize(("how", "code"), [(signal.SIGINT, 3), (signal.SIGKILL, -9)], ids=["Ctrl-C", "kill -9"])
def test_the_parent_stops_and_the_workers_save(how, code, tmp_path):
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent), "FAKE_PAUSE": "0.05"}
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)
    root = tmp_path / "runs"
    command = [sys.executable, str(script), str(root)]
    process = subprocess.Popen(command, env=environment, start_new_session=True)
    deadline = time.monotonic() + SECONDS
    while len(list(root.glob("groups/*/checkpoint.pt"))) < 2:
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.02)
    workers = held(root)
    began = time.monotonic()
    if how == signal.SIGINT:
        os.killpg(process.pid, how)  # as a terminal does
    else:
        process.send_signal(how)
    assert process.wait(SECONDS) == code
    while any(processes.start_of(pid) for pid in workers):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert time.monotonic() - began < 20
    assert {run.status for run in list_runs(root)} == {"killed"}
    assert all(path.name.startswith("free.") for path in root.glob("groups/*/*.*/") if path.is_dir())
    steps = [torch.load(path, weights_only=True)["trainer"]["step"] for path in root.glob("groups/*/checkpoint.pt")]
    report = Recorder()
    assert train(Fake(), long(), root, report=report).trained == 2
    assert sorted(step for _, step in report.begun) == sorted(steps)
    train(Fake(), long(), tmp_path / "alone")
    for config in long():
        assert Fake().run(config, root).metrics == Fake().run(config, tmp_path / "alone").metrics


class Doomed(ThisProcess):
    def start(self, group, task):
        if task.configs[0].name == "doomed":
            self.tell(group, Died("the ceiling"))
        else:
            super().start(group, task)


def test_a_group_whose_workers_always_die_is_given_up(tmp_path, monkeypatch):
    monkeypatch.setattr("pullback_study.runner.ThisProcess", Doomed)
    outcome = train(Fake(), [Config("doomed"), Config("fine")], tmp_path)
    assert outcome.trained == 1
    assert outcome.failed == ["doomed 0: its worker died 3 times (the ceiling); is there enough memory?"]
    assert {run.status for run in list_runs(tmp_path)} == {"failed", "done"}


def test_a_sweep_waits_for_another_and_trains_the_rest(tmp_path):
    """Another process trains two of four runs, in a group of its own: it is waited for, and nothing is trained twice."""
    *configs, foreign = (Config("shared", seed=seed, steps=60, members=4) for seed in range(5))
    others = Group(tuple(Fake().run(config, tmp_path) for config in (*configs[:2], foreign)))
    claimed, trained = threading.Event(), []

    def other():
        with others.claim() as lease:
            claimed.set()
            time.sleep(2.0)
            for run in others.runs:
                run.start()
                run.publish({"by": "another"}, lease)
            others.remove()

    class Watching(Recorder):
        def plan(self, groups):
            trained.extend(groups[len(trained) :])

    thread = threading.Thread(target=other)
    thread.start()
    claimed.wait()
    assert train(Fake(), configs, tmp_path).busy == 4
    report = Watching()
    outcome = train(Fake(), configs, tmp_path, report=report, wait=True)
    thread.join()
    assert outcome.complete
    assert outcome.trained == 2
    assert (trained[0], trained[-1]) == (("shared 0, 1, 2, 3", 4), ("shared 2, 3", 2))
    assert set(report.said) == {"another process trains it; waiting"}
    assert os.listdir(tmp_path / "groups") == []
    assert [Fake().run(config, tmp_path).result.get("by") for config in configs] == ["another"] * 2 + [None] * 2
