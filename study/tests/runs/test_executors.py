"""Executors: the numbers of one process, workers that are replaced, and sweeps that wait for each other."""

import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
import torch

from pullback_study.runs import list_runs
from pullback_study.runs.executor import Executor, Pool
from pullback_study.runs.run import Group
from pullback_study.runs.side_by_side import SideBySide, away
from pullback_study.runs.train import train
from pullback_study.runs.work import Ending, train_group
from pullback_study.tasks import TASKS, find_task
from runs.chaos import below
from runs.fake import FAKE, Config, FakeTrainer, Recorder, numbers


@pytest.fixture(autouse=True)
def path(monkeypatch):
    """Workers find the module of the fake task."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(Path(__file__).parents[1]), *sys.path]))


@pytest.mark.parametrize("executor", [Pool, SideBySide])
def test_several_at_a_time_give_the_numbers_of_one(executor, tmp_path):
    configs = [Config(name="pool", seed=seed, members=2) for seed in range(6)]
    assert train(FAKE, configs, tmp_path / "alone").complete
    outcome = train(FAKE, configs, tmp_path / "pool", executor=executor(2))
    assert (outcome.trained, outcome.complete) == (6, True)
    assert numbers(configs, tmp_path / "pool") == numbers(configs, tmp_path / "alone")


@pytest.mark.parametrize("name", TASKS)
def test_every_task_can_be_sent_to_a_worker(name):
    task = find_task(name)
    assert pickle.loads(pickle.dumps(task)) == task


def test_side_by_side_one_computes_while_others_are_away(tmp_path, monkeypatch):
    computing, waiting, most = [], [], []

    def advance(trainer, until, stop):
        computing.append(trainer)
        assert computing == [trainer]
        time.sleep(0.001)
        computing.remove(trainer)
        waiting.append(trainer)
        with away():
            time.sleep(0.01)
            most.append(len(waiting))
        waiting.remove(trainer)
        trainer.step = until

    monkeypatch.setattr(FakeTrainer, "advance", advance)
    configs = [Config(name="turns", seed=seed) for seed in range(4)]
    assert train(FAKE, configs, tmp_path, executor=SideBySide(3)).complete
    assert max(most) == 3


def test_side_by_side_what_finds_no_memory_resumes_with_fewer_at_a_time(tmp_path, monkeypatch):
    """There is room for two trainers; alone, one that always fails is reported, and the others go on."""
    holding = set()

    def advance(trainer, until, stop):
        holding.add(trainer)
        if len(holding) > 2 or trainer.configs[0].name == "huge":
            holding.remove(trainer)
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")
        with away():
            time.sleep(0.01)
        trainer.step = until
        if until == trainer.steps:
            holding.remove(trainer)

    monkeypatch.setattr(FakeTrainer, "advance", advance)
    configs = [Config(name="room", seed=seed) for seed in range(6)]
    report = Recorder()
    assert train(FAKE, configs, tmp_path, executor=SideBySide(4), report=report).complete
    assert "the memory of the GPU is full; it resumes later, with at most 2 at a time (--streams 2)" in report.said
    assert {run.state for run in list_runs(tmp_path)} == {"done"}
    outcome = train(FAKE, [Config(name="huge"), Config(name="fine")], tmp_path, executor=SideBySide(2))
    assert outcome.trained == 1
    assert outcome.failed == ["huge 0: OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."]


def test_side_by_side_a_gpu_without_room_for_a_stream_is_a_failure_and_no_endless_wait(tmp_path, monkeypatch):
    def no_stream():
        raise RuntimeError("CUDA error: out of memory")

    monkeypatch.setattr(torch.cuda, "Stream", no_stream)
    report = Recorder()
    outcome = train(FAKE, [Config(name="none")], tmp_path, device="cuda", executor=SideBySide(2), report=report)
    assert "the memory of the GPU is full; it resumes later, with at most 1 at a time (--streams 1)" in report.said
    assert outcome.failed == ["none 0: RuntimeError: CUDA error: out of memory"]


class Assassin(Recorder):
    """Kills one worker, once a group has a checkpoint."""

    def __init__(self, folder):
        super().__init__()
        self.folder, self.killed = folder, []

    def at(self, group, event):
        super().at(group, event)
        workers = [pid for pid in below(os.getpid()) if "spawn_main" in Path(f"/proc/{pid}/cmdline").read_text()]
        if not self.killed and event.step > 20 and workers and list(self.folder.glob(".work/*/checkpoint.pt")):
            self.killed.append(workers[0])
            os.kill(workers[0], signal.SIGKILL)


def test_a_worker_that_is_killed_is_replaced_and_its_run_resumes(tmp_path):
    configs = [Config(name="kill", seed=seed, steps=150, pause=0.01) for seed in range(2)]
    report = Assassin(tmp_path / "runs")
    outcome = train(FAKE, configs, tmp_path / "runs", executor=Pool(2), report=report, checkpoint_seconds=0.0)
    assert outcome.complete
    assert report.killed
    assert report.said == ["its worker died (killed by SIGKILL); it resumes from its last checkpoint"]
    quick = [Config(name="kill", seed=seed, steps=150) for seed in range(2)]
    train(FAKE, quick, tmp_path / "alone")
    assert numbers(configs, tmp_path / "runs") == numbers(quick, tmp_path / "alone")


class Doomed(Executor):
    def run(self, jobs, tell, stopped):
        for number, job in enumerate(jobs):
            doomed = job.configs[0].name == "doomed"
            yield number, Ending("died", "the ceiling") if doomed else train_group(job, lambda event: None, stopped)


def test_a_group_whose_workers_always_die_is_given_up(tmp_path):
    outcome = train(FAKE, [Config(name="doomed"), Config(name="fine")], tmp_path, executor=Doomed())
    assert outcome.trained == 1
    assert outcome.failed == ["doomed 0: its worker died 5 times (the ceiling); is there enough memory?"]
    assert {run.state for run in list_runs(tmp_path)} == {"failed", "done"}


def test_a_sweep_waits_for_another_and_trains_the_rest(tmp_path):
    """Another process trains two of four runs, in a group of its own: nothing is trained twice."""
    *configs, foreign = (Config(name="shared", seed=seed, steps=60, members=4) for seed in range(5))
    others = Group(tuple(FAKE.run(config, tmp_path) for config in (*configs[:2], foreign)))
    claimed = threading.Event()

    def other():
        with others.claimed():
            claimed.set()
            time.sleep(1.5)
            for run in others.runs:
                run.start()
                run.publish({"by": "another"})

    thread = threading.Thread(target=other)
    thread.start()
    claimed.wait()
    assert train(FAKE, configs, tmp_path).busy == 4
    report = Recorder()
    outcome = train(FAKE, configs, tmp_path, report=report, wait=True)
    thread.join()
    assert outcome.complete
    assert outcome.trained == 2
    assert report.planned[0] == ("shared 0, 1, 2, 3", 4)
    assert set(report.said) == {"another process trains it; waiting"}
    assert [FAKE.run(config, tmp_path).result.get("by") for config in configs] == ["another"] * 2 + [None] * 2


PROGRAM = """
import sys
from pathlib import Path
from pullback_study.runs.train import train
from pullback_study.runs.executor import Pool
from pullback_study.runs.side_by_side import SideBySide
from runs.fake import FAKE, Config
configs = [Config(name="stop", seed=seed, steps=100_000, pause=0.01) for seed in range(2)]
executors = {"pool": Pool, "threads": SideBySide}
outcome = train(FAKE, configs, Path(sys.argv[1]), executor=executors[sys.argv[2]](2) if sys.argv[2] in executors else None)
sys.exit(3 if outcome.interrupted else 0)
"""


@pytest.mark.parametrize("where", ["pool", "threads", "here"])
def test_ctrl_c_is_acknowledged_and_everything_is_saved(where, tmp_path):
    command = [sys.executable, "-c", PROGRAM, str(tmp_path), where]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    started, deadline = 2 if where == "pool" else 1, time.monotonic() + 60
    while len(list(tmp_path.glob("*/config.json"))) < started:
        assert time.monotonic() < deadline
        assert process.poll() is None
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 3
    assert "Stopping: saving checkpoints" in said
    assert [run.state for run in list_runs(tmp_path)] == ["stopped"] * started
    assert len(list(tmp_path.glob(".work/*/checkpoint.pt"))) == started


def test_ctrl_c_is_acknowledged_while_nothing_returns_to_python():
    """As in a compiler: the acknowledgement does not wait for the call to end."""
    program = (
        "import ctypes; from pullback_study.runs.train import interruptible\n"
        "with interruptible() as stopped:\n"
        "    print('ready', flush=True); left = ctypes.CDLL(None).sleep\n"
        "    import time; end = time.monotonic() + 5\n"
        "    while time.monotonic() < end: ctypes.CDLL(None).usleep(5_000_000 - 1)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "ready\n"
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    assert process.stderr.readline() == "\n"
    assert process.stderr.readline().startswith("Stopping")
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=30) == 128 + signal.SIGINT
