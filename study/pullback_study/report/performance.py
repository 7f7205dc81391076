"""Benchmark tables from the JSON that `python -m benchmarks --json FILE` writes."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pullback_study.report.html import command, esc, notes, sortable

_Cell = tuple[str, object]


def find(folder: Path, given: Sequence[Path] | None = None) -> list[Path]:
    """The files that were named, which must be there; else those in `docs/` and in the folder of the runs."""
    for path in given or ():
        if not path.is_file():
            raise ValueError(f"--benchmarks {path} is not a file; `python -m benchmarks --json {path}` makes it")
    if given is not None:
        return list(given)
    there = (*sorted(Path("docs").glob("*.json")), *sorted(folder.glob("benchmarks*.json")))
    return [path for path in there if "rows" in _read(path)]


def render(files: Sequence[Path]) -> str:
    """For each file where and how it was measured, and a table for each benchmark."""
    return "".join(map(_measured, files))


def _measured(path: Path) -> str:
    whole = _read(path)
    try:
        groups: dict[str, list[dict[str, _Cell]]] = {}
        for row in whole["rows"]:
            groups.setdefault(str(row["benchmark"]), []).append(_row(row))
        where = ", ".join(f"{name}: {value}" for name, value in whole["environment"].items())
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        return notes([f"{path.name} is not a file of `python -m benchmarks --json`: {error!r}"])
    tables = ""
    for title, rows in groups.items():
        columns = list(dict.fromkeys(name for row in rows for name in row))
        tables += sortable(title, columns, [[row.get(name, ("", None)) for name in columns] for row in rows])
    return f"<p>{esc(path.name)}: {command(str(whole.get('command', '')))}</p>{notes([where])}{tables}"


def _row(row: dict[str, Any]) -> dict[str, _Cell]:
    timings = {f"{name}, ms": timing for name, timing in {"pullback": row.get("ours"), **row.get("peers", {})}.items()}
    compared = {"times faster than the fastest peer": row.get("ratio"), "largest difference": row.get("difference")}
    given = {"case": row["case"], "threads": row["threads"], **timings, **compared, **row.get("figures", {})}
    return {str(name): _cell(value) for name, value in {**given, "note": row.get("note")}.items() if value is not None}


def _cell(value: Any) -> _Cell:
    """A text, a number, or timings: their median ± half of the interquartile range, in ms."""
    if isinstance(value, dict):
        samples = [1e3 * sample for sample in value["samples"]]
        median = statistics.median(samples)
        low, _, high = statistics.quantiles(samples, n=4, method="inclusive") if len(samples) > 1 else (median,) * 3
        return f"{median:.4g} ± {(high - low) / 2:.2g}", median
    number = isinstance(value, int | float) and math.isfinite(value)
    return (f"{value:.4g}", value) if number else (esc(str(value).strip()), str(value))


def _read(path: Path) -> dict[str, Any]:
    try:
        whole = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return whole if isinstance(whole, dict) else {}
