"""Many processes race for the same runs and are killed, or put to sleep and woken, at random: nothing is lost."""

import contextlib
import json
import multiprocessing
import os
import random
import signal
import threading
import time
from pathlib import Path

import torch

from fake import Config, Fake
from pullback_study import leases
from pullback_study.leases import Terms
from pullback_study.runner import train
from pullback_study.runs import Run

RACERS, KILLS, NAPS, SECONDS = 8, 10, 6, 60
TERMS = Terms(heartbeat=0.1, expiry=1.0)
CONFIGS = [Config("race", seed=seed, steps=120, pause=0.005, members=2) for seed in range(20)]


def race(root, log):
    """A process of a sweep; it notes every result that it publishes."""
    torch.set_num_threads(1)
    publish = Run.publish

    def noted(run, result, files=None):
        publish(run, {**result, "by": os.getpid()}, files)
        with open(log, "a") as file:
            file.write(run.hash + "\n")

    Run.publish = noted
    outcome = train(Fake(), CONFIGS, root, checkpoint_seconds=0.0, wait=True, terms=TERMS)
    assert outcome.complete, outcome


def wake(pid):
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGCONT)


class Auditor(threading.Thread):
    """Reads every file all the time: each is complete, and a result never changes."""

    def __init__(self, root):
        super().__init__()
        self.root, self.results, self.broken, self.ended = root, {}, [], threading.Event()
        self.rounds = 0

    def run(self):
        while not self.ended.wait(0.01):
            for folder, _, names in os.walk(self.root):
                if not Path(folder).name.startswith(("held.", "free.", ".new-")):  # what is in the making is nobody's
                    for name in names:
                        self.check(Path(folder, name))
            self.rounds += 1

    def check(self, path):
        try:
            if path.suffix in (".json", ".jsonl"):
                content = path.read_text()
                _ = [json.loads(line) for line in ([content] if path.suffix == ".json" else content.splitlines())]
                if path.name == "result.json" and self.results.setdefault(path, content) != content:
                    self.broken.append(f"{path} has changed")
            elif path.name == "checkpoint.pt":
                torch.load(path, weights_only=True)
        except FileNotFoundError:
            pass
        except Exception as error:
            self.broken.append(f"{path}: {error}")


def test_every_run_is_published_once(tmp_path):
    alone, root, log = tmp_path / "alone", tmp_path / "race", tmp_path / "log"
    quick = [Config(**{**vars(config), "pause": 0.0}) for config in CONFIGS]
    train(Fake(), quick, alone)
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["fake", "pullback_study.runner"])

    def racer():
        process = context.Process(target=race, args=(root, log))
        process.start()
        return process

    chance = random.Random(0)
    racers = [racer() for _ in range(RACERS)]
    auditor = Auditor(root)
    auditor.start()
    killed = napped = 0
    try:
        deadline = time.monotonic() + SECONDS
        while not list(root.glob("groups/*/checkpoint.pt")):
            assert time.monotonic() < deadline
            time.sleep(0.01)
        while killed < KILLS or napped < NAPS:
            assert time.monotonic() < deadline
            victim = chance.randrange(RACERS)
            if not racers[victim].is_alive():
                break
            if killed < KILLS and chance.random() < 0.5:
                os.kill(racers[victim].pid, signal.SIGKILL)
                racers[victim].join()
                racers[victim] = racer()
                killed += 1
            elif napped < NAPS:
                os.kill(racers[victim].pid, signal.SIGSTOP)
                threading.Timer(2 * TERMS.expiry, wake, (racers[victim].pid,)).start()
                napped += 1
            time.sleep(0.15)
        for process in racers:
            process.join(max(0.0, deadline - time.monotonic()))
    finally:
        auditor.ended.set()
        auditor.join()
        for process in racers:
            process.kill()
    assert killed + napped > 5, "the race was over before it was disturbed"
    assert auditor.rounds > 10
    assert auditor.broken == []
    assert [process.exitcode for process in racers] == [0] * RACERS
    published = Path(log).read_text().split()
    assert len(published) == len(set(published)), "a run was published twice"
    for config, same in zip(CONFIGS, quick, strict=True):
        found, expected = Fake().run(config, root), Fake().run(same, alone)
        assert found.metrics == expected.metrics
        assert found.result["test_accuracy"] == expected.result["test_accuracy"]
        assert torch.load(found.path / "checkpoint.pt", weights_only=True)["x"] == -found.result["test_accuracy"]
        files = {path.name for path in found.path.iterdir()}
        assert files == {"config.json", "metrics.jsonl", "result.json", "checkpoint.pt"}
    assert train(Fake(), CONFIGS, root).skipped == len(CONFIGS)
    assert [path for path in (root / "groups").iterdir() if not path.name.startswith(leases.STAGED)] == []
    print(f"{len(CONFIGS)} runs, {killed} processes killed, {napped} put to sleep, 0 runs lost")
