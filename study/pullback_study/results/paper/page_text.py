"""Latent trees on text in the report and on their results page."""

from __future__ import annotations

from pathlib import Path

from pullback_study.results.choice import Runs
from pullback_study.results.paper import claims_text, text
from pullback_study.results.paper.claims_text import Evidence
from pullback_study.results.paper.text import FULL, QUICK, STEPPED
from pullback_study.results.paper.verdicts import Claim, decide
from pullback_study.results.registry import Group, Section

_AGAIN = """## Claim 9 once more, with SNLI at the learning rates of the search

The same rule, but both tasks at the search's learning rates, so that no row is ahead by its rate. It was added when the results
at the paper's settings were known, and does not replace the verdict above."""
_VARIANTS = (
    ("Learning rates chosen by the same small search for every row", FULL, ("--search",)),
    ("The paper's best settings", FULL, ()),
    ("Quick runs", QUICK, ("--quick",)),
)


def groups(runs: Runs) -> list[Group]:
    """The table in every way it was run, the paper's in any case; and the figures. On the data of most of the runs."""
    found = []
    for title, scopes, words in _VARIANTS:
        tables = []
        for task, scope in scopes.items():
            scope = text.on_data_of(runs, scope)
            rows = text.with_others(scope, runs, search="--search" in words)
            table = text.results(text.TASKS[task].title, scope, rows, runs, *words)
            if table.runs or not words:
                tables.append(table)
        if tables:
            found.append(Group(title, tables, warning=tables[0].warning))
    scopes = {task: text.on_data_of(runs, scope) for task, scope in FULL.items()}
    figures = [text.curves(runs, scope, search=task == "sst") for task, scope in scopes.items()]
    drawn = [figure for figure in (*figures, text.steps(runs, scopes["sst"])) if figure.drawn]
    return found + ([Group("Figures", figures=drawn)] if drawn else [])


def claims(runs: Runs) -> list[Claim]:
    return decide(claims_text.CLAIMS, Evidence(runs), claims_text.MARGINS)


def page(runs: Runs, folder: Path) -> str:
    """All tables and verdicts as Markdown."""
    scopes = {task: text.on_data_of(runs, scope) for task, scope in FULL.items()}
    titles = {task: f"{scope.title}, {len(scope.seeds)} seeds" for task, scope in scopes.items()}
    both = [(task, search) for task in scopes for search in (True, False)]
    found = {(task, search): text.choose(scopes[task], runs, search=search) for task, search in both}

    def table(task: str, search: bool) -> str:
        words = ("--search",) if search else ()
        return text.results(titles[task], scopes[task], found[task, search], runs, *words).markdown()

    stepped = {name: found["sst", True][name] for name in STEPPED}
    parts = [
        "## SST, at the learning rate that the search chose for each row",
        table("sst", True), text.settings(found["sst", True]).markdown(),
        "## SST, at the paper's best settings", table("sst", False),
        "## SNLI, at the paper's best settings", table("snli", False),
        "## SNLI, at the learning rate that the search chose for each row",
        table("snli", True), text.settings(found["snli", True]).markdown(),
        "## SST, the number of inner steps", text.steps_table(titles["sst"], stepped, runs).markdown(),
        "## Time", *(text.speed(task, found[task, False]).markdown() for task in scopes),
        "## Verdicts", *(claim.table().markdown() for claim in claims(runs)),
        _AGAIN,
        *(claim.table().markdown() for claim in decide({9: claims_text.claim_9}, Evidence(runs, searched=("sst", "snli")))),
    ]  # fmt: skip
    return "\n\n".join(parts)


SECTION = Section(
    "Latent trees on text",
    "Table 2 of the paper: accuracy in percent on SST and SNLI, beside the paper's numbers.",
    groups, claims, page,
    [("reproduce", "table2", "--search"), ("reproduce", "table2", "--task", "snli"), ("reproduce", "steps", "--task", "sst")],
)  # fmt: skip
