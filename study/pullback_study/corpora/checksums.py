"""SHA-256 of files; that of a large file is remembered until the file changes."""

from __future__ import annotations

import contextlib
import hashlib
import json
import time
from pathlib import Path

from pullback_study.corpora.files import open_plain
from pullback_study.runs import write_atomically

LARGE = 1 << 26  # bytes; smaller files take less than a tenth of a second
SETTLED = 2.0  # seconds after which another change is sure to get another time stamp


def sha256(path: Path) -> str:
    """The checksum of a file's content."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def content_sha256(path: Path) -> str:
    """The checksum of a file's content, unzipped if it is gzipped."""
    with open_plain(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def stamp(path: Path) -> list[str | int]:
    """What changes whenever a file does. Users can set the time of modification, but not the inode's time of change."""
    status = path.stat()
    return [str(path.resolve()), status.st_size, status.st_ino, status.st_mtime_ns, status.st_ctime_ns]


def is_settled(path: Path) -> bool:
    """Whether the last change is long enough ago for `stamp` to tell it from the next one."""
    return time.time() - path.stat().st_ctime > SETTLED


def remembered_sha256(path: Path, memory: Path | None) -> str:
    """`sha256`, remembered in the folder `memory` as long as the file's `stamp` stays the same."""
    if memory is None or path.stat().st_size < LARGE:
        return sha256(path)
    now = stamp(path)
    note = memory / f"{hashlib.sha256(str(now[0]).encode()).hexdigest()[:16]}.json"
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        known = json.loads(note.read_text())
        if known["stamp"] == now:
            return str(known["sha256"])
    checksum = sha256(path)
    if is_settled(path):
        with contextlib.suppress(OSError):
            write_atomically(note, json.dumps({"stamp": now, "sha256": checksum}))
    return checksum
