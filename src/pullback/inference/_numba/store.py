"""Entries of the cache on disk: one file each, with a digest, so that whatever happened to a file shows before it is used."""

from __future__ import annotations

import hashlib
import uuid
from pathlib import Path

_DIGEST = hashlib.sha256().digest_size


def read(path: Path, stamp: bytes) -> bytes | None:
    """What was written with this stamp; None if there is nothing, or something else, or it is damaged."""
    try:
        content = path.read_bytes()
    except OSError:
        return None
    digest, payload = content[:_DIGEST], content[_DIGEST:]
    return payload if digest == hashlib.sha256(stamp + payload).digest() else None


def write(path: Path, stamp: bytes, payload: bytes) -> None:
    """Write an entry, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f"{path.name}.{uuid.uuid4().hex}.tmp")
    try:
        temporary.write_bytes(hashlib.sha256(stamp + payload).digest() + payload)
        temporary.replace(path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
