"""Files that appear complete or not at all, and JSON."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import math
import os
import secrets
from pathlib import Path
from typing import Any

_NO_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK}


def content_hash(content: Any) -> str:
    """A name for a JSON value: the same content has the same name on every machine."""
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(canonical.encode()).hexdigest()[:16]


def write_atomically(path: Path, content: bytes | str) -> None:
    """Write a file so that it is there complete or not at all, also after a power cut or on a full disk."""
    temporary = _staged(path, content)
    os.replace(temporary, path)
    _sync(path.parent)


def create_once(path: Path, content: bytes | str) -> None:
    """Write a file as `write_atomically` does, unless there is one: raises `FileExistsError`."""
    temporary = _staged(path, content)
    try:
        try:
            os.link(temporary, path)
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            if path.exists():
                raise FileExistsError(path) from None
            os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
    _sync(path.parent)


def remove_leftovers(folder: Path) -> None:
    """Remove the temporary files of processes that were killed while they wrote. Nobody else may write there now."""
    for path in folder.glob(".*.tmp"):
        path.unlink(missing_ok=True)


def as_json(value: Any, indent: int | None = None) -> str:
    """NaN and infinities are not JSON: the numbers of a run that diverged become null."""
    return json.dumps(_finite(value), indent=indent, allow_nan=False)


def read_json(path: Path) -> dict[str, Any]:
    """The JSON object in a file; raises `ValueError` or `OSError` for whatever else is there."""
    return _parsed(_text(path), path.name)


def read_rows(path: Path) -> list[dict[str, Any]]:
    """The JSON objects in the lines of a file; none where there is no file."""
    return [_parsed(line, path.name) for line in _text(path).splitlines()] if path.exists() else []


def _text(path: Path) -> str:
    if path.exists() and not path.is_file():  # a pipe would block, and a device might never end
        raise ValueError(f"{path.name} is not a file")
    return path.read_text(encoding="utf-8")


def _parsed(text: str, name: str) -> dict[str, Any]:
    try:
        content = json.loads(text, parse_constant=lambda _: None)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{name} is not JSON: {error}") from None
    if not isinstance(content, dict):
        raise ValueError(f"{name} is not a JSON object")
    return content


def _staged(path: Path, content: bytes | str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        with open(temporary, "xb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
            file.flush()
            os.fsync(file.fileno())
    except OSError:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise
    return temporary


def _sync(folder: Path) -> None:
    """Make new names in a folder survive a power cut."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _finite(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return value
