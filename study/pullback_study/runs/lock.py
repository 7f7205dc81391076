"""Locks that the operating system releases when their owner dies, however it dies.

They only save work: results are created once and training is deterministic, so that two processes that train the same run
publish the same numbers, once. Where the storage or the system offers no locks, every lock is granted.
"""

from __future__ import annotations

import contextlib
import errno
import os
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType

fcntl: ModuleType | None
try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

_TAKEN = {errno.EACCES, errno.EAGAIN, errno.EWOULDBLOCK}
_TRIES, _PAUSE_SECONDS = 5, 0.02  # `is_locked` of another process holds a lock for a moment


class BusyError(Exception):
    """Another process holds the lock."""


@contextlib.contextmanager
def locked(paths: Iterable[Path]) -> Iterator[None]:
    """Hold all of these lock files; raises `BusyError` if another process holds one of them."""
    with contextlib.ExitStack() as held:
        ordered = sorted(paths)
        _allow_open_files(len(ordered))
        for path in ordered:
            held.enter_context(_locked(path))
        yield


def is_locked(path: Path) -> bool:
    """Whether a process holds this lock file."""
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    except OSError:
        return False
    try:
        return not _lock(descriptor, shared=True)
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    descriptor = _acquire(path)
    try:
        yield
    finally:
        path.unlink(missing_ok=True)  # while it is held: whoever waits for this file finds out that it is gone
        os.close(descriptor)


def _acquire(path: Path) -> int:
    for _ in range(_TRIES):
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        if _lock(descriptor) and _is_at(descriptor, path):
            return descriptor
        os.close(descriptor)
        time.sleep(_PAUSE_SECONDS)
    raise BusyError(path)


def _lock(descriptor: int, *, shared: bool = False) -> bool:
    if fcntl is None:
        return True
    try:
        fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except OSError as error:
        return error.errno not in _TAKEN  # anything else: there are no locks on this storage
    return True


def _is_at(descriptor: int, path: Path) -> bool:
    """Whether the open file still has this name: the one who held it before has removed it."""
    try:
        mine, there = os.fstat(descriptor), os.stat(path)
    except FileNotFoundError:
        return False
    return (mine.st_ino, mine.st_dev) == (there.st_ino, there.st_dev)


def _allow_open_files(count: int) -> None:
    """Raise the limit on open files where a large group needs it, as far as the system permits."""
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if soft != resource.RLIM_INFINITY and count + 256 > soft:
            wanted = count + 256 if hard == resource.RLIM_INFINITY else min(hard, count + 256)
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
