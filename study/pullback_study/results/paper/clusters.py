"""Synthetic clusters: the runs, the tables and the figures of the paper, for any number of seeds."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pullback_study.published import rows
from pullback_study.results.cells import MEDIAN
from pullback_study.results.choice import Chosen, Plan, Protocol, Runs, measured, said, seeds_of, settings_of, table_of
from pullback_study.results.figures import Figure, Panel, curves_against, learning_curves
from pullback_study.results.paper import reported
from pullback_study.results.registry import Group
from pullback_study.results.tables import Column, Table, at_least, interval, quarters
from pullback_study.tasks import find_task

TASK = find_task("synthetic")
METHODS = TASK.methods
ROWS = tuple(name for name, method in METHODS.items() if method.label in rows("synthetic"))
ERRATA = tuple(name for name, method in METHODS.items() if method.kind == "Erratum")
PULLED_BACK = tuple(name for name in ROWS if METHODS[name].pulled_back)
STEPPED = ("ste-i", "spigot", "spigot-ce", "spigot-eg")
CURVES = ("marginals", "perturb-and-map", "ste-i", "spigot", "spigot-ce", "spigot-eg")
SETTINGS = (3, 10)
MEASURES = {"accuracy": "Accuracy", "v_measure": "V-measure"}
SCALES = {"paper": "the mean loss, as the paper's", "example": "one example's loss"}
RECOVERED = 99.5
"""A V-measure that means: every cluster is found."""


FULL = Protocol(
    "synthetic",
    seeds=(0, 1, 2, 3),  # data, initialisation and noise depend on them
    fields=(("steps", 10_000), ("evaluate_every", 100), ("dtype", "float32")),
    rates=(0.0001, 0.001, 0.002),
    sizes=(0.1, 1.0, 2.0),
    deciding=(0, 1, 2, 3),
)
"""The grid is the paper's; the seeds that decide are as many as the paper has."""
MANY = FULL.on(range(48))
QUICK = replace(FULL.on((0, 1)).having(steps=1000, evaluate_every=50), deciding=(0, 1))
QUARTILES = 8
"""The number of seeds from which quartiles and distributions are shown."""


def quick(protocol: Protocol) -> bool:
    """Whether it has fewer steps: then there is no search for settings that the paper does not list."""
    return protocol["steps"] < FULL["steps"]


def inner_steps(protocol: Protocol) -> tuple[int, ...]:
    """The points of the figure of inner steps: the paper's ten, or fewer."""
    return (1, 3) if quick(protocol) else (1, 2, 5, 10) if len(protocol.seeds) >= QUARTILES else tuple(range(1, 11))


def protocol_of(quick: bool = False, seeds: int | None = None, dtype: str = "float32", **_: Any) -> Protocol:
    """The one that the options of a command ask for."""
    found = (QUICK if quick else FULL).having(dtype=dtype)
    return replace(found.on(range(seeds)), deciding=found.deciding[:seeds]) if seeds else found


@dataclass(frozen=True)
class Variant:
    """One way to make the table."""

    title: str
    rows: Sequence[str] = ROWS
    words: tuple[str, ...] = ()  # of the command that makes its runs
    protocol: Protocol = FULL
    scale: str = "paper"  # of gamma

    def plan(self, name: str, clusters: int) -> Plan:
        return table_plan(name, clusters, grid="--grid" in self.words, gamma_scale=self.scale, protocol=self.protocol)


VARIANTS = {
    "best": Variant("The table, at the paper's settings", words=("--seeds", "48"), protocol=MANY),
    "grid": Variant(
        "The table, at the settings that validation accuracy chose from the paper's grid",
        words=("--grid", "--seeds", "48"),
        protocol=MANY,
    ),
    "example": Variant(
        "gamma of one example instead of the mean", PULLED_BACK, ("--grid", "--gamma-scale", "example"), scale="example"
    ),
    "float64": Variant(
        "float64 instead of float32", PULLED_BACK, ("--grid", "--dtype", "float64"), FULL.having(dtype="float64")
    ),
    "errata": Variant("Errors of the released code, on purpose", ERRATA, ("--grid", "--errata")),
    "quick": Variant("Quick runs", words=("--quick",), protocol=QUICK),
}


