"""Groups as tasks of a Ray cluster, with the folder of runs on storage that all nodes share.

Ray decides where a group trains, and retries it elsewhere when its worker or its node dies; it then resumes from its last
checkpoint. A file in the shared folder tells the workers to stop. When the driver dies, Ray ends its tasks.
"""

from __future__ import annotations

import dataclasses
import logging
import os
import secrets
import socket
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from pullback_study.runs.executor import GRACE_SECONDS, Executor, Tell
from pullback_study.runs.groups import WORK
from pullback_study.runs.work import Ending, Job, train_group

_RETRIES = 5
_LOOK_SECONDS = 1.0


class RayTasks(Executor):
    """Trains on the cluster at `address`.

    Args:
        address: `host:port` of the cluster, or `auto` for the one this machine belongs to.
        cpus: cores, and threads, of each task.
        gpus: the share of a GPU of each task: 0.25 lets four share one.
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
        self._train = self._ray.remote(_train).options(num_cpus=cpus, num_gpus=gpus, max_retries=_RETRIES)
        self._stop_file: Path | None = None

    def run(self, jobs: Sequence[Job], tell: Tell, stopped: Callable[[], bool]) -> Iterator[tuple[int, Ending]]:
        queue, tasks = deque(enumerate(jobs)), dict[Any, int]()
        self._stop_file = jobs[0].folder.resolve() / WORK / f"stop-{secrets.token_hex(8)}"
        deadline = float("inf")
        while (queue and not stopped()) or (tasks and time.monotonic() < deadline):
            while queue and not stopped() and len(tasks) < self._places():
                number, job = queue.popleft()
                there = dataclasses.replace(job, folder=job.folder.resolve())
                tasks[self._train.remote(there, self._cpus, self._stop_file)] = number
            if stopped() and deadline == float("inf"):
                deadline = time.monotonic() + GRACE_SECONDS
                self._stop_file.parent.mkdir(parents=True, exist_ok=True)
                self._stop_file.touch()
            ready, _ = self._ray.wait(list(tasks), timeout=0.2)
            for reference in ready:
                yield tasks.pop(reference), self._ending(reference)

    def close(self) -> None:
        self._ray.shutdown()
        if self._stop_file is not None:
            self._stop_file.unlink(missing_ok=True)

    def _places(self) -> float:
        """How many tasks to give to Ray, which queues what has no place yet: a cluster that grows is used."""
        there = self._ray.cluster_resources()
        places = there.get("CPU", 0) / self._cpus
        if self._gpus:
            places = min(places, there.get("GPU", 0) / self._gpus)
        return 2 * places + 2

    def _ending(self, reference: Any) -> Ending:
        try:
            return self._ray.get(reference)
        except self._ray.exceptions.RayTaskError as error:  # not of the training: `train_group` catches those
            return Ending("failed", f"{type(error.cause).__name__}: {error.cause}")
        except self._ray.exceptions.RayError as error:
            return Ending("died", type(error).__name__)


def _knock(address: str) -> None:
    """Raises `OSError` if nobody listens at host:port, at once: Ray would try for minutes."""
    host, _, port = address.rpartition(":")
    if host and port.isdigit() and "//" not in host:
        socket.create_connection((host, int(port)), timeout=10).close()


def _train(job: Job, threads: int, stop_file: Path) -> Ending:
    """Train a group on the node where Ray put it."""
    import torch

    torch.set_num_threads(threads)
    if not job.folder.is_dir():
        return Ending("failed", f"{job.folder} is not there on node {os.uname().nodename}: all nodes must share it")
    looked, found = 0.0, False

    def stopped() -> bool:
        """Whether the file is there, from time to time."""
        nonlocal looked, found
        if not found and time.monotonic() - looked > _LOOK_SECONDS:
            looked, found = time.monotonic(), stop_file.exists()
        return found

    return train_group(job, lambda event: None, stopped)
