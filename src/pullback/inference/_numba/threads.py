"""Spreads a kernel over threads: PyTorch's, or a pool of our own where those cannot be had.

Numba's `parallel=True` is neither safe from several Python threads nor after a fork; this is both.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from threading import get_ident
from time import monotonic
from typing import Any

import torch

from pullback.inference._threads import forks, leaving, pool, team

LITTLE = 1e5  # operations that are not worth a worker: so many are done before another thread has begun


def spread(kernel: Callable[..., Any], units: int, work: float, *args: Any) -> None:
    """Call `kernel(worker, workers, *args)` for each of several workers at once, and wait for all.

    Args:
        kernel: compiled code that releases the GIL and does the units worker, worker + workers, ...
        units: how many independent units of work there are; no more workers than that.
        work: about how many inner-loop operations there are in all, of about half a nanosecond each; little work
            takes fewer workers, or stays on this thread.
        args: passed on.
    """
    workers = int(min(torch.get_num_threads(), units, work / LITTLE))
    leaving.inside.append(thread := get_ident())
    if leaving.ending:
        leaving.hold(thread)
    try:
        if workers <= 1 or sys.is_finalizing():  # when threads do not get the GIL any more
            kernel(0, 1, *args)
        elif (found := team.current()) is not None:
            found.run(kernel, workers, *args)
        else:
            pool.run(kernel, workers, *args)
    finally:
        leaving.inside.remove(thread)
        leaving.left[thread] = monotonic()


forks.watch()