@functools.cache
def table_plan(estimator: str, clusters: int, *, grid: bool, gamma_scale: str = "paper", protocol: Protocol = FULL) -> Plan:
    """One row of the table in one setting, over the paper's grid or at its best setting, where it lists one."""
    method = METHODS[estimator]
    search = grid or ("learning_rate" not in method.defaults and not quick(protocol))
    sizes: Sequence[float] = ()
    if method.pulled_back and estimator != "ste-i":  # for STE-I, one step and Adam, the size does not matter
        sizes = protocol.sizes if grid else (1.0,) if gamma_scale == "example" else ()
    scale = gamma_scale if method.pulled_back else None
    return protocol.plan(estimator, protocol.rates if search else (), sizes, clusters=clusters, gamma_scale=scale)


@functools.cache
def steps_plan(estimator: str, inner_steps: int, protocol: Protocol = FULL) -> Plan:
    """One point of the figure on multiple updates: 10 clusters, the paper's learning rate, the best step size."""
    sizes = () if quick(protocol) else protocol.sizes
    return protocol.plan(estimator, sizes=sizes, clusters=10, inner_steps=inner_steps)


def results(variant: Variant, clusters: int, runs: Runs, *, title: str = "") -> Table:
    """One setting of the paper's table, ours beside the paper's: on the test set after the last step."""
    protocol = variant.protocol
    found = [variant.plan(name, clusters).choose(runs) for name in variant.rows]
    columns = measured(
        MEASURES, "test_{}", MEDIAN, judged=not protocol.warning,
        paper=lambda row, name: reported("synthetic", row.method.label, f"{clusters} clusters", name),
    )  # fmt: skip
    columns += [seeds_of(protocol)] * any(row.done and not row.complete for row in found)
    name = f"clusters-{clusters}" + "-grid" * ("--grid" in variant.words) + "-example" * (variant.scale == "example")
    about = {"name": name, "warning": protocol.warning, "command": runs.command("table1", *variant.words)}
    return table_of(title or f"{clusters} clusters", found, columns, ["*: stochastic."], **about)


def with_others(variant: Variant, runs: Runs) -> Variant:
    """The same with those estimators that are not in the paper's table and have runs for it."""
    others = [name for name in METHODS if name not in (*ROWS, *ERRATA)] if set(variant.rows) == set(ROWS) else []
    there = [name for name in others if any(variant.plan(name, k).choose(runs).done for k in SETTINGS)]
    return replace(variant, rows=[name for name in METHODS if name in (*variant.rows, *there)])


def spreads(table: Table) -> Table:
    """The same rows for many seeds: quartiles, intervals and how many runs find every cluster."""
    ways = {"quartiles": quarters, "95% interval": interval}
    columns = []
    for name, label in MEASURES.items():
        columns += [Column(name, label), *(Column(name, words, show=show) for words, show in ways.items())]
    columns.append(Column("v_measure", "recovered", show=at_least(RECOVERED)))
    notes = [f"Recovered: the share of runs with a V-measure of at least {RECOVERED:g}, with its 95% interval (Wilson).",
             "95% interval: of the median (bootstrap over the seeds).", *table.notes]  # fmt: skip
    return replace(table, columns=columns, notes=notes, name=f"{table.name}-spreads")


def settings(plans: Iterable[Plan], runs: Runs) -> Table:
    """Which learning rate and step size each row has, by validation accuracy where there was a choice."""
    found = [(chosen, plan) for plan in plans if (chosen := plan.choose(runs)).done]
    candidates = {(row.estimator, row.config.clusters): str(len(plan.candidates)) for row, plan in found}
    more = {"clusters": lambda row: row.config.clusters,
            "candidates": lambda row: candidates[row.estimator, row.config.clusters]}  # fmt: skip
    return settings_of([row for row, _ in found], more)


