"""Kill workers and whole sweeps at random while they train many tiny runs, and look at what is left.

    python study/tests/runs/chaos.py --kills 100

Two sweeps of the same runs share a folder; processes of both, parents and workers, get SIGKILL at random and are started
again. At the end every run exists exactly once, with the numbers of a sweep that nothing disturbed.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

HERE = Path(__file__).resolve()
sys.path.insert(0, str(HERE.parents[1]))

PROGRAM = """
import sys
from pathlib import Path
import torch
from runs.chaos import configs
from runs.fake import FAKE
from pullback_study.runs.train import train
from pullback_study.runs.executor import Pool
torch.set_num_threads(1)
wanted, folder, pool = configs(int(sys.argv[2]), 0.004), Path(sys.argv[1]), Pool(2)
outcome = train(FAKE, wanted, folder, executor=pool, wait=True, checkpoint_seconds=0.0)
sys.exit(0 if outcome.complete else f"{outcome}")
"""


def configs(count, pause):
    from runs.fake import Config

    return [Config(name="chaos", seed=seed, steps=60, pause=pause, members=2) for seed in range(count)]


def below(pid):
    """The processes that a process has started."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            if int(stat.read_text().rpartition(")")[2].split()[1]) == pid:
                found.append(int(stat.parent.name))
        except OSError:
            continue
    return found


class Sweep:
    """A sweep in a process of its own, which is started again when it is killed."""

    def __init__(self, folder, runs):
        self.arguments = [sys.executable, "-c", PROGRAM, str(folder), str(runs)]
        self.start()

    def start(self):
        paths = [str(HERE.parents[1]), str(HERE.parents[2]), *sys.path]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": "1"}
        self.process = subprocess.Popen(self.arguments, env=environment, start_new_session=True)

    def victims(self):
        return [self.process.pid, *below(self.process.pid)] if self.process.poll() is None else []


class Auditor(threading.Thread):
    """Reads the files of runs all the time: each is complete, and a result never changes."""

    def __init__(self, folder):
        super().__init__()
        self.folder, self.results, self.broken, self.ended, self.rounds = folder, {}, [], threading.Event(), 0

    def run(self):
        while not self.ended.wait(0.02):
            for path in (path for path in self.folder.glob("*/*.json*") if not path.name.startswith(".")):
                try:
                    content = path.read_text()
                    for line in [content] if path.suffix == ".json" else content.splitlines():
                        json.loads(line)
                    if path.name == "result.json" and self.results.setdefault(path, content) != content:
                        self.broken.append(f"{path} has changed")
                except FileNotFoundError:
                    continue
                except ValueError as error:
                    self.broken.append(f"{path}: {error}")
            self.rounds += 1


def disturb(folder, runs, kills, seed, seconds):
    """Run two sweeps, kill at random, and wait for their end; returns how many were killed: workers and parents."""
    chance, deadline = random.Random(seed), time.monotonic() + seconds
    sweeps = [Sweep(folder, runs), Sweep(folder, runs)]
    killed = {"workers": 0, "parents": 0}
    try:
        while sum(killed.values()) < kills and time.monotonic() < deadline:
            time.sleep(chance.uniform(0.05, 0.4))
            sweep = chance.choice(sweeps)
            victims = sweep.victims()
            if len(victims) < 2:  # it is starting, or done
                if sweep.process.poll() == 0 and all(each.process.poll() == 0 for each in sweeps):
                    break
                continue
            victim = chance.choice(victims)
            os.kill(victim, 9)
            killed["parents" if victim == sweep.process.pid else "workers"] += 1
            if victim == sweep.process.pid:
                sweep.process.wait()
                sweep.start()
        for sweep in sweeps:
            while sweep.process.wait(max(1.0, deadline - time.monotonic())) != 0:
                sweep.start()  # its workers were killed too often: what failed is tried again
    finally:
        for sweep in sweeps:
            for victim in sweep.victims()[::-1]:
                os.kill(victim, 9)
    return killed


def check(runs, kills, seed=0, seconds=600.0):
    """Raises `AssertionError` if a run is lost, doubled or different; returns a summary."""
    from pullback_study.runs import list_runs
    from pullback_study.runs.train import train
    from runs.fake import FAKE, numbers

    root = Path(tempfile.mkdtemp(prefix="chaos"))
    try:
        quiet, folder = configs(runs, 0.0), root / "disturbed"
        train(FAKE, quiet, root / "alone")
        folder.mkdir()
        auditor = Auditor(folder)
        auditor.start()
        try:
            killed = disturb(folder, runs, kills, seed, seconds)
        finally:
            auditor.ended.set()
            auditor.join()
        assert not auditor.broken, auditor.broken
        slow = configs(runs, 0.004)
        assert [run.state for run in list_runs(folder)] == ["done"] * runs
        assert numbers(slow, folder) == numbers(quiet, root / "alone")
        assert train(FAKE, slow, folder).skipped == runs
        left = [str(path) for path in (folder / ".work").glob("*/*")]
        assert left == [], left
        return f"{runs} runs, {killed['workers']} workers and {killed['parents']} parents killed: every run once, same numbers"
    finally:
        shutil.rmtree(root, ignore_errors=True)


def main():
    parser = argparse.ArgumentParser(description="Kill workers and sweeps at random.")
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--runs", type=int, default=0, help="default: two for each kill")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=3000.0)
    given = parser.parse_args()
    print(check(given.runs or 2 * given.kills, given.kills, given.seed, given.seconds))


if __name__ == "__main__":
    main()
