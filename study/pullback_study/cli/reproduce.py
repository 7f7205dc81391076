"""`pullback reproduce`: the paper's tables, figures, claims and pages."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pullback_study.cli import terminal
from pullback_study.cli.beds import listops, planted, recovery, ud
from pullback_study.cli.options import SETTINGS, uses
from pullback_study.cli.pages import check, claims, page

if TYPE_CHECKING:
    from pullback_study.results.choice import Protocol

app = typer.Typer(help="Make the paper's tables, figures and pages.", **SETTINGS)
for command in (recovery, listops, planted, ud, check, claims, page):
    app.command()(command)

Scale = StrEnum("Scale", ["paper", "example", "both"])
Text = StrEnum("Text", ["sst", "snli"])
Steps = StrEnum("Steps", ["synthetic", "sst", "snli"])
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
    from pullback_study.results.paper import clusters

    with terminal.user_errors():
        names = terminal.rows(clusters.TASK, clusters.METHODS, given["only"] or clusters.ROWS)
    protocol = clusters.protocol_of(**given)
    first, *more = ["paper", "example"] if gamma_scale == "both" else [str(gamma_scale)]
    rows = {first: [*names, *clusters.ERRATA * errata]}
    rows |= {scale: [name for name in names if clusters.METHODS[name].pulled_back] for scale in more}
    words = ("--grid",) * grid
    variants = [clusters.Variant(f"gamma of {clusters.SCALES[each]}", rows[each], words, protocol, each) for each in rows]
    cases = [(variant, k) for variant in variants for k in clusters.SETTINGS]
    plans = [variant.plan(name, k) for variant, k in cases for name in variant.rows]
    many = len(protocol.seeds) >= clusters.QUARTILES
    if many:
        terminal.check_figures(given["figures"])
    found, _ = terminal.train_plans(clusters.TASK, plans, given)
    tables = [clusters.results(variant, k, found, title=f"{k} clusters, {variant.title}") for variant, k in cases]
    extra = [clusters.spreads(table) for table in tables] if many else []
    if grid or not given["quick"]:
        extra.append(clusters.settings(plans, found))
    terminal.show(*tables, *extra, **given)
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
    wide: Annotated[bool, typer.Option("--wide", help="SST: search 0.0001 to 0.005 and step sizes, three seeds each.")] = False,
    train_examples: Annotated[int | None, typer.Option(min=1, help="Only the first training examples. [default: all]")] = None,
    times: Annotated[
        bool, typer.Option("--times", help="Only short runs of every row, one after the other: the time of an epoch.")
    ] = False,
    seed: Annotated[list[int] | None, typer.Option(metavar="N", help="Repeatable. [default: all seeds of the table]")] = None,
    epochs: Annotated[int | None, typer.Option(help="[default: 40 for SST, or 20 with 20 seeds or more; 10 for SNLI]")] = None,
    **given: Any,
) -> None:
    r"""Latent dependency trees: accuracy of every row on SST or SNLI, beside the paper's.

    By default with the paper's best settings. Finished runs are skipped, and interrupted runs resume.

    \b
    pullback reproduce table2 --data DATA --quick
    pullback reproduce table2 --task sst --search --wide --seeds 20 --device cuda --streams 32
    pullback reproduce table2 --task snli --only marginals --only spigot --seed 0
    """
    from pullback_study.results.choice import Runs
    from pullback_study.results.paper import text

    with terminal.user_errors():
        trained, protocol = _text_protocol(task, given, seeds=seed, epochs=epochs)
        protocol = protocol.having(train_examples=train_examples) if train_examples else protocol
        if times:
            alone = [config for row in text.timed(task, protocol, Runs(given["runs"])) for config in row.configs]
            terminal.train_or_exit(trained, alone, **{**given, "workers": None, "streams": None})
            return terminal.show(text.speed(task, text.timed(task, protocol, Runs(given["runs"]))), **given)
        if wide:
            if task != "sst" or not search:
                raise ValueError("--wide is for the search on SST: use --task sst --search --wide")
            wider = text.WIDE
            protocol = dataclasses.replace(protocol, rates=wider.rates, sizes=wider.sizes, deciding=wider.deciding)
        names = terminal.rows(trained, trained.methods, given["only"] or text.ROWS)
        plans = [text.table_plan(name, protocol, search=search) for name in names]
    found, rows = terminal.train_plans(trained, plans, given)
    title = f"{text.titled(protocol)}, {'searched' if search else 'the paper’s best'} settings"
    terminal.show(text.results(title, protocol, rows, found), text.settings(rows), text.speed(task, rows), **given)


@app.command("curves")
@uses("quick", "seeds", "figures", *_HOW)
def curves(**given: Any) -> None:
    """Synthetic clusters: learning curves, 10 clusters, as SVG and CSV."""
    from pullback_study.results.paper import clusters

    terminal.check_figures(given["figures"])
    protocol = clusters.protocol_of(**given)
    plans = [clusters.table_plan(name, 10, grid=False, protocol=protocol) for name in clusters.CURVES]
    found, _ = terminal.train_plans(clusters.TASK, plans, given)
    terminal.write_figures([clusters.curves(found, protocol)], given["figures"])


@app.command("steps")
@uses("quick", "seeds", "vectors", "data", "figures", "streams", *_HOW, *_SHOW)
def steps(
    task: Annotated[Steps, typer.Option(help="Synthetic clusters, SST or SNLI.")] = Steps.synthetic,
    frozen: Annotated[bool, typer.Option("--frozen", help="SST and SNLI: also 1 and 5 steps with a frozen decoder.")] = False,
    **given: Any,
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
        terminal.check_figures(given["figures"])
        whole = clusters.protocol_of(**given)
        points = [clusters.steps_plan(name, k, whole) for name in clusters.STEPPED for k in clusters.inner_steps(whole)]
        found, _ = terminal.train_plans(clusters.TASK, points, given)
        return terminal.write_figures([clusters.steps(found, whole)], given["figures"])
    with terminal.user_errors():
        trained, protocol = _text_protocol(task, given)
        plans = [text.table_plan(name, protocol, search=True) for name in text.STEPPED]
    found, rows = terminal.train_plans(trained, plans, given)
    for k in text.INNER_STEPS:
        terminal.train_or_exit(trained, seed_by_seed([row.replace(found, inner_steps=k) for row in rows]), **given)
    for k in text.FROZEN_STEPS * frozen:
        terminal.train_or_exit(trained, seed_by_seed([text.frozen(row, found, k) for row in rows]), **given)
    table = text.steps_table(text.titled(protocol), rows, Runs(given["runs"]))
    terminal.show(dataclasses.replace(table, warning=protocol.warning), **given)


def _text_protocol(
    task: str, given: dict[str, Any], seeds: Sequence[int] | None = None, epochs: int | None = None
) -> tuple[Any, Protocol]:
    """The task on the data at hand, and the protocol with its names."""
    from pullback_study.corpora import choose_vectors, find_data
    from pullback_study.results.paper import text
    from pullback_study.tasks import find_task

    folder = find_data(given["data"])
    found: Any = find_task(task, folder)
    protocol = (text.QUICK if given["quick"] else text.FULL)[task]
    if not given["quick"] and task in text.MANY and len(text.MANY[task].seeds) <= (given["seeds"] or 0):
        protocol = text.MANY[task]
    vectors = given["vectors"] or choose_vectors(folder)
    protocol = protocol.having(data=found.training_data(folder), vectors=vectors)
    wanted = range(given["seeds"]) if given["seeds"] else seeds or protocol.seeds
    return found, protocol.on(wanted).having(epochs=epochs or protocol["epochs"])
