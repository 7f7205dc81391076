"""`pullback reproduce`: the paper's tables and figures."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pullback_study.cli import reproduce_text
from pullback_study.cli.options import (
    SETTINGS,
    DataOption,
    Device,
    DeviceOption,
    FiguresOption,
    MarkdownOption,
    Precision,
    QuickOption,
    RunsOption,
    Scale,
    TensorBoardOption,
)
from pullback_study.terminal import console, train, user_errors

if TYPE_CHECKING:
    from pullback_study.synthetic.plans import Cell, Scope

app = typer.Typer(help="Make the paper's tables and figures.", **SETTINGS)


class Steps(StrEnum):
    synthetic = "synthetic"
    sst = "sst"
    snli = "snli"


class Page(StrEnum):
    synthetic = "synthetic"
    text = "text"


@app.command("table1")
def table1(
    quick: QuickOption = False,
    grid: Annotated[bool, typer.Option("--grid", help="Search the paper's grid by validation accuracy.")] = False,
    gamma_scale: Annotated[Scale, typer.Option(help="The paper's scale of gamma, per example, or both.")] = Scale.paper,
    errata: Annotated[bool, typer.Option("--errata", help="Add rows with errors of the released code.")] = False,
    only: Annotated[list[str] | None, typer.Option(help="Only this row; repeat it for several.")] = None,
    dtype: Precision = Precision.float32,
    workers: reproduce_text.WorkersOption = None,
    runs: RunsOption = Path("runs"),
    device: DeviceOption = Device.auto,
    tensorboard: TensorBoardOption = False,
    markdown: MarkdownOption = False,
) -> None:
    """Synthetic clusters: accuracy and V-measure of every method, beside the paper's.

    For example:

    - `pullback reproduce table1 --quick`
    - `pullback reproduce table1 --grid --gamma-scale both --device cuda`
    """
    from pullback_study.synthetic import methods, plans, tables
    from pullback_study.synthetic.study import Synthetic

    with user_errors():
        wanted = [methods.find_method(name).name for name in only or methods.ROWS]
    scope = _scope(quick, dtype.value)
    scales = ("paper", "example") if gamma_scale is Scale.both else (gamma_scale.value,)
    parts: list[tuple[str, list[Cell]]] = []
    for scale in scales:
        names = [name for name in wanted if scale == scales[0] or methods.METHODS[name].pulled_back]
        for clusters in plans.SETTINGS:
            rows = [*names, *(methods.ERRATA if errata and scale == scales[0] else ())]
            cells = [plans.table_cell(name, clusters, grid=grid, gamma_scale=scale, scope=scope) for name in rows]
            parts.append((f"{clusters} clusters, gamma of {_SCALES[scale]}", cells))
    configs = [config for _, cells in parts for cell in cells for config in cell.configs]
    train(Synthetic(), configs, runs, device=device.value, tensorboard=tensorboard, workers=workers)
    for title, cells in parts:
        _show(tables.results_table(title, cells, runs), markdown)
    if grid or not quick:
        _show(tables.settings_table([cell for _, cells in parts for cell in cells], runs), markdown)
    _say_what_was_reduced(scope, quick)


app.command("table2")(reproduce_text.table2)


@app.command("curves")
def curves(
    quick: QuickOption = False,
    workers: reproduce_text.WorkersOption = None,
    runs: RunsOption = Path("runs"),
    figures: FiguresOption = Path("figures"),
    device: DeviceOption = Device.auto,
    tensorboard: TensorBoardOption = False,
) -> None:
    """Synthetic clusters: learning curves, 10 clusters.

    For example: `pullback reproduce curves --quick`
    """
    from pullback_study.synthetic.figures import curves_cells, draw_curves

    _figure(curves_cells, draw_curves, quick, workers, runs, figures, device, tensorboard)


@app.command("steps")
def steps(
    task: Annotated[Steps, typer.Option(help="Synthetic clusters, SST or SNLI.")] = Steps.synthetic,
    quick: QuickOption = False,
    vectors: Annotated[
        str | None, typer.Option(help="Word vectors of SST and SNLI: a name in `vectors/`, or a file.")
    ] = None,
    workers: reproduce_text.WorkersOption = None,
    data: DataOption = None,
    runs: RunsOption = Path("runs"),
    figures: FiguresOption = Path("figures"),
    device: DeviceOption = Device.auto,
    tensorboard: TensorBoardOption = False,
    markdown: MarkdownOption = False,
) -> None:
    """The impact of multiple updates.

    Synthetic clusters: a figure, 10 clusters, 1 to 10 inner steps. SST: a table, SPIGOT, SPIGOT-CE and SPIGOT-EG at 1, 2 and 5
    inner steps, each at the learning rate that `table2 --search` chose.

    For example:

    - `pullback reproduce steps --quick`
    - `pullback reproduce steps --task sst --data DATA --vectors glove.840B.300d`
    """
    if task is not Steps.synthetic:
        reproduce_text.steps(task.value, quick, vectors, workers, data, runs, device.value, tensorboard, markdown)
        return
    from pullback_study.synthetic.figures import draw_steps, steps_cells

    _figure(steps_cells, draw_steps, quick, workers, runs, figures, device, tensorboard)


@app.command("claims")
def claims(
    runs: RunsOption = Path("runs"), dtype: Precision = Precision.float32, markdown: MarkdownOption = False
) -> None:
    """Verdicts on the paper's claims, from the runs that are there; it trains nothing.

    They need `pullback reproduce table1 --grid` and `steps`; those on text need `table2 --search`, `steps --task sst` and
    `table2 --task snli`.
    """
    from pullback_study.synthetic import claims as on_clusters
    from pullback_study.synthetic.evidence import Evidence
    from pullback_study.text import claims as on_text
    from pullback_study.text.evidence import Evidence as TextEvidence
    from pullback_study.verdicts import claims_tables

    tables = claims_tables(on_clusters.CLAIMS, Evidence(runs, _scope(False, dtype.value)))
    for table in [*tables, *claims_tables(on_text.CLAIMS, TextEvidence(runs))]:
        _show(table, markdown)


@app.command("page")
def page(
    path: Annotated[Path | None, typer.Argument(help="A Markdown file with two marks.")] = None,
    study: Annotated[Page, typer.Option(help="Whose results.")] = Page.synthetic,
    runs: RunsOption = Path("runs"),
) -> None:
    """Write a results page and its figures from the runs that are there; it trains nothing.

    The page is `docs/results/synthetic.md` or `docs/results/text.md` by default.

    For example: `pullback reproduce page --study text`
    """
    from pullback_study.synthetic import page as synthetic_page
    from pullback_study.text import page as text_page

    path = path or Path("docs/results") / f"{study.value}.md"
    with user_errors():
        (text_page if study is Page.text else synthetic_page).update(path, runs)
    console.print(f"wrote {path}", highlight=False, soft_wrap=True)


_SCALES = {"paper": "the mean loss, as the paper's", "example": "one example's loss"}


def _figure(
    cells: Callable[[Scope], list[Cell]],
    draw: Callable[[Scope, Path, Path], list[Path]],
    quick: bool,
    workers: int | None,
    runs: Path,
    figures: Path,
    device: Device,
    tensorboard: bool,
) -> None:
    from pullback_study.synthetic.study import Synthetic

    scope = _scope(quick, "float32")
    configs = [config for cell in cells(scope) for config in cell.configs]
    train(Synthetic(), configs, runs, device=device.value, tensorboard=tensorboard, workers=workers)
    written = draw(scope, runs, figures)
    for path in written:
        console.print(f"wrote {path}", highlight=False, soft_wrap=True)
    if len(written) == 1:
        console.print("Only the data: Matplotlib is not installed. pip install 'pullback-study'", soft_wrap=True)
    _say_what_was_reduced(scope, quick)


def _scope(quick: bool, dtype: str) -> Scope:
    from pullback_study.synthetic.plans import FULL, QUICK

    return dataclasses.replace(QUICK if quick else FULL, dtype=dtype)


def _show(table: Any, markdown: bool) -> None:
    shown = table.markdown() + "\n" if markdown else table.rich()
    console.print(shown, markup=False, highlight=False, soft_wrap=markdown)


def _say_what_was_reduced(scope: Scope, quick: bool) -> None:
    if quick:
        console.print(
            f"Reduced by --quick: {len(scope.seeds)} seeds instead of 4, {scope.steps} steps instead of 10000, no "
            f"search for settings that the paper does not list. These numbers only show the shape of the paper's.",
            highlight=False, soft_wrap=True,
        )  # fmt: skip
