"""An index of a folder of runs: what each directory says, read again only where the directory has changed.

    <root>/.index.json     for each run directory, when it changed last and what was read from it

Files of a run appear by renames, which change the time of its directory; so one look at the directory tells whether what the
index knows is still true. The index is a copy and can go at any time: a missing, damaged or older one is made again.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pullback_study.runs import write_atomically

_NAME = ".index.json"
_FORMAT = 1
_SETTLED = 2e9
"""Nanoseconds. A directory that has changed this recently may change again within the resolution of its time."""


def entries(root: Path, *, rebuild: bool = False) -> Iterator[dict[str, Any]]:
    """What every run directory under `root` says, in the order of their names.

    Each is a dict of `hash`, `study`, `version`, `config`, `state` and `numbers`. The state is `done`, `failed`, `open`, or
    `unreadable`; the numbers are the results, the error, or the last evaluation.
    """
    known = {} if rebuild else _load(root)
    now, found, changed = time.time_ns(), {}, False
    for name, modified in _directories(root):
        old = known.get(name)
        if old is not None and old["modified"] == modified:
            found[name] = old
            continue
        entry = _read(root / name)
        if entry is not None:
            settled = modified < now - _SETTLED
            found[name] = {"modified": modified if settled else None, "entry": entry}
            changed |= settled
    if changed or known.keys() - found.keys():
        with contextlib.suppress(OSError):  # a folder that cannot be written to, or a full disk: it works without
            write_atomically(root / _NAME, json.dumps({"format": _FORMAT, "runs": found}, separators=(",", ":")))
    for name in sorted(found):
        yield {"hash": name, **found[name]["entry"]}


def _load(root: Path) -> dict[str, dict[str, Any]]:
    try:
        content = json.loads((root / _NAME).read_text())
        if content["format"] == _FORMAT and all({"modified", "entry"} == run.keys() for run in content["runs"].values()):
            return content["runs"]
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        pass
    return {}


def _directories(root: Path) -> Iterator[tuple[str, int]]:
    try:
        with os.scandir(root) as listing:
            for item in listing:
                if item.name != "groups" and not item.name.startswith("."):
                    with contextlib.suppress(OSError):
                        if item.is_dir():
                            yield item.name, item.stat().st_mtime_ns
    except FileNotFoundError:
        return


def _read(path: Path) -> dict[str, Any] | None:
    """A run directory; None if it is another kind of directory, without a config."""
    try:
        identity = json.loads((path / "config.json").read_text())
        if not isinstance(identity, dict) or not isinstance(identity.get("config"), dict):
            return _unreadable("config.json is not the config of a run")
        about = {name: identity.get(name) for name in ("study", "version", "config")}
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        return _unreadable(f"config.json: {error}")
    for state, name in (("done", "result.json"), ("failed", "error.json"), ("open", "metrics.jsonl")):
        try:
            text = (path / name).read_text()
            numbers = json.loads(text if state != "open" else text.splitlines()[-1])
            if not isinstance(numbers, dict):
                raise ValueError("not a table of numbers")
            return {**about, "state": state, "numbers": numbers}
        except (FileNotFoundError, IndexError):
            continue
        except (OSError, ValueError) as error:
            return {**about, "state": "unreadable", "numbers": {"error": f"{name}: {error}"}}
    return {**about, "state": "open", "numbers": {}}


def _unreadable(error: str) -> dict[str, Any]:
    return {"study": None, "version": None, "config": {}, "state": "unreadable", "numbers": {"error": error}}
