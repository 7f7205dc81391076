"""Ctrl-C: training stops between two steps."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_SHOW_CURSOR = "\x1b[?25h"


@contextlib.contextmanager
def interruptible() -> Iterator[Callable[[], bool]]:
    """Turns the first Ctrl-C (or SIGTERM) into a flag; a second one ends the process."""
    flag = threading.Event()

    def interrupt(number: int, frame: Any) -> None:
        if flag.is_set():
            os.write(2, _SHOW_CURSOR.encode() if sys.stderr.isatty() else b"")
            os._exit(128 + number)
        flag.set()
        os.write(2, b"\nStopping: what is running is being saved. Press Ctrl-C again to quit at once.\n")

    if threading.current_thread() is not threading.main_thread():
        yield flag.is_set
        return
    before = {number: signal.signal(number, interrupt) for number in _SIGNALS}
    try:
        yield flag.is_set
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
