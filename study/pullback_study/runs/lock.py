"""Locks that the operating system releases when their owner dies, however it dies.

They only save work: results are created once and training is deterministic, so that two processes that train the same run
publish the same numbers, once. Where the storage offers no locks, every lock is granted.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import resource
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

_TAKEN = {errno.EACCES, errno.EAGAIN, errno.EWOULDBLOCK}
_TRIES, _PAUSE_SECONDS = 5, 0.02  # `is_locked` of another process holds a lock for a moment


class BusyError(Exception):
    """Another process holds the lock."""


@contextlib.contextmanager
def locked(paths: Iterable[Path]) -> Iterator[None]:
    """Hold all of these lock files; raises `BusyError` if another process holds one of them."""
    ordered = sorted(paths)
    _allow_open_files(len(ordered))
    with contextlib.ExitStack() as held:
        for path in ordered:
            held.callback(os.close, _acquire(path))
            held.callback(path.unlink, missing_ok=True)  # while it is held: whoever waits for it finds out that it is gone
        yield


def is_locked(path: Path) -> bool:
    """Whether a process holds this lock file."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return False
    try:
        return not _lock(descriptor, fcntl.LOCK_SH)
    finally:
        os.close(descriptor)


def _acquire(path: Path) -> int:
    for _ in range(_TRIES):
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        with contextlib.suppress(FileNotFoundError):  # the one who held it before may have removed it
            if _lock(descriptor, fcntl.LOCK_EX) and os.path.samestat(os.fstat(descriptor), os.stat(path)):
                return descriptor
        os.close(descriptor)
        time.sleep(_PAUSE_SECONDS)
    raise BusyError(path)


def _lock(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except OSError as error:
        return error.errno not in _TAKEN  # anything else: there are no locks on this storage
    return True


def _allow_open_files(count: int) -> None:
    """Raise the limit on open files where a large group needs it, as far as the system permits."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and count + 256 > soft:
        with contextlib.suppress(ValueError, OSError):
            wanted = count + 256 if hard == resource.RLIM_INFINITY else min(hard, count + 256)
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
