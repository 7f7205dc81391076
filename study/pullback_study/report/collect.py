"""Everything the page shows, as one JSON value, from run directories alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pullback
from pullback_study.report import figures, synthetic, text, text_figures
from pullback_study.report.claims import claims
from pullback_study.report.forest import forest
from pullback_study.report.numbers import plain
from pullback_study.report.overview import overview
from pullback_study.report.performance import performance
from pullback_study.status import Listed, list_runs


def collect(root: Path, benchmarks: Sequence[Path] = ()) -> dict[str, Any]:
    """All sections of the report.

    Args:
        root: the folder of the runs; one that is not there is one without runs.
        benchmarks: files of `python -m benchmarks --json`.
    """
    listed = {run.hash: run for run in list_runs(root)}
    return plain({
        "pullback": pullback.__version__,
        "root": str(root),
        "runs": {**overview(listed), "made_with": _made_with(listed)},
        "table1": synthetic.tables(root, listed),
        "table2": text.tables(root, listed),
        "curves": [*figures.curves(root, listed), *text_figures.curves(root, listed)],
        "steps": [*figures.steps(root, listed), *text_figures.steps(root, listed)],
        "claims": claims(root),
        "trees": forest(root, listed),
        "performance": performance(benchmarks),
    })  # fmt: skip


def _made_with(listed: Mapping[str, Listed]) -> list[list[Any]]:
    """Devices and versions of the runs that are done, the most frequent first."""
    where = Counter(
        ", ".join(
            f"{name} {result[name]}" if name != "device" else str(result[name])
            for name in ("device", "torch", "pullback")
            if result.get(name)
        )
        for run in listed.values()
        if run.status == "done" and isinstance(result := run.result, dict)
    )
    return [[name, count] for name, count in where.most_common(5) if name]
