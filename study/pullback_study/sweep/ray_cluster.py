"""Workers on a Ray cluster: a task for each group, the same run directories on storage that all nodes share.

Ray decides where a group trains and keeps its processes for the next one. A node that dies takes its groups with it; each
goes on elsewhere, from its last checkpoint, once its lease is known to be dead. A small actor beside the driver carries
messages both ways: how far each group is, and the wish to stop. When the driver dies so does the actor, and workers that
Ray leaves alive save and stop.
"""

from __future__ import annotations

import dataclasses
import logging
import os
import socket
import threading
import time
from pathlib import Path
from typing import Any

from pullback_study.leases import Watch
from pullback_study.training import Ending, Task, train_group
from pullback_study.workers import Died, Event, Teller, Workers

_ASK_SECONDS = 1.0
_watch: Watch | None = None  # of a worker process: what it has seen of leases outlives a group


class RayCluster(Workers):
    """Trains on the cluster at `address`.

    Args:
        address: `host:port` of the cluster, or `auto` for the one this machine belongs to.
        cpus: cores, and threads, of each worker.
        gpus: the share of a GPU of each worker: 0.25 lets four share one.
    """

    def __init__(self, address: str, *, cpus: int = 1, gpus: float = 0.0) -> None:
        try:
            import ray
        except ImportError:
            raise ValueError("--ray: Ray is not installed; pip install 'pullback-study[ray]'") from None
        try:
            _knock(address)
            ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR, configure_logging=False)
        except (OSError, RuntimeError, ValueError) as error:
            raise ValueError(f"--ray {address}: no Ray cluster answers there ({error})") from None
        self._ray: Any = ray
        self._cpus, self._gpus = cpus, gpus
        self._tasks: dict[Any, int] = {}
        here = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(
            ray.get_runtime_context().get_node_id(), soft=False
        )
        self._mailbox = self._ray.remote(Mailbox).options(num_cpus=0, scheduling_strategy=here).remote()
        self._train = self._ray.remote(_train).options(num_cpus=cpus, num_gpus=gpus, max_retries=0)

    @property
    def nodes(self) -> int:
        """How many nodes live now."""
        return sum(node["Alive"] for node in self._ray.nodes())

    @property
    def free(self) -> bool:
        """Ray queues what has no place yet, so that a cluster that grows is used; a few are enough."""
        there = self._ray.cluster_resources()
        places = there.get("CPU", 0) / self._cpus
        if self._gpus:
            places = min(places, there.get("GPU", 0) / self._gpus)
        return len(self._tasks) < 2 * places + 2

    def start(self, group: int, task: Task) -> None:
        absolute = dataclasses.replace(task, root=task.root.resolve())
        absolute.root.mkdir(parents=True, exist_ok=True)
        self._tasks[self._train.remote(group, absolute, self._cpus, self._mailbox)] = group

    def wait(self, seconds: float) -> None:
        if not self._tasks:
            time.sleep(seconds)
            return
        ready, _ = self._ray.wait(list(self._tasks), timeout=seconds)
        for group, event in self._ray.get(self._mailbox.collect.remote()):
            if group in self._tasks.values():
                self.tell(group, event)
        for reference in ready:
            self.tell(self._tasks.pop(reference), self._ending(reference))

    def _ending(self, reference: Any) -> Ending | Died:
        try:
            return self._ray.get(reference)
        except self._ray.exceptions.RayTaskError as error:  # not of the training: `train_group` catches those
            return Ending("failed", f"{type(error.cause).__name__}: {error.cause}")
        except self._ray.exceptions.RayError as error:
            return Died(type(error).__name__)

    def stop(self) -> None:
        self._mailbox.stop.remote()  # those that still wait for a place find it when they get one

    def close(self) -> None:
        self._ray.shutdown()


def _knock(address: str) -> None:
    """Raises `OSError` if nobody listens at host:port, at once: Ray would try for minutes."""
    host, _, port = address.rpartition(":")
    if host and port.isdigit() and "//" not in host:
        socket.create_connection((host, int(port)), timeout=10).close()


class Mailbox:
    """Messages between the driver and the workers."""

    def __init__(self) -> None:
        self._events: list[tuple[int, Event]] = []
        self._stopping = False

    def put(self, group: int, event: Event) -> None:
        self._events.append((group, event))

    def collect(self) -> list[tuple[int, Event]]:
        events, self._events = self._events, []
        return events

    def stop(self) -> None:
        self._stopping = True

    def stopping(self) -> bool:
        return self._stopping


def _train(group: int, task: Task, threads: int, mailbox: Any) -> Ending:
    """Train a group on the node where Ray put it."""
    import ray
    import torch

    global _watch
    _watch = _watch or Watch(task.terms)
    torch.set_num_threads(threads)
    if not Path(task.root).is_dir():
        return Ending("failed", f"{task.root} is not there on node {os.uname().nodename}: all nodes must share it")
    stop, ended = threading.Event(), threading.Event()

    def listen() -> None:  # not in the main thread: Ray would lend the cores of a task that waits to another one
        while not stop.is_set():
            try:
                if ray.get(mailbox.stopping.remote(), timeout=30):
                    stop.set()
            except Exception:  # the driver is gone, or cannot be reached
                stop.set()
            if ended.wait(_ASK_SECONDS):
                return

    threading.Thread(target=listen, daemon=True).start()
    try:
        return train_group(task, Teller(lambda event: mailbox.put.remote(group, event)), stop.is_set, _watch)
    finally:
        ended.set()
