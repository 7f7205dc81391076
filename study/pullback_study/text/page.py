"""The results page of the text studies: everything that comes from run directories, as Markdown."""

from __future__ import annotations

from pathlib import Path

from pullback_study import pages
from pullback_study.text.claims import CLAIMS, claim_9
from pullback_study.text.evidence import Evidence
from pullback_study.text.methods import ROWS
from pullback_study.text.plans import FULL, STEPPED, Scope, choose, table_cell
from pullback_study.text.tables import (
    Rows,
    results_table,
    settings_table,
    speed_table,
    steps_table,
)
from pullback_study.text.tasks import find_task
from pullback_study.verdicts import claims_tables

_AGAIN = """## Claim 9 once more, with SNLI at the learning rates of the search

The same rule, but both tasks at the search's learning rates, so that no row is ahead by its rate. It was added when the results
at the paper's settings were known, and does not replace the verdict above."""


def update(page: Path, root: Path) -> None:
    """Write the results between the two marks of a page; the rest stays."""
    pages.update(page, lambda: results(root))


def results(root: Path) -> str:
    """All tables and verdicts."""
    sst, snli = FULL["sst"], FULL["snli"]
    searched = _rows(sst, root, search=True)
    parts = [
        "## SST, at the learning rate that the search chose for each row",
        results_table(_title(sst), "sst", searched).markdown(),
        settings_table(searched).markdown(),
        "## SST, at the paper's best settings",
        results_table(_title(sst), "sst", paper := _rows(sst, root, search=False)).markdown(),
        "## SNLI, at the paper's best settings",
        results_table(_title(snli), "snli", pairs := _rows(snli, root, search=False)).markdown(),
        "## SNLI, at the learning rate that the search chose for each row",
        results_table(_title(snli), "snli", searched_pairs := _rows(snli, root, search=True)).markdown(),
        settings_table(searched_pairs).markdown(),
        "## SST, the number of inner steps",
        steps_table(_title(sst), [row for row in searched if row[0] in STEPPED], root).markdown(),
        "## Time",
        speed_table("sst", paper).markdown(),
        speed_table("snli", pairs).markdown(),
        "## Verdicts",
        *(table.markdown() for table in claims_tables(CLAIMS, Evidence(root))),
        _AGAIN,
        *(table.markdown() for table in claims_tables({9: claim_9}, Evidence(root, searched=("sst", "snli")))),
    ]
    return "\n\n".join(parts)


def _rows(scope: Scope, root: Path, *, search: bool) -> Rows:
    return [(name, choose(table_cell(name, scope, search=search), root)) for name in ROWS]


def _title(scope: Scope) -> str:
    return f"{find_task(scope.task).title}, {scope.epochs} epochs, {len(scope.seeds)} seeds"
