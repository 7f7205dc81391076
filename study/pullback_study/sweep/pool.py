"""A pool of worker processes on this machine, each training one group at a time.

A worker hears from its parent through a pipe. Its end means that the parent is gone, however it went: the worker then saves
what it does and stops. Ctrl-C reaches all processes of a terminal, and a batch system signals all processes of a job; workers
leave both to the parent, which asks them to stop.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import queue
import signal
import threading
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from typing import Any

from pullback_study import processes
from pullback_study.leases import Watch
from pullback_study.training import Ending, Task, train_group
from pullback_study.workers import Died, Event, Teller, Workers

_STOP = "stop"
_SIGNALS = {signal.SIGINT, signal.SIGTERM}


class Pool(Workers):
    """Worker processes that live as long as the pool and are replaced when they die.

    Args:
        workers: how many, and no more than there are groups; None for one a core, or `per_gpu` for each GPU.
        threads: of each worker; None to divide the cores among them.
        gpus: how many GPUs there are; worker i works on GPU i modulo `gpus`. 0 to work on the CPU.
        per_gpu: how many workers share a GPU.
    """

    def __init__(
        self, workers: int | None = None, *, threads: int | None = None, gpus: int = 0, per_gpu: int = 1
    ) -> None:
        self._wanted = workers or (gpus * per_gpu if gpus else processes.cores())
        self._threads = threads
        self._gpus = gpus
        self._size = 0
        self._context = multiprocessing.get_context("spawn")
        self._workers: list[_Worker] = []
        self._stopping = False

    def open(self, tell: Callable[[int, Event], None], stopped: Callable[[], bool], groups: int) -> None:
        super().open(tell, stopped, groups)
        self._size = min(self._wanted, groups)

    @property
    def free(self) -> bool:
        return len(self._workers) < self._size or any(worker.group is None for worker in self._workers)

    def start(self, group: int, task: Task) -> None:
        worker = next((worker for worker in self._workers if worker.group is None), None) or self._hire()
        worker.group = group
        worker.send(task)

    def wait(self, seconds: float) -> None:
        by_pipe = {worker.pipe: worker for worker in self._workers}
        for pipe in wait(list(by_pipe), timeout=seconds):
            worker = by_pipe[pipe]  # type: ignore[index]
            try:
                event = worker.pipe.recv()
            except (EOFError, OSError):
                self._bury(worker)
                continue
            group = worker.group
            if isinstance(event, Ending):
                worker.group = None
            if group is not None:
                self.tell(group, event)

    def stop(self) -> None:
        self._stopping = True
        for worker in self._workers:
            worker.send(_STOP)

    def close(self) -> None:
        for worker in self._workers:
            worker.pipe.close()  # to the worker, the end of the pipe means to stop
        for worker in self._workers:
            worker.process.join(timeout=0.0 if worker.group is not None and self._stopping else 5.0)
            if worker.process.is_alive():
                worker.process.kill()
                worker.process.join()

    def _hire(self) -> _Worker:
        taken = {worker.number for worker in self._workers}
        number = next(i for i in range(self._size) if i not in taken)
        mine, its = self._context.Pipe()
        threads = self._threads or max(1, processes.cores() // self._size)
        gpu = number % self._gpus if self._gpus else None
        process = self._context.Process(target=_work, args=(its, threads, gpu), name=f"pullback-{number}")
        with _signals_blocked():  # also in the new process, until it has said what to do with them
            process.start()
        its.close()
        self._workers.append(_Worker(number, process, mine))
        return self._workers[-1]

    def _bury(self, worker: _Worker) -> None:
        worker.process.join()
        worker.pipe.close()
        self._workers.remove(worker)
        if worker.group is not None:
            self.tell(worker.group, Died(_reason(worker.process.exitcode)))


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
    stop = threading.Event()
    tasks: queue.SimpleQueue[Task | None] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(pipe, tasks, stop), daemon=True).start()
    watch: Watch | None = None
    while (task := tasks.get()) is not None:
        watch = watch or Watch(task.terms)
        _say(pipe, train_group(task, Teller(lambda event: _say(pipe, event)), stop.is_set, watch))


def _listen(pipe: Connection[Any, Any], tasks: queue.SimpleQueue[Task | None], stop: threading.Event) -> None:
    while True:
        try:
            message = pipe.recv()
        except (EOFError, OSError):
            break
        except Exception as error:  # what was sent cannot be made here: its module is not found, say
            _say(pipe, Ending("failed", f"a worker cannot read its task: {type(error).__name__}: {error}"))
            continue
        if message == _STOP:
            break
        tasks.put(message)
    stop.set()
    tasks.put(None)


def _say(pipe: Connection[Any, Any], event: Event) -> None:
    with contextlib.suppress(OSError):  # the parent is gone; the listener notices, and what there is gets saved
        pipe.send(event)


@contextlib.contextmanager
def _signals_blocked() -> Iterator[None]:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _reason(code: int | None) -> str:
    if code is not None and code < 0:
        return f"killed by {signal.Signals(-code).name}"
    return f"exit code {code}"
