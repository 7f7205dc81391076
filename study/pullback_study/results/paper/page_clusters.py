"""Synthetic clusters in the report and on their results page."""

from __future__ import annotations

from pathlib import Path

from pullback_study.results.choice import Runs
from pullback_study.results.figures import Figure
from pullback_study.results.paper import claims_clusters, clusters
from pullback_study.results.paper.clusters import MANY, QUICK, SETTINGS, VARIANTS
from pullback_study.results.paper.verdicts import Claim, decide
from pullback_study.results.registry import Group, Section
from pullback_study.results.tables import Table

_TITLES = {
    "grid": "The table, at the settings that validation accuracy chose from the paper's grid",
    "best": "The table, at the paper's best settings",
    "example": "gamma of one example instead of the mean",
    "float64": "float64 instead of float32",
    "errata": "Errors of the released code, on purpose",
}


def groups(runs: Runs) -> list[Group]:
    """The table in every way it was run, the paper's two in any case; and the figures."""
    found = []
    for name, variant in VARIANTS.items():
        tables = [clusters.results(clusters.with_others(variant, runs), k, runs) for k in SETTINGS]
        if name in ("grid", "best") or any(table.runs for table in tables):
            found.append(Group(variant.title, tables, warning=variant.scope.warning))
    for title, scope in (("Figures", clusters.FULL), ("Figures, quick runs", QUICK)):
        figures = [*(clusters.curves(runs, k, scope) for k in reversed(SETTINGS)), clusters.steps(runs, scope)]
        drawn = [figure for figure in figures if figure.drawn]
        if drawn:
            found.append(Group(title, figures=drawn, warning=scope.warning))
    return found


def claims(runs: Runs) -> list[Claim]:
    return decide(claims_clusters.CLAIMS, claims_clusters.Evidence.best(runs), claims_clusters.MARGINS)


def page(runs: Runs, folder: Path) -> str:
    """All tables, figures and verdicts as Markdown; the figures are written beside the page."""
    tables = {name: [clusters.results(VARIANTS[name], k, runs) for k in SETTINGS] for name in _TITLES}
    plans = [VARIANTS["grid"].plan(name, k) for name in clusters.ROWS for k in SETTINGS]
    parts = []
    for name, title in _TITLES.items():
        if name in ("grid", "best") or any(table.runs for table in tables[name]):
            parts += [f"## {title}", *_texts(tables[name])]
        if name == "best":
            parts += ["## Chosen settings", clusters.settings(plans, runs).markdown()]
    parts += _many(runs, folder)
    figures = [draw(runs, scope=scope) for scope in (clusters.FULL, MANY) for draw in (clusters.curves, clusters.steps)]
    parts += ["## Figures", *(_figure(figure, folder) for figure in figures)]
    parts += ["## Verdicts", *(claim.table().markdown() for claim in claims(runs))]
    return "\n\n".join(parts)


def _many(runs: Runs, folder: Path) -> list[str]:
    """The table with 48 seeds: all rows that have them, their quartiles, and the distribution of each row."""
    variant = clusters.with_others(VARIANTS["many"], runs)
    tables = [clusters.results(variant, k, runs, title=f"{k} clusters, {len(MANY.seeds)} seeds") for k in SETTINGS]
    drawn = [table.distribution(measure) for table in tables for measure in clusters.MEASURES]
    return [
        f"## {len(MANY.seeds)} seeds, at the settings that seeds 0 to 3 chose",
        *_texts([each for table in tables for each in (table, clusters.spreads(table))]),
        *(_figure(figure, folder) for figure in drawn),
    ]


def _texts(tables: list[Table]) -> list[str]:
    return [table.markdown() for table in tables]


def _figure(figure: Figure, folder: Path) -> str:
    if not figure.drawn:
        return f"{figure.title}: the runs are not done; `{figure.command}` makes them."
    figure.write(folder)
    return f"![{figure.title}]({figure.name}.svg)\n\n[data]({figure.name}.csv)"


SECTION = Section(
    "Synthetic clusters",
    "Table 1 of the paper: test accuracy and V-measure in percent, beside the paper's numbers.",
    groups, claims, page, [("reproduce", "table1", "--grid"), ("reproduce", "steps")],
)  # fmt: skip
