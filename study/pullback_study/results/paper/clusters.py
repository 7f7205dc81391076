"""Synthetic clusters: the runs, the tables and the figures of the paper, for any number of seeds."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from pullback_study.results.cells import MEDIAN, Cell
from pullback_study.results.choice import Chosen, Plan, Runs
from pullback_study.results.choice import over_seeds as with_seeds
from pullback_study.results.commands import command
from pullback_study.results.figures import Curve, Figure, Panel, over_seeds, panels
from pullback_study.results.paper.numbers import reported, rows
from pullback_study.results.tables import Column, Row, Table, at_least, interval, quarters
from pullback_study.tasks import find_task

TASK = find_task("synthetic")
METHODS = TASK.methods
ROWS = tuple(name for name, method in METHODS.items() if method.label in rows("synthetic"))
ERRATA = tuple(name for name, method in METHODS.items() if method.kind == "Erratum")
PULLED_BACK = tuple(name for name in ROWS if METHODS[name].pulled_back)
STEPPED = ("ste-i", "spigot", "spigot-ce", "spigot-eg")
CURVES = ("marginals", "perturb-and-map", "ste-i", "spigot", "spigot-ce", "spigot-eg")
SETTINGS = (3, 10)
INNER_STEPS = tuple(range(1, 11))
LEARNING_RATES, STEP_SIZES = (0.0001, 0.001, 0.002), (0.1, 1.0, 2.0)
MEASURES = {"accuracy": "Accuracy", "v_measure": "V-measure"}
SCALES = {"paper": "the mean loss, as the paper's", "example": "one example's loss"}
RECOVERED = 99.5
"""A V-measure that means: every cluster is found."""


@dataclass(frozen=True)
class Scope:
    """How much is run: the paper's full version, less or more."""

    seeds: tuple[int, ...] = (0, 1, 2, 3)  # data, initialisation and noise depend on them
    steps: int = 10_000
    evaluate_every: int = 100
    inner_steps: tuple[int, ...] = INNER_STEPS
    dtype: str = "float32"
    search: bool = True  # for settings that the paper does not list

    @property
    def deciding(self) -> tuple[int, ...]:
        """The seeds whose mean validation accuracy chooses a setting: the first four, as many as the paper has."""
        return self.seeds[:4]

    @property
    def options(self) -> dict[str, Any]:
        return {"steps": self.steps, "evaluate_every": self.evaluate_every, "dtype": self.dtype}

    @property
    def warning(self) -> str:
        if self.steps >= FULL.steps and self.search:
            return ""
        return (
            f"Reduced: {len(self.seeds)} seeds (the paper has 4), {self.steps} steps (of {FULL.steps}), no search for settings "
            "that the paper does not list. These numbers are not comparable with the paper's."
        )


FULL = Scope()
MANY = Scope(seeds=tuple(range(48)), inner_steps=(1, 2, 5, 10))
"""Settings chosen on the same four seeds as in FULL, and enough seeds to decide; fewer points in the figure of inner steps."""
QUICK = Scope(seeds=(0, 1), steps=1000, evaluate_every=50, inner_steps=(1, 3), search=False)
QUARTILES = 8
"""The number of seeds from which quartiles and distributions are shown."""


def with_seeds_of(scope: Scope, seeds: int) -> Scope:
    """The scope with seeds 0 to N - 1; many seeds come with the inner steps of MANY."""
    inner = MANY.inner_steps if seeds >= QUARTILES and scope.search else scope.inner_steps
    return dataclasses.replace(scope, seeds=tuple(range(seeds)), inner_steps=inner)


@dataclass(frozen=True)
class Variant:
    """One way to make the table."""

    title: str
    rows: Sequence[str] = ROWS
    words: tuple[str, ...] = ()  # of the command that makes its runs
    scope: Scope = FULL
    scale: str = "paper"  # of gamma

    def plan(self, name: str, clusters: int) -> Plan:
        return table_plan(name, clusters, grid="--grid" in self.words, gamma_scale=self.scale, scope=self.scope)


