"""What there is in a folder of runs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pullback.experiments.groups import is_claimed, unfinished
from pullback.experiments.runs import find

STATUSES = ("done", "running", "failed", "killed")


@dataclass(frozen=True)
class Listed:
    """A run as found on disk.

    Args:
        hash: the name of its directory.
        study: its study.
        config: its config, as plain values: it may come from another version of the study.
        status: done; running, by a process that lives; failed, with an error; killed, to be resumed.
        result: its final numbers, or its last evaluation.
    """

    hash: str
    study: str
    config: dict[str, Any]
    status: str
    result: dict[str, Any]


def list_runs(root: Path) -> Iterator[Listed]:
    """Every run under `root`."""
    claimed = {name for path, members in unfinished(root).items() if is_claimed(path) for name in members}
    for found in find(root):
        path: Path = found["path"]
        if (path / "result.json").exists():
            status = "done"
        elif path.name in claimed:
            status = "running"
        else:
            status = "failed" if (path / "error.json").exists() else "killed"
        yield Listed(path.name, found["study"], found["config"], status, _numbers(path, status))


def _numbers(path: Path, status: str) -> dict[str, Any]:
    try:
        if status == "done":
            return json.loads((path / "result.json").read_text())
        if status == "failed":
            return json.loads((path / "error.json").read_text())
        return json.loads((path / "metrics.jsonl").read_text().splitlines()[-1])
    except (OSError, ValueError, IndexError):
        return {}
