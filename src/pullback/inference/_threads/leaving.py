"""The end of the interpreter: it waits for operators that other threads are in, and lets no new ones begin.

A daemon thread runs on while the interpreter is taken apart, and with it compiled code, PyTorch's registered operators and
the GIL: a thread that is in a kernel, is looking up an operator or comes back from C++ then takes the process down.

An operator is between two lines, which call no function of Python because they are part of every call:

    inside.append(thread := get_ident()); ending and hold(thread)
    inside.remove(thread); left[thread] = monotonic()
"""

from __future__ import annotations

import atexit
import threading
import time

_PATIENCE = 60.0  # seconds for operators that have begun
_GRACE = 0.5  # seconds for threads that were in an operator less than a second ago to come to the next one
inside: list[int] = []  # the threads that are in operators, once for each operator that they are in
left: dict[int, float] = {}  # when each thread has last left one
ending = False  # is read after a thread has written to `inside`: the main thread does it the other way round
_parked: set[int] = set()


def hold(thread: int) -> None:
    """Wait for ever, while the interpreter ends, unless this is the main thread or one that is in another operator."""
    if inside.count(thread) == 1 and thread != threading.main_thread().ident:
        inside.remove(thread)
        _parked.add(thread)
        threading.Event().wait()


def forget() -> None:
    """A forked child has none of its parent's other threads."""
    me = threading.get_ident()
    inside[:] = [thread for thread in inside if thread == me]
    left.clear()


def watch() -> None:
    """Wait at the end of the interpreter, before what has been registered for it until now."""
    atexit.register(_wait)


def _wait() -> None:
    global ending
    ending = True
    begun, me = time.monotonic(), threading.get_ident()
    while time.monotonic() < begun + _PATIENCE and any(thread != me for thread in list(inside)):
        time.sleep(0.001)
    now = time.monotonic()
    alive = {thread.ident for thread in threading.enumerate()} - {me}
    busy = {thread for thread, when in list(left.items()) if thread in alive and when > begun - 1}
    while time.monotonic() < now + _GRACE and not busy <= _parked:
        time.sleep(0.001)
