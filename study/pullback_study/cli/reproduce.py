"""`pullback reproduce`: the paper's tables, figures, claims and pages."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pullback_study.cli import terminal
from pullback_study.cli.listops import listops
from pullback_study.cli.options import SETTINGS, uses
from pullback_study.cli.recovery import recovery

if TYPE_CHECKING:
    from pullback_study.results.choice import Chosen, Plan
    from pullback_study.results.paper import clusters, text

app = typer.Typer(help="Make the paper's tables, figures and pages.", **SETTINGS)
app.command("recovery")(recovery)
app.command("listops")(listops)

Scale = StrEnum("Scale", ["paper", "example", "both"])
Text = StrEnum("Text", ["sst", "snli"])
Steps = StrEnum("Steps", ["synthetic", "sst", "snli"])
Page = StrEnum("Page", ["synthetic", "text", "listops"])
_HOW = ("workers", "runs", "device", "tensorboard")
_SHOW = ("markdown", "json")


@app.command("table1")
@uses("quick", "only", "seeds", "dtype", "figures", *_HOW, *_SHOW)
def table1(
    grid: Annotated[bool, typer.Option("--grid", help="Search the paper's grid by validation accuracy.")] = False,
    gamma_scale: Annotated[Scale, typer.Option(help="The scale of gamma: the paper's, per example, or both.")] = Scale.paper,
    errata: Annotated[bool, typer.Option("--errata", help="Add rows with errors of the released code.")] = False,
    **given: Any,
) -> None:
    r"""Synthetic clusters: accuracy and V-measure of every method, beside the paper's.

    Settings are chosen by the validation accuracy of the first four seeds. With 8 seeds or more it also prints quartiles,
    intervals and the share of runs that find every cluster, and draws the distributions.

    \b
    pullback reproduce table1 --quick
    pullback reproduce table1 --grid --seeds 48 --device cuda
    """
    from pullback_study.results.choice import Runs
    from pullback_study.results.paper import clusters

    with terminal.user_errors():
        names = _rows(clusters.TASK, given["only"] or clusters.ROWS)
    scope = _scope(given["quick"], given["seeds"], given["dtype"])
    scales = ("paper", "example") if gamma_scale == "both" else (str(gamma_scale),)
    variants = []
    for scale in scales:
        rows = [name for name in names if scale == scales[0] or clusters.METHODS[name].pulled_back]
        rows += clusters.ERRATA if errata and scale == scales[0] else []
        words = ("--grid",) * grid
        variants.append(clusters.Variant(f"gamma of {clusters.SCALES[scale]}", rows, words, scope, scale))
    cases = [(variant, k) for variant in variants for k in clusters.SETTINGS]
    plans = [variant.plan(name, k) for variant, k in cases for name in variant.rows]
    _train_plans(clusters.TASK, plans, given)
    found, many = Runs(given["runs"]), len(scope.seeds) >= clusters.QUARTILES
    tables = [clusters.results(variant, k, found, title=f"{k} clusters, {variant.title}") for variant, k in cases]
    extra = [clusters.spreads(table) for table in tables] if many else []
    if grid or not given["quick"]:
        extra.append(clusters.settings(plans, found))
    terminal.show(*tables, *extra, **_how(given))
    if many:
        drawn = [table.distribution(measure) for table in tables for measure in clusters.MEASURES]
        terminal.write_figures(drawn, given["figures"])


@app.command("table2")
@uses("quick", "only", "seeds", "vectors", "data", "streams", *_HOW, *_SHOW)
def table2(
    task: Annotated[Text, typer.Option(help="The data set.")] = Text.sst,
    search: Annotated[
        bool, typer.Option("--search", help="Choose each row's learning rate: the same few for every row.")
    ] = False,
    seed: Annotated[list[int] | None, typer.Option(metavar="N", help="Repeatable. [default: all seeds of the table]")] = None,
    epochs: Annotated[int | None, typer.Option(help="[default: 40 for SST, or 20 with 20 seeds or more; 10 for SNLI]")] = None,
    projective: Annotated[
        bool | None,
        typer.Option("--projective/--non-projective", help="[default: projective for SST, non-projective for SNLI]"),
    ] = None,
    **given: Any,
) -> None:
    r"""Latent dependency trees: accuracy of every row on SST or SNLI, beside the paper's.

    By default with the paper's best settings. Finished runs are skipped, and interrupted runs resume.

    \b
    pullback reproduce table2 --data DATA --quick
    pullback reproduce table2 --task sst --search --seeds 20 --device cuda --streams 32
    pullback reproduce table2 --task snli --only marginals --only spigot --seed 0
    """
    from pullback_study.results.choice import Runs
    from pullback_study.results.paper import text

    with terminal.user_errors():
        trained, scope = _text_scope(task, given, seeds=seed, epochs=epochs)
        names = _rows(trained, given["only"] or text.ROWS)
        options = {name: projective if trained.methods[name].latent else None for name in names}
        plans = [text.table_plan(name, scope, search=search, projective=options[name]) for name in names]
    rows = _train_plans(trained, plans, given)
    title = f"{scope.title}, {'searched' if search else 'the paper’s best'} settings"
    found = Runs(given["runs"])
    terminal.show(text.results(title, scope, rows, found), text.settings(rows), text.speed(task, rows), **_how(given))


@app.command("curves")
@uses("quick", "seeds", "figures", *_HOW)
def curves(**given: Any) -> None:
    """Synthetic clusters: learning curves, 10 clusters, as SVG and CSV."""
    from pullback_study.results.choice import Runs
    from pullback_study.results.paper import clusters

    scope = _scope(given["quick"], given["seeds"])
    _train_plans(clusters.TASK, [clusters.table_plan(name, 10, grid=False, scope=scope) for name in clusters.CURVES], given)
    terminal.write_figures([clusters.curves(Runs(given["runs"]), scope)], given["figures"])


@app.command("steps")
@uses("quick", "seeds", "vectors", "data", "figures", "streams", *_HOW, *_SHOW)
def steps(
    task: Annotated[Steps, typer.Option(help="Synthetic clusters, SST or SNLI.")] = Steps.synthetic, **given: Any
) -> None:
    r"""The impact of multiple updates.

    Synthetic clusters: a figure, 10 clusters, 1 to 10 inner steps (1, 2, 5 and 10 with 8 seeds or more). SST and SNLI: a
    table, SPIGOT, SPIGOT-CE and SPIGOT-EG at 1, 2 and 5 inner steps, each at the learning rate that table2 --search chose.

    \b
    pullback reproduce steps --quick
    pullback reproduce steps --task sst --data DATA --vectors glove.840B.300d
    """
    from pullback_study.results.choice import Runs, seed_by_seed
    from pullback_study.results.paper import clusters, text

    if task == "synthetic":
        whole = _scope(given["quick"], given["seeds"])
        points = [clusters.steps_plan(name, k, whole) for name in clusters.STEPPED for k in whole.inner_steps]
        _train_plans(clusters.TASK, points, given)
        terminal.write_figures([clusters.steps(Runs(given["runs"]), whole)], given["figures"])
        return
    with terminal.user_errors():
        trained, scope = _text_scope(task, given)
        plans = [text.table_plan(name, scope, search=True) for name in text.STEPPED]
    rows = _train_plans(trained, plans, given)
    for k in text.INNER_STEPS:
        found = Runs(given["runs"])
        terminal.train_given(trained, seed_by_seed([row.replace(found, inner_steps=k) for row in rows]), given)
    table = text.steps_table(scope.title, rows, Runs(given["runs"]))
    terminal.show(dataclasses.replace(table, warning=scope.warning), **_how(given))


@app.command("claims")
@uses("runs", "seeds", "dtype", *_SHOW)
def claims(**given: Any) -> None:
    """Print verdicts on the paper's claims, from existing runs, without training.

    Verdicts on clusters use 48 seeds if their runs exist, and four otherwise. They need the runs of table1 --grid and steps.
    Verdicts on text need the runs of table2 --search for both tasks, and of steps --task sst.
    """
    from pullback_study.results.choice import Runs
    from pullback_study.results.paper import claims_clusters, claims_text
    from pullback_study.results.paper.verdicts import decide

    with terminal.user_errors():
        found = Runs(given["runs"])
        scoped = given["seeds"] is not None or given["dtype"] != "float32"
        scope = _scope(False, given["seeds"], given["dtype"])
        on_clusters = claims_clusters.Evidence(found, scope) if scoped else claims_clusters.Evidence.best(found)
        decided = [*decide(claims_clusters.CLAIMS, on_clusters), *claims_text.claims(found)]
    terminal.show(*(claim.table() for claim in decided), **_how(given))


@app.command("page")
@uses("runs")
def page(
    path: Annotated[Path | None, typer.Argument(help="The Markdown file to update, between its two marks.")] = None,
    study: Annotated[Page, typer.Option(help="The study whose page is written.")] = Page.synthetic,
    *,
    runs: Path,
) -> None:
    """Write a results page and its figures, from existing runs, without training.

    The page is docs/results/STUDY.md by default.
    """
    from pullback_study.results import pages
    from pullback_study.results.choice import Runs
    from pullback_study.results.registry import find_section

    path = path or Path("docs/results") / f"{study}.md"
    section, found = find_section(study), Runs(runs)
    with terminal.user_errors():
        pages.update(path, section.groups(found), section.claims(found))
    terminal.err.print(f"wrote {path}")


def _how(given: dict[str, Any]) -> dict[str, bool]:
    return {name: given[name] for name in _SHOW}


def _scope(quick: bool, seeds: int | None, dtype: str = "float32") -> clusters.Scope:
    from pullback_study.results.paper.clusters import FULL, QUICK, with_seeds_of

    scope = dataclasses.replace(QUICK if quick else FULL, dtype=dtype)
    return with_seeds_of(scope, seeds) if seeds else scope


def _rows(task: Any, names: Sequence[str]) -> list[str]:
    """The methods of these names or aliases, in the order of the table."""
    wanted = {task.find_method(name).name for name in names}
    return [name for name in task.methods if name in wanted]


def _text_scope(
    task: str, given: dict[str, Any], seeds: Sequence[int] | None = None, epochs: int | None = None
) -> tuple[Any, text.Scope]:
    """The task on the data at hand, and the scope with its names."""
    from pullback_study.corpora import choose_vectors, find_data
    from pullback_study.results.paper import text
    from pullback_study.tasks import find_task

    folder = find_data(given["data"])
    found: Any = find_task(task, folder)
    scope = (text.QUICK if given["quick"] else text.FULL)[task]
    if not given["quick"] and task in text.MANY and len(text.MANY[task].seeds) <= (given["seeds"] or 0):
        scope = text.MANY[task]
    scope = dataclasses.replace(scope, data=found.training_data(folder), vectors=choose_vectors(folder, given["vectors"]))
    wanted = range(given["seeds"]) if given["seeds"] else seeds or scope.seeds
    return found, dataclasses.replace(scope, seeds=tuple(wanted), epochs=epochs or scope.epochs)


def _train_plans(task: Any, plans: Sequence[Plan], given: dict[str, Any]) -> list[Chosen]:
    """The runs that choose a setting, and then those of the chosen one; returns the choices."""
    from pullback_study.results.choice import Runs, seed_by_seed

    terminal.train_given(task, [config for plan in plans for config in plan.first], given)
    found = Runs(given["runs"])
    terminal.train_given(task, seed_by_seed([plan.choose(found) for plan in plans]), given)
    found = Runs(given["runs"])
    return [plan.choose(found) for plan in plans]
