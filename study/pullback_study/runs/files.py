"""Files that appear complete or not at all, JSON, and locks that the operating system releases when their owner dies.

Locks only save work: results are created once and training is deterministic, so that two processes that train the same run
publish the same numbers, once. Where the storage offers no locks, every lock is granted.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import json
import os
import resource
import secrets
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

_NO_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK}
_TAKEN = {errno.EACCES, errno.EAGAIN, errno.EWOULDBLOCK}
_TRIES, _PAUSE_SECONDS = 5, 0.02  # `is_locked` of another process holds a lock for a moment


def content_hash(content: Any) -> str:
    """A name for a JSON value: the same content has the same name on every machine."""
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(canonical.encode()).hexdigest()[:16]


def write_atomically(path: Path, content: bytes | str) -> None:
    """Write a file so that it is there complete or not at all, also after a power cut or on a full disk.

    A link stays, and the file that it names is written. A pipe or a device stays, too, and receives the content.
    """
    if not path.name or path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if is_special(path):
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return
    path = Path(os.path.realpath(path))
    with _staged(path, content) as temporary:
        os.replace(temporary, path)


def is_special(path: Path) -> bool:
    """Whether there is something other than a file or a folder: a pipe, a device, a socket."""
    return path.exists() and not path.is_file() and not path.is_dir()


def create_once(path: Path, content: bytes | str) -> None:
    """Write a file as `write_atomically` does, unless there is one: raises `FileExistsError`."""
    with _staged(path, content) as temporary:
        try:
            os.link(temporary, path)
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            if path.exists():
                raise FileExistsError(path) from None
            os.replace(temporary, path)


def remove_leftovers(folder: Path) -> None:
    """Remove the temporary files of processes that were killed while they wrote. Nobody else may write there now."""
    for path in folder.glob(".*.tmp"):
        path.unlink(missing_ok=True)


def as_json(value: Any, indent: int | None = None) -> str:
    """NaN and infinities are not JSON: the numbers of a run that diverged become null."""
    return json.dumps(json.loads(json.dumps(value), parse_constant=lambda _: None), indent=indent)


def read_json(path: Path) -> dict[str, Any]:
    """The JSON object in a file; raises `ValueError` or `OSError` for whatever else is there."""
    return _parsed(_text(path), path.name)


def read_rows(path: Path) -> list[dict[str, Any]]:
    """The JSON objects in the lines of a file; none where there is no file."""
    lines = _text(path).splitlines() if path.exists() else []
    return [_parsed(line, path.name, before) for before, line in enumerate(lines)]


def _text(path: Path) -> str:
    if path.exists() and not path.is_file():  # a pipe would block, and a device might never end
        raise ValueError(f"{path.name} is not a file")
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path.name} is not text: {error}") from None


def _parsed(text: str, name: str, before: int = 0) -> dict[str, Any]:
    """The object in a text, which has lines before it in its file."""
    try:
        content = json.loads(text, parse_constant=lambda _: None)
    except json.JSONDecodeError as error:
        raise ValueError(f"{name} is not JSON: {error.msg}: line {before + error.lineno} column {error.colno}") from None
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{name} is not JSON: {error}") from None
    if not isinstance(content, dict):
        raise ValueError(f"{name} is not a JSON object" + f": line {before + 1}" * bool(before))
    return content


@contextlib.contextmanager
def _staged(path: Path, content: bytes | str) -> Iterator[Path]:
    """The content in a temporary file beside its place, to be moved there; what is moved survives a power cut."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        with open(temporary, "xb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
            file.flush()
            os.fsync(file.fileno())
        yield temporary
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


class BusyError(Exception):
    """Another process holds the lock."""


@contextlib.contextmanager
def locked(paths: Iterable[Path]) -> Iterator[None]:
    """Hold all of these lock files; raises `BusyError` if another process holds one of them."""
    ordered = sorted(paths)
    needed, (soft, hard) = len(ordered) + 256, resource.getrlimit(resource.RLIMIT_NOFILE)
    if 0 <= soft < needed:
        with contextlib.suppress(ValueError, OSError):  # as many open files as the system permits
            resource.setrlimit(resource.RLIMIT_NOFILE, (needed if hard < 0 else min(hard, needed), hard))
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
