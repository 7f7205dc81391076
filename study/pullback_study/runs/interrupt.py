"""Ctrl-C: acknowledged at once, also while a kernel compiles; training then stops between two steps."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_SHOW_CURSOR = "\x1b[?25h"


@contextlib.contextmanager
def interruptible() -> Iterator[Callable[[], bool]]:
    """Turns the first Ctrl-C (or SIGTERM) into a flag; a second one ends the process.

    Python runs signal handlers between two instructions, which a compiler may keep waiting for a long time. The
    interpreter's wakeup descriptor is written to at once, and a thread reads it.
    """
    flag = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield flag.is_set
        return
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    listener = threading.Thread(target=_listen, args=(reader, flag), daemon=True)
    before = {number: signal.signal(number, lambda *_: flag.set()) for number in _SIGNALS}
    descriptor = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    listener.start()
    try:
        yield flag.is_set
    finally:
        signal.set_wakeup_fd(descriptor)
        for number, handler in before.items():
            signal.signal(number, handler)
        os.close(writer)
        listener.join()
        os.close(reader)


def _listen(reader: int, flag: threading.Event) -> None:
    while signals := os.read(reader, 1):
        if signals[0] not in _SIGNALS:
            continue
        if flag.is_set() and getattr(flag, "acknowledged", False):
            if sys.stderr.isatty():
                os.write(2, _SHOW_CURSOR.encode())
            os._exit(128 + signals[0])
        flag.set()
        flag.acknowledged = True  # type: ignore[attr-defined]
        os.write(2, b"\nStopping: what is running is being saved. Press Ctrl-C again to quit at once.\n")
