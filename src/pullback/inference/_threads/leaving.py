"""The end of the interpreter: it waits for kernels that other threads are in, and lets no new ones begin.

A daemon thread runs on while the interpreter is taken apart, and with it the memory of compiled code that the thread may be in.
"""

from __future__ import annotations

import atexit
import threading
import time

_PATIENCE = 60.0  # seconds
_lock = threading.Lock()
_inside = 0
_ending = False


def enter() -> None:
    """A kernel begins. While the interpreter ends, only on the main thread; others wait for ever."""
    global _inside
    with _lock:
        late = _ending and threading.current_thread() is not threading.main_thread()
        _inside += not late
    if late:
        threading.Event().wait()


def leave() -> None:
    """A kernel has ended."""
    global _inside
    with _lock:
        _inside -= 1


def forget() -> None:
    """A forked child has one thread, and what others were in does not go on there."""
    global _inside, _lock
    _inside, _lock = 0, threading.Lock()


@atexit.register
def _wait() -> None:
    global _ending
    with _lock:
        _ending = True
    until = time.monotonic() + _PATIENCE
    while _inside > 0 and time.monotonic() < until:
        time.sleep(0.001)
