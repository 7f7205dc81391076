"""`pullback reproduce`: the paper's tables, figures, claims and pages."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pullback_study.cli.listops import listops
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
from pullback_study.cli.recovery import recovery

if TYPE_CHECKING:
    from pullback_study.results.choice import Plan
    from pullback_study.results.figures import Figure
    from pullback_study.results.paper import clusters, text
    from pullback_study.results.tables import Table

app = typer.Typer(help="Make the paper's tables, figures and pages.", **SETTINGS)
app.command("recovery")(recovery)
app.command("listops")(listops)

SeedsOption = Annotated[int | None, typer.Option(min=1, help="Seeds 0 to N - 1. [default: the paper's number]", metavar="N")]
WorkersOption = Annotated[int | None, typer.Option(help="Worker processes. [default: train in this process]")]
OnlyOption = Annotated[list[str] | None, typer.Option(help="Only this row; repeat it for several.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print tables as JSON, with the runs behind each number.")]
VectorsOption = Annotated[str | None, typer.Option(help="Word vectors of SST and SNLI: a name in vectors/, or a file.")]


Text = StrEnum("Text", ["sst", "snli"])
Steps = StrEnum("Steps", ["synthetic", "sst", "snli"])
Page = StrEnum("Page", ["synthetic", "text", "listops"])


@app.command("table1")
def table1(
    quick: QuickOption = False,
    grid: Annotated[bool, typer.Option("--grid", help="Search the paper's grid by validation accuracy.")] = False,
    gamma_scale: Annotated[Scale, typer.Option(help="The paper's scale of gamma, per example, or both.")] = Scale.paper,
    errata: Annotated[bool, typer.Option("--errata", help="Add rows with errors of the released code.")] = False,
    only: OnlyOption = None,
    seeds: SeedsOption = None,
    dtype: Precision = Precision.float32,
    workers: WorkersOption = None,
    runs: RunsOption = Path("runs"),
    figures: FiguresOption = Path("figures"),
    device: DeviceOption = Device.auto,
    tensorboard: TensorBoardOption = False,
    markdown: MarkdownOption = False,
    as_json: JsonOption = False,
) -> None:
    r"""Synthetic clusters: accuracy and V-measure of every method, beside the paper's.

    Settings are chosen by the validation accuracy of the first four seeds. With 8 seeds or more it also prints quartiles,
    intervals and the share of runs that find every cluster, and draws the distributions.

    \b
    pullback reproduce table1 --quick
    pullback reproduce table1 --grid --seeds 48 --device cuda
    """
    from pullback_study.cli.terminal import user_errors
    from pullback_study.results.choice import Runs
    from pullback_study.results.paper import clusters

    with user_errors():
        names = _rows(clusters.TASK, only or clusters.ROWS)
    scope = _scope(quick, seeds, dtype.value)
    scales = ("paper", "example") if gamma_scale is Scale.both else (gamma_scale.value,)
    variants = []
    for scale in scales:
        rows = [name for name in names if scale == scales[0] or clusters.METHODS[name].pulled_back]
        rows += clusters.ERRATA if errata and scale == scales[0] else []
        words = ("--grid",) * grid
        variants.append(clusters.Variant(f"gamma of {clusters.SCALES[scale]}", rows, words, scope, scale))
    cases = [(variant, k) for variant in variants for k in clusters.SETTINGS]
    plans = [variant.plan(name, k) for variant, k in cases for name in variant.rows]
    _train_plans(clusters.TASK, plans, runs, device, workers, tensorboard)
    found, many = Runs(runs), len(scope.seeds) >= clusters.QUARTILES
    tables = [clusters.results(variant, k, found, title=f"{k} clusters, {variant.title}") for variant, k in cases]
    extra = [clusters.spreads(table) for table in tables] if many else []
    if grid or not quick:
        extra.append(clusters.settings(plans, found))
    _show([*tables, *extra], markdown, as_json)
    if many:
        _write([table.distribution(measure) for table in tables for measure in clusters.MEASURES], figures)


@app.command("table2")
def table2(
    task: Annotated[Text, typer.Option(help="The data set.")] = Text.sst,
    quick: QuickOption = False,
    search: Annotated[
        bool, typer.Option("--search", help="Choose each row's learning rate: the same few for every row.")
    ] = False,
    only: OnlyOption = None,
    seed: Annotated[list[int] | None, typer.Option(help="Repeat it for several. [default: all of the table's]")] = None,
    seeds: SeedsOption = None,
    epochs: Annotated[int | None, typer.Option(help="[default: 40 for SST, 5 for SNLI]")] = None,
    projective: Annotated[
        bool | None,
        typer.Option("--projective/--non-projective", help="[default: projective for SST, non-projective for SNLI]"),
    ] = None,
    vectors: VectorsOption = None,
    workers: WorkersOption = None,
    data: DataOption = None,
    runs: RunsOption = Path("runs"),
    device: DeviceOption = Device.auto,
    tensorboard: TensorBoardOption = False,
    markdown: MarkdownOption = False,
    as_json: JsonOption = False,
) -> None:
    r"""Latent dependency trees: accuracy of every row on SST or SNLI, beside the paper's.

    By default with the paper's best settings. Runs that are done are skipped, and interrupted ones resume.

    \b
    pullback reproduce table2 --data DATA --quick
    pullback reproduce table2 --task sst --search --device cuda --workers 4
    pullback reproduce table2 --task snli --only marginals --only spigot --seed 0
    """
    from pullback_study.cli.terminal import user_errors
    from pullback_study.results.choice import Runs
    from pullback_study.results.paper import text

    with user_errors():
        trained, scope = _text_scope(task, quick, data, vectors, seeds=range(seeds) if seeds else seed, epochs=epochs)
        names = _rows(trained, only or text.ROWS)
        options = {name: projective if trained.methods[name].latent else None for name in names}
        plans = [text.table_plan(name, scope, search=search, projective=options[name]) for name in names]
    how = (runs, device, workers, tensorboard)
    _train(trained, [config for plan in plans for config in plan.first], *how)
    chosen = [plan.choose(Runs(runs)) for plan in plans]
    _train(trained, text.seed_by_seed(chosen), *how)
    rows = {plan.estimator: plan.choose(found) for found in [Runs(runs)] for plan in plans}
    title = f"{scope.title}, {'searched' if search else 'the paper’s best'} settings"
    tables = [text.results(title, scope, rows, Runs(runs)), text.settings(rows), text.speed(task.value, rows)]
    _show(tables, markdown, as_json)


@app.command("curves")
def curves(
    quick: QuickOption = False,
    seeds: SeedsOption = None,
    workers: WorkersOption = None,
    runs: RunsOption = Path("runs"),
    figures: FiguresOption = Path("figures"),
    device: DeviceOption = Device.auto,
    tensorboard: TensorBoardOption = False,
) -> None:
    """Synthetic clusters: learning curves, 10 clusters, as SVG and CSV."""
    from pullback_study.results.choice import Runs
    from pullback_study.results.paper import clusters

    scope = _scope(quick, seeds)
    plans = [clusters.table_plan(name, 10, grid=False, scope=scope) for name in clusters.CURVES]
    _train_plans(clusters.TASK, plans, runs, device, workers, tensorboard)
    _write([clusters.curves(Runs(runs), 10, scope)], figures)


@app.command("steps")
def steps(
    task: Annotated[Steps, typer.Option(help="Synthetic clusters, SST or SNLI.")] = Steps.synthetic,
    quick: QuickOption = False,
    seeds: SeedsOption = None,
    vectors: VectorsOption = None,
    workers: WorkersOption = None,
    data: DataOption = None,
    runs: RunsOption = Path("runs"),
    figures: FiguresOption = Path("figures"),
    device: DeviceOption = Device.auto,
    tensorboard: TensorBoardOption = False,
    markdown: MarkdownOption = False,
    as_json: JsonOption = False,
) -> None:
    r"""The impact of multiple updates.

    Synthetic clusters: a figure, 10 clusters, 1 to 10 inner steps (1, 2, 5 and 10 with 8 seeds or more). SST and SNLI: a
    table, SPIGOT, SPIGOT-CE and SPIGOT-EG at 1, 2 and 5 inner steps, each at the learning rate that table2 --search chose.

    \b
    pullback reproduce steps --quick
    pullback reproduce steps --task sst --data DATA --vectors glove.840B.300d
    """
    from pullback_study.cli.terminal import user_errors
    from pullback_study.results.choice import Runs

    how = (runs, device, workers, tensorboard)
    if task is Steps.synthetic:
        from pullback_study.results.paper import clusters

        whole = _scope(quick, seeds)
        points = [clusters.steps_plan(name, k, whole) for name in clusters.STEPPED for k in whole.inner_steps]
        _train_plans(clusters.TASK, points, *how)
        _write([clusters.steps(Runs(runs), whole)], figures)
        return
    from pullback_study.results.paper import text

    with user_errors():
        trained, scope = _text_scope(Text(task.value), quick, data, vectors, seeds=range(seeds) if seeds else None)
        plans = [text.table_plan(name, scope, search=True) for name in text.STEPPED]
    _train(trained, [config for plan in plans for config in plan.first], *how)
    rows = {plan.estimator: plan.choose(found) for found in [Runs(runs)] for plan in plans}
    for k in text.INNER_STEPS:
        _train(trained, text.seed_by_seed([row and row.replace(Runs(runs), inner_steps=k) for row in rows.values()]), *how)
    table = text.steps_table(scope.title, rows, Runs(runs))
    _show([dataclasses.replace(table, warning=scope.warning)], markdown, as_json)


@app.command("claims")
def claims(
    runs: RunsOption = Path("runs"),
    seeds: SeedsOption = None,
    dtype: Precision = Precision.float32,
    markdown: MarkdownOption = False,
    as_json: JsonOption = False,
) -> None:
    """Verdicts on the paper's claims, from the runs that are there; it trains nothing.

    Those on clusters rest on 48 seeds where they are there, and on four otherwise. They need the runs of table1 --grid and
    steps; those on text need table2 --search, steps --task sst and table2 --task snli.
    """
    from pullback_study.cli.terminal import user_errors
    from pullback_study.results.choice import Runs
    from pullback_study.results.paper import claims_clusters, page_text
    from pullback_study.results.paper.verdicts import decide

    with user_errors():
        found = Runs(runs)
        scoped = seeds is not None or dtype is not Precision.float32
        scope = _scope(False, seeds, dtype.value)
        on_clusters = claims_clusters.Evidence(found, scope) if scoped else claims_clusters.Evidence.best(found)
        decided = [*decide(claims_clusters.CLAIMS, on_clusters), *page_text.claims(found)]
    _show([claim.table() for claim in decided], markdown, as_json)


@app.command("page")
def page(
    path: Annotated[Path | None, typer.Argument(help="A Markdown file with two marks.")] = None,
    study: Annotated[Page, typer.Option(help="Whose results.")] = Page.synthetic,
    runs: RunsOption = Path("runs"),
) -> None:
    """Write a results page and its figures from the runs that are there; it trains nothing.

    The page is docs/results/STUDY.md by default.
    """
    from pullback_study.cli.terminal import err, user_errors
    from pullback_study.results import pages
    from pullback_study.results.choice import Runs
    from pullback_study.results.registry import find_section

    path = path or Path("docs/results") / f"{study.value}.md"
    render = find_section(study.value).page
    assert render is not None
    with user_errors():
        pages.update(path, lambda: render(Runs(runs), path.parent))
    err.print(f"wrote {path}", highlight=False, soft_wrap=True)


def _scope(quick: bool, seeds: int | None, dtype: str = "float32") -> clusters.Scope:
    from pullback_study.results.paper.clusters import FULL, QUICK, with_seeds_of

    scope = dataclasses.replace(QUICK if quick else FULL, dtype=dtype)
    return with_seeds_of(scope, seeds) if seeds else scope


def _rows(task: Any, names: Sequence[str]) -> list[str]:
    """The methods of these names or aliases, in the order of the table."""
    wanted = {task.find_method(name).name for name in names}
    return [name for name in task.methods if name in wanted]


def _text_scope(
    task: Text, quick: bool, data: Path | None, vectors: str | None, *, seeds: Sequence[int] | None, epochs: int | None = None
) -> tuple[Any, text.Scope]:
    """The task on the data at hand, and the scope with its names."""
    from pullback_study.corpora import choose_vectors, find_data
    from pullback_study.results.paper import text
    from pullback_study.tasks import find_task

    folder = find_data(data)
    found: Any = find_task(task.value, folder)
    scope = (text.QUICK if quick else text.FULL)[task.value]
    scope = dataclasses.replace(scope, data=found.training_data(folder), vectors=choose_vectors(folder, vectors))
    return found, dataclasses.replace(scope, seeds=tuple(seeds or scope.seeds), epochs=epochs or scope.epochs)


def _train(task: Any, configs: list[Any], runs: Path, device: Device, workers: int | None, tensorboard: bool) -> None:
    from pullback_study.cli.terminal import train_or_exit

    if configs:
        train_or_exit(task, configs, runs, device=device.value, workers=workers, tensorboard=tensorboard)


def _train_plans(task: Any, plans: Sequence[Plan], runs: Path, *how: Any) -> None:
    """The runs that choose a setting, and then those of the chosen one."""
    from pullback_study.results.choice import Runs

    _train(task, [config for plan in plans for config in plan.first], runs, *how)
    chosen = [plan.choose(found) for found in [Runs(runs)] for plan in plans]
    _train(task, [config for row in chosen if row for config in row.configs], runs, *how)


def _show(tables: Sequence[Table], markdown: bool, as_json: bool) -> None:
    """The tables on stdout, where nothing else goes."""
    from pullback_study.cli.terminal import out

    if markdown or as_json:
        text = "\n\n".join(table.markdown() for table in tables)
        typer.echo("[" + ",\n".join(table.json() for table in tables) + "]" if as_json else text)
        return
    for table in tables:
        out.print(table.rich(), markup=False, highlight=False)


def _write(figures: Sequence[Figure], folder: Path) -> None:
    from pullback_study.cli.terminal import err

    for figure in figures:
        for path in figure.write(folder):
            err.print(f"wrote {path}", highlight=False, markup=False, soft_wrap=True)
        if figure.note:
            err.print(figure.note, highlight=False, markup=False)