VARIANTS = {
    "grid": Variant("Settings chosen from the paper's grid by validation accuracy", words=("--grid",)),
    "best": Variant("The paper's best settings"),
    "example": Variant(
        "Step sizes on one example's gradient", PULLED_BACK, ("--grid", "--gamma-scale", "example"), scale="example"
    ),
    "float64": Variant(
        "In double precision", PULLED_BACK, ("--grid", "--dtype", "float64"), dataclasses.replace(FULL, dtype="float64")
    ),
    "errata": Variant("With errors of the released code, on purpose", ERRATA, ("--grid", "--errata")),
    "quick": Variant("Quick runs", words=("--quick",), scope=QUICK),
    "many": Variant("Many seeds, at settings chosen from the paper's grid", words=("--grid", "--seeds", "48"), scope=MANY),
}


@functools.cache
def table_plan(
    estimator: str, clusters: int, *, grid: bool, gamma_scale: str = "paper", scope: Scope = FULL
) -> Plan:
    """One row of the table in one setting, over the paper's grid or at its best setting, where it lists one."""
    method = METHODS[estimator]
    search = grid or ("learning_rate" not in method.defaults and scope.search)
    rates: Sequence[float | None] = LEARNING_RATES if search else (None,)
    sizes: Sequence[float | None] = (None,)
    if method.pulled_back and estimator != "ste-i":  # for STE-I, one step and Adam, the size does not matter
        sizes = STEP_SIZES if grid else (1.0,) if gamma_scale == "example" else (None,)
    scale = {"gamma_scale": gamma_scale} if method.pulled_back else {}
    settings = [{"learning_rate": rate, "step_size": size, **scale} for rate in rates for size in sizes]
    return _plan(estimator, clusters, settings, scope)


@functools.cache
def steps_plan(estimator: str, inner_steps: int, scope: Scope = FULL) -> Plan:
    """One point of the figure on multiple updates: 10 clusters, the paper's learning rate, the best step size."""
    sizes = STEP_SIZES if scope.search else (METHODS[estimator].defaults.get("step_size"),)
    return _plan(estimator, 10, [{"step_size": size, "inner_steps": inner_steps} for size in sizes], scope)


def _plan(estimator: str, clusters: int, settings: Iterable[dict[str, Any]], scope: Scope) -> Plan:
    given = [{name: value for name, value in setting.items() if value is not None} for setting in settings]
    configs = [TASK.configure(estimator=estimator, clusters=clusters, **each, **scope.options) for each in given]
    candidates = tuple(with_seeds(config, scope.seeds) for config in configs)
    deciding = tuple(with_seeds(config, scope.deciding) for config in configs)
    return Plan(TASK, estimator, candidates, deciding)


def results(variant: Variant, clusters: int, runs: Runs, *, title: str = "", only: Sequence[str] = ()) -> Table:
    """One setting of the paper's table, ours beside the paper's: on the test set after the last step."""
    columns = [Column(name, label, reference=True) for name, label in MEASURES.items()]
    found = []
    for name in only or variant.rows:
        chosen = variant.plan(name, clusters).finished(runs)
        cells = {measure: _cell(name, clusters, chosen, measure) for measure in MEASURES}
        note = chosen.setting if chosen else ""
        making = "" if chosen else command("reproduce", "table1", *variant.words, "--only", name, runs=runs.folder)
        found.append(Row(_label(name), cells, {}, METHODS[name].kind, name, note, making))
    making = command("reproduce", "table1", *variant.words, runs=runs.folder)
    title, name = title or f"{clusters} clusters", f"clusters-{clusters}" + "-example" * (variant.scale == "example")
    return Table(title, columns, found, ["*: stochastic."], name, variant.scope.warning, making)


def with_others(variant: Variant, runs: Runs) -> Variant:
    """The same with those estimators that are not in the paper's table and have runs for it."""
    others = [name for name in METHODS if name not in (*ROWS, *ERRATA)] if set(variant.rows) == set(ROWS) else []
    there = [name for name in others if any(variant.plan(name, k).finished(runs) for k in SETTINGS)]
    return dataclasses.replace(variant, rows=[name for name in METHODS if name in (*variant.rows, *there)])


