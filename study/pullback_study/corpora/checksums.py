"""SHA-256 of files; that of a large file is remembered as long as nothing touches the file."""

from __future__ import annotations

import contextlib
import hashlib
import json
import time
from pathlib import Path

from pullback_study.corpora.files import open_plain
from pullback_study.runs import write_atomically

LARGE = 1 << 26  # bytes; smaller files take less than a tenth of a second
SETTLED = 2.0  # seconds since the last change, after which another one gets another time stamp


def sha256(path: Path) -> str:
    """The checksum of a file's content."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def content_sha256(path: Path) -> str:
    """The checksum of a file's content, unzipped if it is gzipped."""
    digest = hashlib.sha256()
    with open_plain(path) as file:
        while chunk := file.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()


def remembered_sha256(path: Path, memory: Path | None) -> str:
    """`sha256`, remembered in the folder `memory` under the file's path, size, inode and times of change.

    The inode's time of change moves with each write and cannot be set by a user, so that a file which was edited
    and given its old modification time back is read again.
    """
    status = path.stat()
    if memory is None or status.st_size < LARGE:
        return sha256(path)
    place = str(path.resolve())
    stamp = [place, status.st_size, status.st_ino, status.st_mtime_ns, status.st_ctime_ns]
    note = memory / f"{hashlib.sha256(place.encode()).hexdigest()[:16]}.json"
    with contextlib.suppress(OSError, ValueError):
        known = json.loads(note.read_text())
        if known["stamp"] == stamp:
            return known["sha256"]
    checksum = sha256(path)
    if time.time() - status.st_ctime > SETTLED:
        with contextlib.suppress(OSError):
            write_atomically(note, json.dumps({"stamp": stamp, "sha256": checksum}))
    return checksum
