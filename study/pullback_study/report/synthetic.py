"""Table 1 of the paper from the synthetic study's runs, in every setting that was run."""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pullback_study.paper import Reported, reported
from pullback_study.report.numbers import UNREADABLE, beside, command, finite, progress, shown
from pullback_study.statistics import standard_error
from pullback_study.status import Listed
from pullback_study.synthetic.methods import ERRATA, METHODS, ROWS
from pullback_study.synthetic.plans import FULL, QUICK, SETTINGS, Cell, Chosen, Scope, choose, table_cell
from pullback_study.synthetic.study import Synthetic

MEASURES = {"accuracy": "Accuracy", "v_measure": "V-measure"}


@dataclass(frozen=True)
class Variant:
    """One way to run the table.

    Args:
        name: in the page's state.
        title: for people.
        rows: the methods.
        words: of the command that makes its runs.
        cell: from a method and a number of clusters to the runs of that cell.
        always: shown without any runs too.
    """

    name: str
    title: str
    rows: Sequence[str]
    words: tuple[str, ...]
    cell: Callable[[str, int], Cell]
    always: bool = False


def _variant(
    name: str, title: str, rows: Sequence[str], *words: str, scope: Scope = FULL, scale: str = "paper"
) -> Variant:
    def cell(method: str, clusters: int) -> Cell:
        return table_cell(method, clusters, grid="--grid" in words, gamma_scale=scale, scope=scope)

    return Variant(name, title, rows, words, cell, always=name in ("grid", "best"))


_PULLED_BACK = [name for name in ROWS if METHODS[name].pulled_back]
VARIANTS = (
    _variant("grid", "Settings chosen from the paper's grid", ROWS, "--grid"),
    _variant("best", "The paper's best settings", ROWS),
    _variant(
        "example", "Step sizes on one example's gradient", _PULLED_BACK, "--grid", "--gamma-scale", "example",
        scale="example",
    ),
    _variant(
        "float64", "In double precision", _PULLED_BACK, "--grid", "--dtype", "float64",
        scope=dataclasses.replace(FULL, dtype="float64"),
    ),
    _variant("errata", "With errors of the released code, on purpose", ERRATA, "--grid"),
    _variant("quick", "Quick runs: 2 seeds, 1000 steps", ROWS, "--quick", scope=QUICK),
)  # fmt: skip


def tables(root: Path, listed: Mapping[str, Listed]) -> list[dict[str, Any]]:
    """The variants of the table: those with runs, and the two that are the paper's in any case."""
    found = [_table(variant, root, listed) for variant in VARIANTS]
    return [table for variant, table in zip(VARIANTS, found, strict=True) if variant.always or table["runs"]]


def _table(variant: Variant, root: Path, listed: Mapping[str, Listed]) -> dict[str, Any]:
    parts, runs = [], 0
    for clusters in SETTINGS:
        rows = []
        for name in variant.rows:
            cell = variant.cell(name, clusters)
            row = _row(cell, variant, root, listed)
            runs += row["runs"].get("done", 0) + row["runs"].get("running", 0)
            rows.append(row)
        parts.append({"title": f"{clusters} clusters", "rows": rows})
    return {
        "name": variant.name, "title": variant.title, "runs": runs, "parts": parts,
        "measures": [{"name": name, "label": label} for name, label in MEASURES.items()],
        "command": command("reproduce", "table1", *variant.words, root=root),
    }  # fmt: skip


def _row(cell: Cell, variant: Variant, root: Path, listed: Mapping[str, Listed]) -> dict[str, Any]:
    method = METHODS[cell.estimator]
    row: dict[str, Any] = {
        "name": method.name, "label": method.row, "kind": method.kind, "stochastic": method.stochastic,
        "runs": progress([Synthetic().run(config, root).hash for config in cell.configs], listed),
    }  # fmt: skip
    papers = {measure: _paper(cell, measure) for measure in MEASURES}
    try:
        chosen = choose(cell, root)
        if chosen is not None:
            row["setting"] = _setting(chosen)
            row["cells"] = {measure: _number(chosen, f"test_{measure}", paper) for measure, paper in papers.items()}
            return row
    except UNREADABLE as error:
        row["problem"] = f"a run of this row cannot be read: {error!r}"
    row["cells"] = {measure: {"paper": shown(paper)} for measure, paper in papers.items()}
    row["command"] = command("reproduce", "table1", *variant.words, "--only", method.name, root=root)
    return row


def _setting(chosen: Chosen) -> str:
    """The learning rate and the step size, in words."""
    config = chosen.config
    size = "" if config.step_size is None else f", step size {config.step_size:g}"
    return f"learning rate {config.learning_rate:g}{size}"


def _number(chosen: Chosen, measure: str, paper: Reported | None) -> dict[str, Any]:
    """The median, and what is behind it: hash, seed and value of each run."""
    values = chosen.values(measure)
    runs = [[run.hash, run.config.seed, finite(value)] for run, value in zip(chosen.runs, values, strict=True)]
    return {**beside(statistics.median(values), standard_error(values), paper), "runs": runs}


def _paper(cell: Cell, measure: str) -> Reported | None:
    method = METHODS[cell.estimator]
    return reported("synthetic", method.row, f"{cell.clusters} clusters", measure) if method.in_paper else None
