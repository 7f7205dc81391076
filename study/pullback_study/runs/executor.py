"""Where groups train: in this process, in a pool of processes, or on a Ray cluster (`ray_tasks.py`).

A worker of the pool hears from its parent through a pipe: a job, or the word to stop. The pipe's end means that the parent is
gone, however it went; the worker then saves what it does and leaves. Ctrl-C reaches all processes of a terminal, and a batch
system signals all processes of a job; workers leave both to the parent, which tells them to stop.
"""

from __future__ import annotations

import abc
import contextlib
import functools
import multiprocessing
import os
import signal
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Any

from pullback_study.runs.work import Ending, Job, Reached, train_group

Tell = Callable[[int, Reached], None]
_STOP = "stop"
_SIGNALS = {signal.SIGINT, signal.SIGTERM}
GRACE_SECONDS = 15.0


class Executor(abc.ABC):
    """Trains groups, one or several at a time."""

    @abc.abstractmethod
    def run(self, jobs: Sequence[Job], tell: Tell, stopped: Callable[[], bool]) -> Iterator[tuple[int, Ending]]:
        """Train the groups of these jobs, and say by its number how each one ended, once.

        When `stopped()` is true, what is running is saved, and nothing more is begun.
        """

    def close(self) -> None:  # noqa: B027
        """Leave nothing behind."""


class ThisProcess(Executor):
    """One group after the other, in this process."""

    def run(self, jobs: Sequence[Job], tell: Tell, stopped: Callable[[], bool]) -> Iterator[tuple[int, Ending]]:
        for number, job in enumerate(jobs):
            if not stopped():
                yield number, train_group(job, functools.partial(tell, number), stopped)


class Pool(Executor):
    """Worker processes that live as long as the pool and are replaced when they die.

    Args:
        workers: how many, and no more than there are groups; None for one per core, or `per_gpu` for each GPU.
        gpus: how many GPUs there are; worker i works on GPU i modulo `gpus`. 0 to work on the CPU.
        per_gpu: how many workers share a GPU.
    """

    def __init__(self, workers: int | None = None, *, gpus: int = 0, per_gpu: int = 1) -> None:
        self._wanted = workers or (gpus * per_gpu if gpus else cores())
        self._gpus, self._size = gpus, 0
        self._context = multiprocessing.get_context("spawn")
        self._workers: list[_Worker] = []

    def run(self, jobs: Sequence[Job], tell: Tell, stopped: Callable[[], bool]) -> Iterator[tuple[int, Ending]]:
        queue, deadline = deque(enumerate(jobs)), float("inf")
        self._size = self._size or min(self._wanted, len(jobs))
        while (queue and not stopped()) or any(worker.group is not None for worker in self._workers):
            while queue and not stopped() and (worker := self._free()):
                worker.group, job = queue.popleft()
                worker.send(job)
            if stopped() and deadline == float("inf"):
                deadline = time.monotonic() + GRACE_SECONDS
                for worker in self._workers:
                    worker.send(_STOP)
            if time.monotonic() > deadline:
                return
            for worker, event in self._events(0.2):
                group = worker.group
                if isinstance(event, Ending):
                    worker.group = None
                if group is not None and isinstance(event, Ending):
                    yield group, event
                elif group is not None:
                    tell(group, event)

    def close(self) -> None:
        for worker in self._workers:
            worker.pipe.close()  # to the worker, the end of the pipe means to leave
        for worker in self._workers:
            worker.process.join(timeout=5.0 if worker.group is None else 0.0)
            if worker.process.is_alive():
                worker.process.kill()
                worker.process.join()

    def _events(self, seconds: float) -> Iterator[tuple[_Worker, Any]]:
        """What workers say, within that time."""
        by_pipe: dict[Any, _Worker] = {worker.pipe: worker for worker in self._workers}
        for pipe in wait(list(by_pipe), timeout=seconds):
            worker = by_pipe[pipe]
            try:
                yield worker, worker.pipe.recv()
            except (EOFError, OSError):
                yield worker, self._bury(worker)

    def _free(self) -> _Worker | None:
        """A worker without a group, hired now where there is a place; None if all are at work."""
        idle = next((worker for worker in self._workers if worker.group is None), None)
        return idle or (self._hire() if len(self._workers) < self._size else None)

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
        self._workers.append(_Worker(number, process, mine))
        return self._workers[-1]

    def _bury(self, worker: _Worker) -> Ending:
        worker.process.join()
        worker.pipe.close()
        self._workers.remove(worker)
        code = worker.process.exitcode or 0
        return Ending("died", f"killed by {signal.Signals(-code).name}" if code < 0 else f"exit code {code}")


class _Worker:
    """A worker as its parent sees it."""

    def __init__(self, number: int, process: SpawnProcess, pipe: Connection[Any, Any]) -> None:
        self.number, self.process, self.pipe = number, process, pipe
        self.group: int | None = None

    def send(self, message: Any) -> None:
        with contextlib.suppress(OSError):  # it has died: `wait` will notice
            self.pipe.send(message)


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
