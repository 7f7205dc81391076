"""Several groups side by side in one process, for a GPU that one of them does not fill.

Processes on a GPU take turns; streams of one process run at the same time. Each group has a thread and a stream of its own.
Only one thread computes at a time, and hands over where it waits for the GPU (`away`): what a group queues, it queues alone,
so that random numbers and captured graphs are those of a group by itself.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import queue
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence

from pullback_study.runs.executor import Executor, Tell
from pullback_study.runs.work import Ending, Job, Reached, failure, train_group

_mine = threading.local()


@contextlib.contextmanager
def away() -> Iterator[None]:
    """Inside, other groups of this process may compute: this one waits for its device."""
    turn: threading.Lock | None = getattr(_mine, "turn", None)
    if turn is None:
        yield
        return
    turn.release()
    try:
        yield
    finally:
        turn.acquire()


class SideBySide(Executor):
    """Groups in threads of this process, so many at a time, each on its own CUDA stream."""

    def __init__(self, groups: int) -> None:
        os.environ.setdefault("CUDA_DEVICE_MAX_CONNECTIONS", "32")  # as many queues as a GPU has; read when CUDA starts
        self._most, self._running = groups, 0
        self._turn = threading.Lock()

    def run(self, jobs: Sequence[Job], tell: Tell, stopped: Callable[[], bool]) -> Iterator[tuple[int, Ending]]:
        events: queue.SimpleQueue[tuple[int, Reached | Ending]] = queue.SimpleQueue()
        left = deque(enumerate(jobs))
        while True:
            while left and self._running < self._most and not stopped():
                number, job = left.popleft()
                job = dataclasses.replace(job, beside=self._most)  # so that all of them together are saved as often as one
                threading.Thread(target=self._train, args=(number, job, events, stopped), daemon=True).start()
                self._running += 1
            if not self._running:
                return
            number, event = events.get()
            if isinstance(event, Ending):
                self._running -= 1
                yield number, event
            else:
                tell(number, event)

    def shrink(self) -> int:
        if self._most == 1:
            return 0
        self._most = max(1, min(self._most - 1, self._running))
        return self._most

    def _train(
        self, number: int, job: Job, events: queue.SimpleQueue[tuple[int, Reached | Ending]], stopped: Callable[[], bool]
    ) -> None:
        import torch

        _mine.turn, ending = self._turn, Ending("stopped", "stopped before it began")
        on_gpu = job.device.startswith("cuda")
        try:
            with self._turn, torch.cuda.stream(torch.cuda.Stream()) if on_gpu else contextlib.nullcontext():
                if not stopped():
                    ending = train_group(job, lambda event: events.put((number, event)), stopped)
        except Exception as error:  # not even a stream could be had
            ending = failure(error, job.folder)
        events.put((number, ending))
