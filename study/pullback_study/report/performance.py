"""Benchmark tables from the JSON that `python -m benchmarks --json FILE` writes."""

from __future__ import annotations

import json
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pullback_study.report.numbers import UNREADABLE, finite


def find(root: Path) -> list[Path]:
    """Benchmark files in the usual places: `docs/` and the folder of the runs."""
    places = [*sorted(Path("docs").glob("*.json")), *sorted(root.glob("benchmarks*.json"))]
    return [path for path in places if "rows" in _read(path)]


def performance(files: Sequence[Path]) -> list[dict[str, Any]]:
    """For each file where and how it was measured, and a table for each benchmark."""
    return [_measured(path) for path in files]


def _measured(path: Path) -> dict[str, Any]:
    whole = _read(path)
    try:
        groups: dict[str, list[dict[str, Any]]] = {}
        for row in whole["rows"]:
            groups.setdefault(str(row["benchmark"]), []).append(_row(row))
        tables = [{"title": name, **_table(rows)} for name, rows in groups.items()]
        environment = [[str(name), str(value)] for name, value in whole["environment"].items()]
    except UNREADABLE as error:
        return {"file": path.name, "problem": f"not a file of `python -m benchmarks --json`: {error!r}"}
    return {"file": path.name, "command": str(whole.get("command", "")), "environment": environment, "tables": tables}


def _table(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    columns = list(dict.fromkeys(name for row in rows for name in row))
    if "note" in columns:
        columns.append(columns.pop(columns.index("note")))
    return {"columns": columns, "rows": [[row.get(name) for name in columns] for row in rows]}


def _row(row: dict[str, Any]) -> dict[str, Any]:
    """Each cell is [what is shown, what it is sorted by]."""
    found: dict[str, Any] = {"case": [str(row["case"]), None], "threads": [str(row["threads"]), row["threads"]]}
    ours = row.get("ours")
    if ours is not None:
        found["pullback, ms"] = _timing(ours)
    for name, timing in row.get("peers", {}).items():
        found[f"{name}, ms"] = _timing(timing)
    if row.get("ratio") is not None:
        found["times faster than the fastest peer"] = [f"{row['ratio']:.3g}×", finite(row["ratio"])]
    if row.get("difference") is not None:
        found["largest difference"] = [f"{row['difference']:.1e}", finite(row["difference"], 12)]
    for name, figure in row.get("figures", {}).items():
        found[str(name)] = _timing(figure) if isinstance(figure, dict) else _figure(figure)
    if row.get("note"):
        found["note"] = [str(row["note"]).strip(), None]
    return found


def _figure(figure: Any) -> list[Any]:
    value = finite(figure, 9)
    return [str(figure), None] if value is None else [f"{value:.4g}", value]


def _timing(timing: dict[str, Any]) -> list[Any]:
    """Median ± half of the interquartile range, in ms."""
    samples = [1e3 * sample for sample in timing["samples"]]
    median = statistics.median(samples)
    low, _, high = statistics.quantiles(samples, n=4, method="inclusive") if len(samples) > 1 else (median,) * 3
    return [f"{_digits(median)} ± {_digits((high - low) / 2)}", finite(median, 9)]


def _digits(value: float) -> str:
    if value >= 100:
        return f"{value:.0f}"
    return f"{value:.3f}" if value < 1 else f"{value:.3g}"


def _read(path: Path) -> dict[str, Any]:
    try:
        whole = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return whole if isinstance(whole, dict) else {}
