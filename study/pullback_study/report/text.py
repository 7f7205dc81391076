"""Table 2 of the paper, latent trees on SST and SNLI, from the text study's runs in every setting that was run."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pullback_study.paper import reported
from pullback_study.report.numbers import UNREADABLE, beside, command, finite, progress, shown
from pullback_study.status import Listed
from pullback_study.text.methods import METHODS, ROWS
from pullback_study.text.plans import FULL, QUICK, Cell, Chosen, Scope, choose, table_cell
from pullback_study.text.study import TextStudy
from pullback_study.text.tables import results_table
from pullback_study.text.tasks import find_task

MEASURES = {"validation": "Validation accuracy", "test": "Test accuracy"}


@dataclass(frozen=True)
class Variant:
    """One way to run the table.

    Args:
        name: in the page's state.
        title: for people.
        words: of the command that makes its runs.
        scopes: for each task how much is run.
        always: the tasks that are shown without any runs too.
    """

    name: str
    title: str
    words: tuple[str, ...]
    scopes: Mapping[str, Scope]
    always: tuple[str, ...] = ()

    def cell(self, name: str, task: str) -> Cell:
        return table_cell(name, self.scopes[task], search="--search" in self.words)


VARIANTS = (
    Variant("search", "Learning rates chosen by the same small search for every row", ("--search",), FULL, ("sst",)),
    Variant("best", "The paper's best settings", (), FULL, ("sst", "snli")),
    Variant("quick", "Quick runs: one seed, few epochs", ("--quick",), QUICK),
)


def tables(root: Path, listed: Mapping[str, Listed]) -> list[dict[str, Any]]:
    """The variants of the table: those with runs, and the paper's in any case."""
    found = [_table(variant, root, listed) for variant in VARIANTS]
    return [table for table in found if table["parts"]]


def _table(variant: Variant, root: Path, listed: Mapping[str, Listed]) -> dict[str, Any]:
    parts, runs = [], 0
    for task in variant.scopes:
        chosen = {name: _chosen(variant.cell(name, task), root) for name in ROWS}
        rows = [_row(name, task, chosen[name], variant, root, listed) for name in ROWS]
        started = sum(row["runs"].get("done", 0) + row["runs"].get("running", 0) for row in rows)
        runs += started
        if started or task in variant.always:
            parts.append({"title": find_task(task).title, "note": _made_with(task, chosen), "rows": rows})
    return {
        "name": variant.name, "title": variant.title, "runs": runs, "parts": parts,
        "measures": [{"name": name, "label": label} for name, label in MEASURES.items()],
        "command": command("reproduce", "table2", *variant.words, root=root),
    }  # fmt: skip


def _row(
    name: str, task: str, chosen: Chosen | str | None, variant: Variant, root: Path, listed: Mapping[str, Listed]
) -> dict[str, Any]:
    method, cell = METHODS[name], variant.cell(name, task)
    wanted = chosen.runs if isinstance(chosen, Chosen) else [TextStudy().run(c, root) for c in cell.deciding]
    hashes = [run.hash for run in wanted]
    row: dict[str, Any] = {
        "name": name, "label": method.row, "kind": method.kind or "Baselines", "stochastic": method.stochastic,
        "runs": progress(hashes, listed), "cells": {},
    }  # fmt: skip
    for measure in MEASURES:
        paper = reported("structured", method.row, find_task(task).title, measure)
        row["cells"][measure] = {"paper": shown(paper)}
        if isinstance(chosen, Chosen) and (runs := _values(chosen, f"{measure}_accuracy")):
            values = [math.nan if value is None else value for *_, value in runs]
            spread = statistics.stdev(values) if len(values) > 1 else math.nan
            row["cells"][measure] = {**beside(statistics.fmean(values), spread, paper), "runs": runs}
    if isinstance(chosen, Chosen):
        size = "" if chosen.config.step_size is None else f", step size {chosen.config.step_size:g}"
        row["setting"] = f"learning rate {chosen.config.learning_rate:g}{size}"
    if isinstance(chosen, str):
        row["problem"] = chosen
    if row["runs"].get("done", 0) < row["runs"]["total"] or not isinstance(chosen, Chosen):
        row["command"] = command("reproduce", "table2", "--task", task, *variant.words, "--only", name, root=root)
    return row


def _values(chosen: Chosen, measure: str) -> list[list[Any]]:
    done = [run for run in chosen.runs if run.done]
    return [[run.hash, run.config.seed, finite(run.result[measure])] for run in done]


def _chosen(cell: Cell, root: Path) -> Chosen | str | None:
    """The row's setting and runs; None while it is not known; an explanation where a run cannot be read."""
    try:
        chosen = choose(cell, root)
        if chosen is not None:
            for measure in MEASURES:
                _values(chosen, f"{measure}_accuracy")
        return chosen
    except UNREADABLE as error:
        return f"a run of this row cannot be read: {error!r}"


def _made_with(task: str, rows: Mapping[str, Chosen | str | None]) -> str:
    """The word vectors and the share of the data, in the words of the study's own table."""
    readable = [(name, chosen) for name, chosen in rows.items() if isinstance(chosen, Chosen)]
    try:
        return results_table("", task, readable).title.removeprefix(". ")
    except UNREADABLE as error:
        return f"what the runs were made with cannot be read: {error!r}"
