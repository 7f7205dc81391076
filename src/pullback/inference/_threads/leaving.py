"""The end of the interpreter: it waits for operators that other threads are in, and lets no new ones begin.

A daemon thread runs on while the interpreter is taken apart, and with it compiled code, PyTorch's registered operators and
the GIL: a thread that is in a kernel, is looking up an operator or comes back from C++ then takes the process down.
"""

from __future__ import annotations

import atexit
import threading
import time

_PATIENCE = 60.0  # seconds for operators that have begun
_GRACE = 0.5  # seconds for threads that were in an operator less than a second ago to come to the next one
_inside: dict[int, int] = {}  # how deep each thread is in operators
_left: dict[int, float] = {}  # when each thread has last left one
_parked: set[int] = set()
_ending = False


def enter() -> None:
    """An operator begins. While the interpreter ends, only on the main thread; others wait for ever."""
    thread = threading.get_ident()
    depth = _inside.get(thread, 0)
    _inside[thread] = depth + 1  # before looking at `_ending`: the main thread does it the other way round
    if _ending and depth == 0 and thread != threading.main_thread().ident:
        del _inside[thread]
        _parked.add(thread)
        threading.Event().wait()


def leave() -> None:
    """An operator has ended."""
    thread = threading.get_ident()
    _inside[thread] -= 1
    if _inside[thread] == 0:
        del _inside[thread]
        _left[thread] = time.monotonic()


def forget() -> None:
    """A forked child has one thread, and what others were in does not go on there."""
    for known in (_inside, _left, _parked):
        known.clear()


def watch() -> None:
    """From now on, wait at exit, before anything that has been registered for it until now."""
    atexit.register(_wait)


def _wait() -> None:
    global _ending
    _ending = True
    begun, me = time.monotonic(), threading.get_ident()
    while time.monotonic() < begun + _PATIENCE and any(thread != me for thread in list(_inside)):
        time.sleep(0.001)
    now = time.monotonic()
    alive = {thread.ident for thread in threading.enumerate()} - {me}
    busy = {thread for thread, when in list(_left.items()) if thread in alive and when > begun - 1}
    while time.monotonic() < now + _GRACE and not busy <= _parked:
        time.sleep(0.001)
