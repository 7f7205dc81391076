"""A sweep on a Ray cluster of two nodes, one of which dies in the middle."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from fake import Config, Fake
from pullback_study.leases import Terms
from pullback_study.outcome import Report
from pullback_study.runner import train
from pullback_study.sweep.ray_cluster import RayCluster

SECONDS = 90


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def children(pid):
    """A process and all below it."""
    parents = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(stat.parent.name)] = int(stat.read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
    found = [pid]
    for each in found:
        found += [child for child, parent in parents.items() if parent == each]
    return found


class Node:
    """A node of a cluster: `ray start` with one core, and everything it starts."""

    def __init__(self, *arguments):
        command = [str(Path(sys.executable).with_name("ray")), "start", "--block", "--num-cpus=1", *arguments]
        environment = {
            **os.environ, "PYTHONPATH": str(Path(__file__).parent), "RAY_worker_niceness": "0",
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


class Assassin(Report):
    """Kills the second node once it trains a group that has a checkpoint."""

    def __init__(self, root, node):
        self.root, self.node, self.killed, self.said = root, node, [], []

    def at(self, group, step, latest):
        if not self.killed:
            workers = children(self.node.process.pid)
            for held in self.root.glob("groups/*/held.*"):
                if int(held.name.split(".")[3]) in workers and (held.parent / "checkpoint.pt").exists():
                    self.killed.append(held.parent.name)
            if self.killed:
                self.node.kill()

    def say(self, group, message):
        self.said.append(message)


def test_a_node_dies_and_every_run_finishes_with_the_same_numbers(cluster, tmp_path):
    address, (_, second) = cluster
    configs = [Config("ray", seed=seed, steps=150, pause=0.01) for seed in range(6)]
    root, alone = tmp_path / "cluster", tmp_path / "alone"
    quick = [Config("ray", seed=seed, steps=150) for seed in range(6)]
    train(Fake(), quick, alone)
    workers = RayCluster(address)
    wait_for(lambda: workers.nodes == 2, "the second node")
    report = Assassin(root, second)
    terms = Terms(heartbeat=0.5, expiry=5.0)
    outcome = train(Fake(), configs, root, workers=workers, report=report, checkpoint_seconds=0.1, terms=terms)
    assert report.killed, "no group was training on the second node"
    assert any("its worker died" in message for message in report.said)
    assert outcome.complete, outcome
    assert outcome.trained == len(configs)
    for config, same in zip(configs, quick, strict=True):
        found, expected = Fake().run(config, root), Fake().run(same, alone)
        assert found.metrics == expected.metrics
        assert found.result["test_accuracy"] == expected.result["test_accuracy"]


def test_an_address_where_nobody_listens_is_a_mistake_not_a_wait():
    pytest.importorskip("ray", reason="Ray is not installed: pip install 'pullback-study[ray]'")
    with pytest.raises(ValueError, match="no Ray cluster answers there"):
        RayCluster(f"127.0.0.1:{free_port()}")
