"""Processes that need the same kernel take turns: one compiles it, and the others read what it has kept.

A lock of the operating system on a file beside the kernel's, which ends with its process. Where there is none, or no file can
be made, or a process takes longer than `PATIENCE`, each compiles for itself, as it would alone.
"""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

PATIENCE = 60.0  # seconds


class Turn:
    """The right to compile one kernel, from `take` to `end`."""

    def __init__(self) -> None:
        self._held: tuple[int, Path] | None = None

    def take(self, path: Path | None) -> None:
        """Wait while the kernel of this file is being compiled elsewhere; a kernel that is not kept has no file."""
        self.end()
        if path is None:
            return
        lock = path.with_name(f"{path.name}.lock")
        try:
            lock.parent.mkdir(parents=True, exist_ok=True)
            file = os.open(lock, os.O_CREAT | os.O_RDWR, 0o666)
        except OSError:
            return
        if _locked(file):
            self._held = file, lock
        else:
            os.close(file)

    def end(self) -> None:
        """Let the next process take its turn."""
        if self._held is not None:
            (file, lock), self._held = self._held, None
            with contextlib.suppress(OSError):
                lock.unlink(missing_ok=True)
            fcntl.flock(file, fcntl.LOCK_UN)  # also for children that have been forked since
            os.close(file)


def _locked(file: int) -> bool:
    """Whether the lock on an open file could be had in time."""
    until = time.monotonic() + PATIENCE
    while fcntl is not None and time.monotonic() < until:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            time.sleep(0.02)
        except OSError:  # a file system without locks
            break
    return False
