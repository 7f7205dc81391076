"""A run: a frozen config in, a directory out.

    <root>/<hash of the study, its version and the config>/
        config.json      the study, its version and the config
        metrics.jsonl    one line for each evaluation
        result.json      the final numbers and where they come from; exists when, and only when, the run is done
        checkpoint.pt    the final parameters (tensors only: `torch.load(..., weights_only=True)`)
        error.json       why it failed, until it is tried again

Every file appears complete or not at all, so that a reader never sees half of one, and `result.json` appears once: it is
created where there is none, and never replaced.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import math
import os
import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol


def content_hash(content: Any) -> str:
    """A name for a JSON value: the same content has the same name on every machine."""
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(canonical.encode()).hexdigest()[:16]


def write_atomically(path: Path, content: bytes | str) -> None:
    """Write a file so that it is there complete or not at all, also after a power cut or on a full disk."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    write_file(temporary, content)
    os.replace(temporary, path)
    sync_folder(path.parent)


def write_file(path: Path, content: bytes | str) -> None:
    """Write a new file to the disk; leaves none behind if that fails."""
    with open(path, "xb") as file:
        try:
            file.write(content.encode() if isinstance(content, str) else content)
            file.flush()
            os.fsync(file.fileno())
        except OSError:
            with contextlib.suppress(OSError):
                path.unlink(missing_ok=True)
            raise


def sync_folder(path: Path) -> None:
    """Make new names in a folder survive a power cut."""
    folder = os.open(path, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


class Files(Protocol):
    """How files of a run are published: `Plain`, or under a lease that may be lost."""

    def replace(self, path: Path, content: bytes | str) -> None: ...

    def create(self, path: Path, content: bytes | str) -> None:
        """Raises `FileExistsError` where there is such a file."""


class Plain:
    """Files that no other process writes."""

    def replace(self, path: Path, content: bytes | str) -> None:
        write_atomically(path, content)

    def create(self, path: Path, content: bytes | str) -> None:
        if path.exists():
            raise FileExistsError(path)
        write_atomically(path, content)


@dataclass(frozen=True)
class Run:
    """One config of one version of a study, and its directory under `root`.

    Args:
        root: the folder that holds all runs.
        study: the study's name.
        version: the study's version; it goes up when a fix changes results, so that old ones are never reused.
        config: a frozen dataclass of plain values.
    """

    root: Path
    study: str
    version: int
    config: Any

    @property
    def hash(self) -> str:
        return content_hash(self.identity)

    @property
    def identity(self) -> dict[str, Any]:
        return {"study": self.study, "version": self.version, "config": dataclasses.asdict(self.config)}

    @property
    def path(self) -> Path:
        return self.root / self.hash

    @property
    def done(self) -> bool:
        return (self.path / "result.json").exists()

    @property
    def result(self) -> dict[str, Any]:
        return json.loads((self.path / "result.json").read_text())

    @property
    def metrics(self) -> list[dict[str, Any]]:
        """The evaluations so far, in order of their steps."""
        path = self.path / "metrics.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    @property
    def error(self) -> dict[str, Any] | None:
        path = self.path / "error.json"
        return json.loads(path.read_text()) if path.exists() else None

    def start(self, files: Files | None = None) -> None:
        """Create the directory with its config, and forget an earlier failure."""
        if not (self.path / "config.json").exists():
            (files or Plain()).replace(self.path / "config.json", _as_json(self.identity, indent=1))
        (self.path / "error.json").unlink(missing_ok=True)

    def write_metrics(self, rows: Iterable[dict[str, Any]], files: Files | None = None) -> None:
        (files or Plain()).replace(self.path / "metrics.jsonl", "".join(_as_json(row) + "\n" for row in rows))

    def publish(self, result: dict[str, Any], files: Files | None = None) -> None:
        """Write the final numbers, once: from here on the run is done, and never trained again."""
        (files or Plain()).create(self.path / "result.json", _as_json(result, indent=1))

    def fail(self, message: str, files: Files | None = None, traceback: str = "") -> None:
        content = {"error": message, "traceback": traceback} if traceback else {"error": message}
        (files or Plain()).replace(self.path / "error.json", _as_json(content))

    def problem(self) -> str | None:
        """Why this directory cannot be used, in words; None if it can, or is not there yet."""
        remedy = "make it readable, or delete it to train this run from the start"
        try:
            if not self.path.exists():
                return None
            if not self.path.is_dir() or not os.access(self.path, os.R_OK | os.W_OK | os.X_OK):
                return f"{self.path} is not a folder that can be read and written; {remedy}"
            config, result = self.path / "config.json", self.path / "result.json"
            if config.exists() and json.loads(config.read_text()) != json.loads(_as_json(self.identity)):
                return f"{config} is not the config of this run; {remedy}"
            if result.exists() and not isinstance(json.loads(result.read_text()), dict):
                return f"{result} holds no result; {remedy}"
        except (OSError, ValueError) as error:
            return f"{self.path} cannot be read ({error}); {remedy}"
        return None


def _as_json(value: Any, indent: int | None = None) -> str:
    return json.dumps(_finite(value), indent=indent, allow_nan=False)


def _finite(value: Any) -> Any:
    """NaN and infinities are not JSON: a diverged run's numbers become null."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    return value
