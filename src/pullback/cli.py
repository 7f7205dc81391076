"""The command line: `pullback train`, `pullback runs`, `pullback reproduce`."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pullback.experiments.terminal import console, train, user_errors

if TYPE_CHECKING:
    from pullback.experiments.synthetic.plans import Cell, Scope

_SETTINGS: dict[str, Any] = {"no_args_is_help": True, "context_settings": {"help_option_names": ["-h", "--help"]}}
app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode="markdown", **_SETTINGS)
train_app = typer.Typer(help="Train one model of a study.", rich_markup_mode="markdown", **_SETTINGS)
reproduce_app = typer.Typer(help="Make the paper's tables and figures.", rich_markup_mode="markdown", **_SETTINGS)
app.add_typer(train_app, name="train")
app.add_typer(reproduce_app, name="reproduce")


class Device(StrEnum):
    auto = "auto"
    cpu = "cpu"
    cuda = "cuda"


class Scale(StrEnum):
    paper = "paper"
    example = "example"
    both = "both"


class Precision(StrEnum):
    float32 = "float32"
    float64 = "float64"


RunsOption = Annotated[Path, typer.Option("--runs", help="The folder of run directories.")]
FiguresOption = Annotated[Path, typer.Option("--figures", help="The folder for figures.")]
DeviceOption = Annotated[Device, typer.Option(help="Where to train; `auto` takes a GPU if there is one.")]
QuickOption = Annotated[bool, typer.Option("--quick", help="A small version: fewer seeds, fewer steps.")]
TensorBoardOption = Annotated[
    bool, typer.Option("--tensorboard/--no-tensorboard", help="Also write TensorBoard event files.")
]
MarkdownOption = Annotated[bool, typer.Option("--markdown", help="Print tables as Markdown.")]


@app.callback()
def main() -> None:
    """Learn through an argmax over structures: the paper's experiments.

    `pullback reproduce table1 --quick` is the place to start.
    """


@train_app.command("synthetic")
def train_synthetic(
    estimator: Annotated[str, typer.Option(help="An estimator, or `linear` or `gold`; `?` lists them.")],
    clusters: Annotated[int, typer.Option(help="K.")] = 10,
    seed: Annotated[list[int] | None, typer.Option(help="Repeat it to train several at once. [default: 0]")] = None,
    learning_rate: Annotated[float | None, typer.Option(help="[default: the paper's best]")] = None,
    step_size: Annotated[float | None, typer.Option(help="eta of the inner steps. [default: the paper's best]")] = None,
    inner_steps: Annotated[int | None, typer.Option(help="k. [default: 1]")] = None,
    gamma_scale: Annotated[str | None, typer.Option(help="`paper`: step sizes on the gradient of the mean loss; "
                                                    "`example`: of one example's. [default: paper]")] = None,
    steps: Annotated[int, typer.Option(help="Updates, each on the whole training set.")] = 10_000,
    evaluate_every: Annotated[int, typer.Option(help="Steps between evaluations.")] = 100,
    dtype: Precision = Precision.float32,
    runs: RunsOption = Path("runs"),
    device: DeviceOption = Device.auto,
    tensorboard: TensorBoardOption = False,
) -> None:  # fmt: skip
    """Train a model with a latent cluster.

    For example:

    - `pullback train synthetic --estimator spigot-ce --step-size 0.1`
    - `pullback train synthetic --estimator softmax --clusters 3 --seed 0 --seed 1 --steps 2000`
    """
    from pullback.experiments.synthetic.config import configure
    from pullback.experiments.synthetic.study import Synthetic

    with user_errors():
        configs = [
            configure(
                estimator, clusters=clusters, seed=each, learning_rate=learning_rate, step_size=step_size,
                inner_steps=inner_steps, gamma_scale=gamma_scale, steps=steps, evaluate_every=evaluate_every,
                dtype=dtype.value,
            )
            for each in seed or [0]
        ]  # fmt: skip
    train(Synthetic(), configs, runs, device=device.value, tensorboard=tensorboard)
    for config in configs:
        run = Synthetic().run(config, runs)
        console.print(
            f"seed {config.seed}: test accuracy {run.result['test_accuracy']:.2f}, "
            f"V-measure {run.result['test_v_measure']:.2f}  ({run.path})",
            highlight=False, soft_wrap=True,
        )  # fmt: skip


@app.command("runs")
def list_runs(
    runs: RunsOption = Path("runs"),
    status: Annotated[str | None, typer.Option(help="Only these: done, running, failed, killed.")] = None,
    estimator: Annotated[str | None, typer.Option(help="Only this estimator's.")] = None,
    limit: Annotated[int, typer.Option(help="How many to show.")] = 50,
) -> None:
    """List the runs, with their status and headline numbers.

    For example: `pullback runs --status done --estimator spigot-ce`
    """
    from pullback.experiments import listing

    with user_errors():
        console.print(listing.table(runs, status=status, estimator=estimator, limit=limit).rich())


@reproduce_app.command("table1")
def table1(
    quick: QuickOption = False,
    grid: Annotated[bool, typer.Option("--grid", help="Search the paper's grid by validation accuracy.")] = False,
    gamma_scale: Annotated[Scale, typer.Option(help="The paper's scale of gamma, per example, or both.")] = Scale.paper,
    errata: Annotated[bool, typer.Option("--errata", help="Add rows with errors of the released code.")] = False,
    only: Annotated[list[str] | None, typer.Option(help="Only this row; repeat it for several.")] = None,
    dtype: Precision = Precision.float32,
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
    from pullback.experiments.synthetic import methods, plans, tables
    from pullback.experiments.synthetic.study import Synthetic

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
    train(Synthetic(), configs, runs, device=device.value, tensorboard=tensorboard)
    for title, cells in parts:
        _show(tables.results_table(title, cells, runs), markdown)
    if grid or not quick:
        _show(tables.settings_table([cell for _, cells in parts for cell in cells], runs), markdown)
    _say_what_was_reduced(scope, quick)


@reproduce_app.command("curves")
def curves(
    quick: QuickOption = False,
    runs: RunsOption = Path("runs"),
    figures: FiguresOption = Path("figures"),
    device: DeviceOption = Device.auto,
    tensorboard: TensorBoardOption = False,
) -> None:
    """Synthetic clusters: learning curves, 10 clusters.

    For example: `pullback reproduce curves --quick`
    """
    from pullback.experiments.synthetic.figures import curves_cells, draw_curves

    _figure(curves_cells, draw_curves, quick, runs, figures, device, tensorboard)


@reproduce_app.command("steps")
def steps(
    quick: QuickOption = False,
    runs: RunsOption = Path("runs"),
    figures: FiguresOption = Path("figures"),
    device: DeviceOption = Device.auto,
    tensorboard: TensorBoardOption = False,
) -> None:
    """Synthetic clusters: the impact of multiple updates, 10 clusters, 1 to 10 inner steps.

    For example: `pullback reproduce steps --quick`
    """
    from pullback.experiments.synthetic.figures import draw_steps, steps_cells

    _figure(steps_cells, draw_steps, quick, runs, figures, device, tensorboard)


@reproduce_app.command("claims")
def claims(
    runs: RunsOption = Path("runs"), dtype: Precision = Precision.float32, markdown: MarkdownOption = False
) -> None:
    """Verdicts on the paper's claims, from the runs that are there; it trains nothing.

    They need `pullback reproduce table1 --grid` and `pullback reproduce steps`.
    """
    from pullback.experiments.synthetic.evidence import Evidence
    from pullback.experiments.synthetic.tables import claims_tables

    for table in claims_tables(Evidence(runs, _scope(False, dtype.value))):
        _show(table, markdown)


@reproduce_app.command("page")
def page(
    path: Annotated[Path, typer.Argument(help="A Markdown file with two marks.")] = Path("docs/results/synthetic.md"),
    runs: RunsOption = Path("runs"),
) -> None:
    """Write the results page and its figures from the runs that are there; it trains nothing.

    For example: `pullback reproduce page docs/results/synthetic.md`
    """
    from pullback.experiments.synthetic.page import update

    with user_errors():
        update(path, runs)
    console.print(f"wrote {path}", highlight=False, soft_wrap=True)


_SCALES = {"paper": "the mean loss, as the paper's", "example": "one example's loss"}


def _figure(
    cells: Callable[[Scope], list[Cell]],
    draw: Callable[[Scope, Path, Path], list[Path]],
    quick: bool,
    runs: Path,
    figures: Path,
    device: Device,
    tensorboard: bool,
) -> None:
    from pullback.experiments.synthetic.study import Synthetic

    scope = _scope(quick, "float32")
    configs = [config for cell in cells(scope) for config in cell.configs]
    train(Synthetic(), configs, runs, device=device.value, tensorboard=tensorboard)
    written = draw(scope, runs, figures)
    for path in written:
        console.print(f"wrote {path}", highlight=False, soft_wrap=True)
    if len(written) == 1:
        console.print("Only the data: Matplotlib is not installed. pip install 'pullback[experiments]'", soft_wrap=True)
    _say_what_was_reduced(scope, quick)


def _scope(quick: bool, dtype: str) -> Scope:
    from pullback.experiments.synthetic.plans import FULL, QUICK

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