def spreads(table: Table) -> Table:
    """The same rows for many seeds: quartiles, intervals and how many runs find every cluster."""
    columns = [
        column
        for name, label in MEASURES.items()
        for column in (
            Column(name, label), Column(name, "quartiles", show=quarters), Column(name, "95% interval", show=interval)
        )
    ]  # fmt: skip
    columns.append(Column("v_measure", "recovered", show=at_least(RECOVERED)))
    notes = [
        f"Recovered: the share of runs with a V-measure of at least {RECOVERED:g}, with its 95% interval (Wilson).",
        "95% interval: of the median (bootstrap over the seeds).", *table.notes,
    ]  # fmt: skip
    return dataclasses.replace(table, columns=columns, notes=notes, name=f"{table.name}-spreads")


def settings(plans: Iterable[Plan], runs: Runs) -> Table:
    """Which learning rate and step size each row has, by validation accuracy where there was a choice."""
    rows = []
    for plan in plans:
        if chosen := plan.finished(runs):
            config, size = chosen.config, "" if chosen.config.step_size is None else f"{chosen.config.step_size:g}"
            rate, label = f"{config.learning_rate:g}", METHODS[plan.estimator].label
            rows.append((label, str(config.clusters), rate, size, str(len(plan.candidates))))
    return Table.of_words("Settings", ["Model", "clusters", "learning rate", "step size", "candidates"], rows)


def curves(runs: Runs, clusters: int = 10, scope: Scope = FULL) -> Figure:
    """Validation accuracy and V-measure against steps, at the paper's best settings."""
    chosen = {name: table_plan(name, clusters, grid=False, scope=scope).finished(runs) for name in CURVES}

    def curve(name: str, measure: str) -> Curve | None:
        found = chosen[name]
        return over_seeds(METHODS[name].label, found.histories(measure)) if found else None

    words = ["curves"] if clusters == 10 else ["table1", *(word for name in CURVES for word in ("--only", name))]
    drawn = panels(curve, CURVES, {name: f"Validation: {label} (%)" for name, label in MEASURES.items()}, "Steps")
    return _figure(f"Learning curves, {clusters} clusters", "synthetic-curves", drawn, scope, runs, *words)


def steps(runs: Runs, scope: Scope = FULL) -> Figure:
    """Test accuracy and V-measure against the number of inner steps, the best step size at each point."""
    chosen = {(name, k): steps_plan(name, k, scope).finished(runs) for name in STEPPED for k in scope.inner_steps}

    def curve(name: str, measure: str) -> Curve | None:
        found = {k: each for k in scope.inner_steps if (each := chosen[name, k])}
        seeds = zip(*(each.values(f"test_{measure}") for each in found.values()), strict=True)
        return over_seeds(METHODS[name].label, [dict(zip(found, values, strict=True)) for values in seeds])

    drawn = panels(curve, STEPPED, {name: f"Test: {label} (%)" for name, label in MEASURES.items()}, "Inner steps")
    return _figure("Impact of multiple updates, 10 clusters", "synthetic-steps", drawn, scope, runs, "steps")


def _figure(title: str, name: str, drawn: Sequence[Panel], scope: Scope, runs: Runs, *words: str) -> Figure:
    quick, many = bool(scope.warning), len(scope.seeds) >= QUARTILES
    note = f"Median and range of {len(scope.seeds)} seeds. {scope.warning}".strip()
    more = ["--quick"] * quick + ["--seeds", str(len(scope.seeds))] * many
    making = command("reproduce", *words, *more, runs=runs.folder)
    return Figure(title, drawn, name + "-quick" * quick + "-many" * many, note, making)


def _cell(name: str, clusters: int, chosen: Chosen | None, measure: str) -> Cell:
    paper = reported("synthetic", METHODS[name].label, f"{clusters} clusters", measure)
    return chosen.cell(f"test_{measure}", MEDIAN, paper) if chosen else Cell(reference=paper)


def _label(name: str) -> str:
    return f"{'*' * METHODS[name].stochastic}{METHODS[name].label}"