def curves(runs: Runs, protocol: Protocol = FULL) -> Figure:
    """Validation accuracy and V-measure against steps, at the paper's best settings."""
    chosen = [table_plan(name, 10, grid=False, protocol=protocol).choose(runs) for name in CURVES]
    drawn = learning_curves(chosen, {name: f"Validation: {label} (%)" for name, label in MEASURES.items()})
    return _figure("Learning curves, 10 clusters", "synthetic-curves", drawn, protocol, chosen)


def steps(runs: Runs, protocol: Protocol = FULL) -> Figure:
    """Test accuracy and V-measure against the number of inner steps, the best step size at each point."""
    at = {k: [steps_plan(name, k, protocol).choose(runs) for name in STEPPED] for k in inner_steps(protocol)}
    drawn = curves_against("Inner steps", at, {f"test_{name}": f"Test: {label} (%)" for name, label in MEASURES.items()})
    found = [row for rows in at.values() for row in rows]
    return _figure("Impact of multiple updates, 10 clusters", "synthetic-steps", drawn, protocol, found)


def steps_table(runs: Runs, protocol: Protocol) -> Table:
    """The points of that figure as numbers, with the calls of the decoder in a training step."""
    found = [steps_plan(name, k, protocol).choose(runs) for name in STEPPED for k in inner_steps(protocol)]
    columns = [
        said("inner", "inner steps", lambda row: str(row.config.inner_steps)),
        said("size", "step size", lambda row: f"{row.config.step_size:g}"),
        said("calls", "decoder calls", lambda row: ", ".join(sorted({f"{each:g}" for each in row.values("decoder_calls")}))),
        *measured(MEASURES, "test_{}", MEDIAN),
    ]
    count = len(protocol.seeds)
    about = {"warning": protocol.warning, "command": runs.command("steps", "--seeds", str(count))}
    title = f"Several inner steps, 10 clusters, {count} seeds"
    return table_of(title, [row for row in found if row.done], columns, name=f"synthetic-steps-{count}", **about)


def _figure(title: str, name: str, drawn: Sequence[Panel], protocol: Protocol, rows: Sequence[Chosen]) -> Figure:
    many = len(protocol.seeds) >= QUARTILES
    counts = sorted({len(row.done) for row in rows if row.done})
    seeds = " to ".join(map(str, [*counts[:1], *counts[1:][-1:]])) or "no"
    note = f"Median and range of {seeds} seeds. {protocol.warning}".strip()
    return Figure(title, drawn, name + "-quick" * quick(protocol) + "-many" * many, note)


def groups(runs: Runs) -> list[Group]:
    """The table in every way it was run, the paper's two in any case; and the figures."""
    found = []
    for name, variant in VARIANTS.items():
        variant = with_others(variant, runs)
        tables = [results(variant, k, runs) for k in SETTINGS]
        if name in ("grid", "best") or any(table.runs for table in tables):
            counts = {table.title: [cell.count for row in table.rows for cell in row.cells.values()] for table in tables}
            many = {title: max(each, default=0) >= QUARTILES for title, each in counts.items()}
            shown = [each for table in tables for each in ([table, spreads(table)] if many[table.title] else [table])]
            drawn = [table.distribution(measure) for table in tables if many[table.title] for measure in MEASURES]
            found.append(Group(variant.title, shown, drawn, warning=variant.protocol.warning))
        if name == "grid":
            plans = [VARIANTS["grid"].plan(name, k) for name in ROWS for k in SETTINGS]
            found += [Group("Chosen settings", [table])] if (table := settings(plans, runs)).rows else []
    for title, protocols in {"Several inner steps, and figures": (FULL, MANY), "Figures, quick runs": (QUICK,)}.items():
        figures = [draw(runs, protocol) for protocol in protocols for draw in (curves, steps)[protocol is FULL :]]
        tables = [table for protocol in protocols if (table := steps_table(runs, protocol)).rows]
        found.append(Group(title, tables, figures, warning=protocols[0].warning))
    return [group for group in found if group]
