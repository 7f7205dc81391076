"""What there is in a folder of runs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pullback_study import index
from pullback_study.groups import is_claimed, unfinished

STATUSES = ("done", "running", "failed", "killed", "unreadable")


@dataclass(frozen=True)
class Listed:
    """A run as found on disk.

    Args:
        hash: the name of its directory.
        study: its study.
        config: its config, as plain values: it may come from another version of the study.
        status: done; running, by a process that lives; failed, with an error; killed, to be resumed; unreadable.
        result: its final numbers, its last evaluation, or its `error`.
        version: of the study.
    """

    hash: str
    study: str
    config: dict[str, Any]
    status: str
    result: dict[str, Any]
    version: int | None = None


def list_runs(root: Path, *, rebuild: bool = False) -> Iterator[Listed]:
    """Every run under `root`, from its index; `rebuild` reads every directory again."""
    claimed = {name for path, members in unfinished(root).items() if is_claimed(path) for name in members}
    for entry in index.entries(root, rebuild=rebuild):
        status = entry["state"]
        if entry["hash"] in claimed and status in ("open", "failed"):
            status = "running"
        elif status == "open":
            status = "killed"
        yield Listed(
            entry["hash"], str(entry["study"] or "?"), entry["config"], status, entry["numbers"], entry["version"]
        )
