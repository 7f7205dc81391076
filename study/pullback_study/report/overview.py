"""What runs there are: how many of each study in each state, and those that need attention."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pullback_study.report.numbers import finite
from pullback_study.status import STATUSES, Listed

_MOST = 50
_LEFT_OUT = {"features", "train_examples", "validation_examples", "test_examples", "evaluate_every"}


def overview(listed: Mapping[str, Listed]) -> dict[str, Any]:
    """Counts by study and status; details of the first runs that are not done."""
    counts: dict[str, dict[str, int]] = {}
    for run in listed.values():
        study = counts.setdefault(str(run.study), dict.fromkeys(STATUSES, 0))
        study[run.status] = study.get(run.status, 0) + 1
    open_runs = [_open(run) for run in listed.values() if run.status != "done"]
    open_runs.sort(key=lambda run: (run["status"] != "failed", run["status"] != "running", run["what"]))
    return {"counts": counts, "open": open_runs[:_MOST], "more": max(0, len(open_runs) - _MOST)}


def _open(run: Listed) -> dict[str, Any]:
    config = run.config if isinstance(run.config, dict) else {}
    given = [f"{name} {config[name]}" for name in config if name not in _LEFT_OUT and config[name] is not None]
    result = run.result if isinstance(run.result, dict) else {}
    unit = "epoch" if "epochs" in config else "step"
    at, end = finite(result.get(unit)), finite(config.get(f"{unit}s"))
    return {
        "hash": run.hash, "status": run.status, "what": f"{run.study}: {', '.join(given)}",
        "progress": None if at is None or not end else round(at / end, 4),
        "error": str(result["error"])[:2000] if run.status in ("failed", "unreadable") and "error" in result else None,
    }  # fmt: skip
