"""Spreads a kernel over threads, PyTorch's or a pool of our own where those cannot be had, with scratch memory for each.

Numba's `parallel=True` is neither safe from several Python threads nor after a fork; this is both.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from threading import get_ident
from time import monotonic
from typing import Any

import numpy as np
import torch

from pullback.inference._threads import forks, leaving, pool, team

_KEPT = 1 << 24  # bytes of scratch: what is larger is made anew, and given back
_NOTHING = np.empty(0, np.uint8), np.empty((0, 0), np.uint8)
_own = threading.local()
LITTLE = 1e5  # operations that are not worth a worker: they are done before another thread has begun


def scratch(units: int, size: int) -> np.ndarray:
    """Scratch of at least `size` bytes for each of the workers that may share some units of work: a row each, for
    `scratch.carve`.

    No more workers than rows may run. Each thread keeps its last one, which spares the page faults of fresh memory; what it
    returns is valid until the next call.
    """
    workers = 1 if units <= 1 else min(torch.get_num_threads(), units)
    kept, rows = getattr(_own, "scratch", _NOTHING)
    count, width = rows.shape
    if count == workers and width >= size:
        return rows
    row = -(-size // 64) * 64
    if len(kept) < workers * row:
        kept = torch.empty(workers * row, dtype=torch.uint8, device="cpu").numpy()  # begins at a cache line
    rows = kept[: workers * row].reshape(workers, row)
    if len(kept) <= _KEPT:
        _own.scratch = kept, rows
    return rows


def spread(kernel: Callable[..., Any], units: int, work: float, *args: Any) -> None:
    """Call `kernel(worker, workers, *args)` for each of several workers at once, and wait for all.

    Args:
        kernel: compiled code that releases the GIL and does the units worker, worker + workers, ...
        units: how many independent units of work there are; no more workers than that.
        work: about how many inner-loop operations there are in all, of about half a nanosecond each; little work
            takes fewer workers, or stays on this thread.
        args: passed on.
    """
    workers = 1 if units <= 1 else int(min(torch.get_num_threads(), units, work / LITTLE))
    thread = get_ident()
    enters = thread not in leaving.inside  # as a rule an operator is around it, whose own entry is enough
    if enters:
        leaving.inside.append(thread)
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
        if enters:
            leaving.inside.remove(thread)
            leaving.left[thread] = monotonic()


forks.watch()
