"""The results page of the synthetic study: everything that comes from run directories, as Markdown."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path

from pullback_study import pages
from pullback_study.synthetic.claims import CLAIMS
from pullback_study.synthetic.evidence import Evidence
from pullback_study.synthetic.figures import draw_curves, draw_steps
from pullback_study.synthetic.methods import ERRATA, METHODS, ROWS
from pullback_study.synthetic.plans import FULL, SETTINGS, Cell, Scope, table_cell
from pullback_study.synthetic.tables import results_table, settings_table
from pullback_study.verdicts import claims_tables


def update(page: Path, root: Path) -> None:
    """Write the results between the two marks of a page, and the figures beside it; the rest stays."""
    pages.update(page, lambda: results(root, page.parent))


def results(root: Path, folder: Path) -> str:
    """All tables, figures and verdicts."""
    pulled_back = [name for name in ROWS if METHODS[name].pulled_back]
    double = dataclasses.replace(FULL, dtype="float64")
    parts = ["## The table, at the settings that validation accuracy chose from the paper's grid"]
    parts += _tables(root, ROWS, grid=True)
    parts += ["## The table, at the paper's best settings", *_tables(root, ROWS, grid=False)]
    cells = [table_cell(name, clusters, grid=True) for name in ROWS for clusters in SETTINGS]
    parts += ["## Chosen settings", settings_table(cells, root).markdown()]
    parts += ["## gamma of one example instead of the mean", *_tables(root, pulled_back, grid=True, scale="example")]
    parts += ["## float64 instead of float32", *_tables(root, pulled_back, grid=True, scope=double)]
    parts += ["## Errors of the released code, on purpose", *_tables(root, ERRATA, grid=True)]
    parts += ["## Figures", *_figures(root, folder)]
    parts += ["## Verdicts", *(table.markdown() for table in claims_tables(CLAIMS, Evidence(root)))]
    return "\n\n".join(parts)


def _tables(root: Path, names: Sequence[str], *, grid: bool, scale: str = "paper", scope: Scope = FULL) -> list[str]:
    def cells(clusters: int) -> list[Cell]:
        return [table_cell(name, clusters, grid=grid, gamma_scale=scale, scope=scope) for name in names]

    return [results_table(f"{clusters} clusters", cells(clusters), root).markdown() for clusters in SETTINGS]


def _figures(root: Path, folder: Path) -> list[str]:
    drawings: dict[str, Callable[[Scope, Path, Path], list[Path]]] = {
        "Learning curves": draw_curves,
        "Impact of multiple updates": draw_steps,
    }
    out = []
    for title, draw in drawings.items():
        try:
            written = draw(FULL, root, folder)
        except ValueError as error:
            out.append(f"{title}: {error}")
            continue
        out += [f"![{title}]({path.name})" for path in written if path.suffix == ".svg"]
        out += [f"[data]({path.name})" for path in written if path.suffix == ".csv"]
    return out
