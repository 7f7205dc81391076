"""Where groups train: in this process, in a pool of processes, or on a Ray cluster.

A worker of the pool hears from its parent through a pipe: a job, or the word to stop. The pipe's end means that the parent is
gone, however it went; the worker then saves what it does and leaves. Ctrl-C reaches all processes of a terminal, and a batch
system signals all processes of a job; workers leave both to the parent, which tells them to stop.

On a cluster the folder of runs is on storage that all nodes share. Ray decides where a group trains, and retries it elsewhere
when its worker or its node dies; it then resumes from its last checkpoint. A file in the shared folder tells the workers to
stop. When the driver dies, Ray ends its tasks.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import logging
import multiprocessing
import os
import secrets
import signal
import socket
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Any, NamedTuple

from pullback_study.runs.run import WORK
from pullback_study.runs.work import Ending, Job, Reached, train_group

Tell = Callable[[int, Reached], None]
_GRACE_SECONDS = 15.0
_RETRIES = 5  # of Ray
_STOP = "stop"
_SIGNALS = {signal.SIGINT, signal.SIGTERM}


class Executor:
    """Trains groups: this one in this process, one after the other."""

    def run(self, jobs: Sequence[Job], tell: Tell, stopped: Callable[[], bool]) -> Iterator[tuple[int, Ending]]:
        """Train the groups of these jobs, and say by its number how each one ended, once.

        When `stopped()` is true, what is running is saved, and nothing more is begun.
        """
        for number, job in enumerate(jobs):
            if not stopped():
                yield number, train_group(job, functools.partial(tell, number), stopped)

    def shrink(self) -> int:
        """A group found no memory: train fewer at a time from now on; returns how many, or 0 if there cannot be fewer."""
        return 0

    def close(self) -> None:
        """Leave nothing behind."""


class _Worker(NamedTuple):
    """A worker as its parent sees it."""

    number: int
    process: SpawnProcess
    pipe: Connection[Any, Any]

    def send(self, message: Any) -> None:
        with contextlib.suppress(OSError):  # it has died: `wait` will notice
            self.pipe.send(message)

    def receive(self) -> Reached | Ending:
        try:
            return self.pipe.recv()
        except (EOFError, OSError):
            self.process.join()
            code = self.process.exitcode or 0
            return Ending("died", f"killed by {signal.Signals(-code).name}" if code < 0 else f"exit code {code}")


class Pool(Executor):
    """Worker processes that live as long as the pool and are replaced when they die, no more than there are groups.

    By default there is one per core, or `per_gpu` for each GPU; worker i works on GPU i modulo `gpus`, 0 to work on the CPU.
    """

    def __init__(self, workers: int | None = None, *, gpus: int = 0, per_gpu: int = 1) -> None:
        self._wanted = workers or (gpus * per_gpu if gpus else cores())
        self._gpus, self._size = gpus, 0
        self._context = multiprocessing.get_context("spawn")
        self._running: dict[int, _Worker] = {}  # by the number of a group, who trains it
        self._idle: list[_Worker] = []

    @property
    def _workers(self) -> list[_Worker]:
        return [*self._running.values(), *self._idle]

    def run(self, jobs: Sequence[Job], tell: Tell, stopped: Callable[[], bool]) -> Iterator[tuple[int, Ending]]:
        queue, deadline = deque(enumerate(jobs)), float("inf")
        self._size = self._size or min(self._wanted, len(jobs))
        while (queue and not stopped()) or (self._running and time.monotonic() < deadline):
            while queue and not stopped() and len(self._running) < self._size:
                number, job = queue.popleft()
                self._idle = [worker for worker in self._idle if worker.process.is_alive()]
                self._running[number] = self._idle.pop() if self._idle else self._hire()
                self._running[number].send(job)
            if stopped() and deadline == float("inf"):
                deadline = time.monotonic() + _GRACE_SECONDS
                for worker in self._workers:
                    worker.send(_STOP)
            numbers: dict[Any, int] = {worker.pipe: number for number, worker in self._running.items()}
            for pipe in wait(list(numbers), timeout=0.2):
                number, event = numbers[pipe], self._running[numbers[pipe]].receive()
                if isinstance(event, Ending):
                    self._idle.append(self._running.pop(number))
                    yield number, event
                else:
                    tell(number, event)

    def close(self) -> None:
        for worker in self._workers:
            worker.pipe.close()  # to the worker, the end of the pipe means to leave
        for worker in self._workers:
            worker.process.join(timeout=5.0 if worker in self._idle else 0.0)
            if worker.process.is_alive():
                worker.process.kill()
                worker.process.join()

    def _hire(self) -> _Worker:
        taken = {worker.number for worker in self._workers}
        number = next(i for i in range(self._size) if i not in taken)
        mine, its = self._context.Pipe()
        threads = max(1, cores() // self._size)
        gpu = number % self._gpus if self._gpus else None
        process = self._context.Process(target=_work, args=(its, threads, gpu), name=f"pullback-{number}")
        before = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)  # also in the new process, until it ignores them
        try:
            process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        its.close()
        return _Worker(number, process, mine)


def _work(pipe: Connection[Any, Any], threads: int, gpu: int | None) -> None:
    """The life of a worker: train what comes through the pipe, until its end."""
    for number in _SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
    if gpu is not None:
        visible = os.environ.get("CUDA_VISIBLE_DEVICES")
        os.environ["CUDA_VISIBLE_DEVICES"] = visible.split(",")[gpu] if visible else str(gpu)
    import torch

    torch.set_num_threads(threads)

    def say(event: Reached | Ending) -> None:
        with contextlib.suppress(OSError):  # the parent is gone
            pipe.send(event)

    while True:
        try:
            job = pipe.recv()
        except (EOFError, OSError):
            return
        except Exception as error:  # what was sent cannot be made here: its module is not found, say
            say(Ending("failed", f"a worker cannot read its job: {type(error).__name__}: {error}"))
            continue
        if job == _STOP:
            return
        say(train_group(job, say, pipe.poll))  # while it trains, only the word to stop or the end comes through


def cores() -> int:
    """The cores this process may use: those it is bound to, and no more than a container's quota."""
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    with contextlib.suppress(OSError, ValueError):
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
        count = min(count, max(1, int(quota) // int(period)))
    return count


class RayTasks(Executor):
    """Trains on the cluster at `host:port`, or `auto`, the one this machine belongs to.

    A task has so many cores and threads, and a share of a GPU: 0.25 lets four share one.
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
        self._cpus = cpus
        self._train = self._ray.remote(_train_there).options(num_cpus=cpus, num_gpus=gpus, max_retries=_RETRIES)
        self._stop_file: Path | None = None

    def run(self, jobs: Sequence[Job], tell: Tell, stopped: Callable[[], bool]) -> Iterator[tuple[int, Ending]]:
        folder, deadline = jobs[0].folder.resolve(), float("inf")
        self._stop_file = folder / WORK / f"stop-{secrets.token_hex(8)}"
        there = [dataclasses.replace(job, folder=folder) for job in jobs]  # Ray queues what has no place yet
        tasks = {self._train.remote(job, self._cpus, self._stop_file): number for number, job in enumerate(there)}
        while tasks and time.monotonic() < deadline:
            if stopped() and deadline == float("inf"):
                deadline = time.monotonic() + _GRACE_SECONDS
                self._stop_file.parent.mkdir(parents=True, exist_ok=True)
                self._stop_file.touch()
            ready, _ = self._ray.wait(list(tasks), num_returns=len(tasks), timeout=0.2)
            for reference in ready:
                yield tasks.pop(reference), self._ending(reference)

    def close(self) -> None:
        self._ray.shutdown()
        if self._stop_file is not None:
            self._stop_file.unlink(missing_ok=True)

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


def _train_there(job: Job, threads: int, stop_file: Path) -> Ending:
    """Train a group on the node where Ray put it."""
    import torch

    torch.set_num_threads(threads)
    if not job.folder.is_dir():
        return Ending("failed", f"{job.folder} is not there on node {os.uname().nodename}: all nodes must share it")
    looked, found = 0.0, False

    def stopped() -> bool:
        """Whether the file is there, from time to time."""
        nonlocal looked, found
        if not found and time.monotonic() - looked > 1.0:
            looked, found = time.monotonic(), stop_file.exists()
        return found

    return Ending("stopped", "stopped before it began") if stopped() else train_group(job, lambda event: None, stopped)
