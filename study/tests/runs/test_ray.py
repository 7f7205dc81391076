"""A sweep on a Ray cluster of two nodes, one of which dies in the middle."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import pytest

from pullback_study.runs.train import train
from runs.chaos import below
from runs.fake import FAKE, Config, numbers

SECONDS = 120


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def children(pid):
    """A process and all below it."""
    found = [pid]
    for each in found:
        found += below(each)
    return found


class Node:
    """A node of a cluster: `ray start` with one core, and everything it starts."""

    def __init__(self, *arguments):
        command = [str(Path(sys.executable).with_name("ray")), "start", "--block", "--num-cpus=1", *arguments]
        paths = [str(Path(__file__).parents[1]), *(path for path in sys.path if path)]
        environment = {
            **os.environ, "PYTHONPATH": os.pathsep.join(paths), "RAY_worker_niceness": "0",
            "RAY_USAGE_STATS_ENABLED": "0", "OMP_NUM_THREADS": "1",
        }  # fmt: skip
        quiet = subprocess.DEVNULL
        self.process = subprocess.Popen(command, env=environment, stdout=quiet, stderr=quiet, start_new_session=True)

    def kill(self):
        for pid in children(self.process.pid)[::-1]:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        self.process.wait()


@pytest.fixture
def cluster():
    pytest.importorskip("ray", reason="Ray is not installed: pip install 'pullback-study[ray]'")
    folder, port = tempfile.mkdtemp(prefix="r"), free_port()
    here = "--node-ip-address=127.0.0.1"
    head = Node("--head", f"--port={port}", here, f"--temp-dir={folder}", "--include-dashboard=false")
    wait_for(lambda: answers(port), "the head")
    nodes = [head, Node(f"--address=127.0.0.1:{port}", here)]
    yield f"127.0.0.1:{port}", nodes
    for node in reversed(nodes):
        node.kill()
    shutil.rmtree(folder, ignore_errors=True)


def answers(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def wait_for(condition, what):
    deadline = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < deadline, f"{what} took too long"
        time.sleep(0.05)


class Assassin(threading.Thread):
    """Kills a node once one of its workers trains a run that has a checkpoint."""

    def __init__(self, folder, node):
        super().__init__(daemon=True)
        self.folder, self.node, self.killed = folder, node, []

    def run(self):
        while not self.killed:
            time.sleep(0.05)
            open_files = []
            for pid in children(self.node.process.pid):
                for link in Path(f"/proc/{pid}/fd").glob("*"):
                    try:
                        open_files.append(os.readlink(link))
                    except OSError:
                        continue
            held = [file for file in open_files if file.startswith(str(self.folder)) and file.endswith(".lock")]
            if held and list(self.folder.glob(".work/*/checkpoint.pt")):
                self.killed += held
                self.node.kill()


def test_a_node_dies_and_every_run_finishes_with_the_same_numbers(cluster, tmp_path):
    from pullback_study.runs.executor import RayTasks

    address, (_, second) = cluster
    configs = [Config(name="ray", seed=seed, steps=150, pause=0.02) for seed in range(6)]
    folder, alone = tmp_path / "cluster", tmp_path / "alone"
    quick = [Config(name="ray", seed=seed, steps=150) for seed in range(6)]
    train(FAKE, quick, alone)
    executor = RayTasks(address)
    wait_for(lambda: sum(node["Alive"] for node in executor._ray.nodes()) == 2, "the second node")
    assassin = Assassin(folder, second)
    assassin.start()
    outcome = train(FAKE, configs, folder, executor=executor, checkpoint_seconds=0.1, wait=True)
    assert assassin.killed, "no run was training on the second node"
    assert outcome.complete, outcome
    assert outcome.trained >= len(configs) - 1  # a result may have been published just before its node died
    assert numbers(configs, folder) == numbers(quick, alone)


def test_an_address_where_nobody_listens_is_a_mistake_not_a_wait():
    pytest.importorskip("ray", reason="Ray is not installed: pip install 'pullback-study[ray]'")
    from pullback_study.runs.executor import RayTasks

    with pytest.raises(ValueError, match="no Ray cluster answers there"):
        RayTasks(f"127.0.0.1:{free_port()}")
