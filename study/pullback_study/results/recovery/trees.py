"""Planted trees of 6 and 10 words: the control variate beside other estimators; the page of runs that are kept.

The rules of `CLAIMS` were committed before the runs. They compare recovery, the share of right heads in percent after the last
step, seed by seed over the 32 seeds (100 to 131), with 95% intervals. The learning rate and the step size of an estimator are
those with the best mean validation accuracy over the search's seeds (1000 to 1003) on trees of 6 words (`plans.py`).
"""

from __future__ import annotations

from collections.abc import Callable

from pullback_study.results.cells import Cell
from pullback_study.results.choice import Chosen, Protocol, Runs, measured, said, seeds_of
from pullback_study.results.figures import Figure, learning_curves
from pullback_study.results.paper.verdicts import Claim, Finding, Values, decide, exceeds, minus, near, paired
from pullback_study.results.recovery.plans import FULL, LONGER, TASK, WIDE_ROWS, Setting, chosen, wide
from pullback_study.results.registry import Group, Section
from pullback_study.results.tables import Column, Row, Table, at_least

ROWS = (
    "bag", "gold", "sfe-control-variate", "sfe-leave-one-out-4", "sfe-leave-one-out", "sfe-self-critical", "sfe-baseline",
    "reinmax", "reinmax-4", "reinmax-control-variate", "sampled-ste", "marginals", "perturbed-marginals",
    "perturbed-sparsemap", "perturb-and-map", "ste-s", "ste-i", "spigot", "spigot-eg", "imle", "lpgd",
)  # fmt: skip
"""In the order in which they train: what the rules compare comes first."""
SIZES = (6, 10)
SOLVED = 95.0
"""The recovery from which a seed counts as solved."""
NEAR = 5.0
_DRAWN = (
    "sfe-control-variate", "sfe-leave-one-out-4", "reinmax-4", "reinmax-control-variate", "marginals", "perturbed-marginals",
)  # fmt: skip


def row(runs: Runs, estimator: str, n: int, protocol: Protocol = FULL) -> Chosen:
    """An estimator on trees of n words, with the runs that are done."""
    return chosen(runs, estimator, Setting("tree", n), protocol)


def gap(runs: Runs, n: int, first: str, second: str) -> Values:
    """The difference of two estimators in recovery, seed by seed."""
    return minus(*(each.values("test_recovery") for each in paired(row(runs, first, n), row(runs, second, n))))


def control_helps(runs: Runs) -> list[Finding]:
    """Planted trees: the control variate recovers more than leave-one-out with as many samples.

    Rule: with 6 and with 10 words, the recovery of the score function with a control variate (4 samples) exceeds that with
    leave-one-out (4 samples).
    """
    return [exceeds(f"control variate - leave-one-out, recovery, {n} words", gap(runs, n, *ROWS[2:4])) for n in SIZES]


def control_is_near(runs: Runs) -> list[Finding]:
    """Planted trees: the control variate comes near to perturbed marginals, which need averages of structures.

    Rule: with 6 and with 10 words, its shortfall in recovery from perturbed marginals is within 5 points (`verdicts.near`).
    """
    gaps = {n: gap(runs, n, "perturbed-marginals", ROWS[2]) for n in SIZES}
    return [near(f"perturbed marginals - control variate, recovery, {n} words", each, NEAR) for n, each in gaps.items()]


def reinmax_control_helps(runs: Runs) -> list[Finding]:
    """Planted trees: a control helps ReinMax, too.

    Rule: with 6 and with 10 words, the recovery of ReinMax with a control (4 samples) exceeds that without (4 samples).
    """
    names = "reinmax-control-variate", "reinmax-4"
    return [exceeds(f"ReinMax with - without a control, recovery, {n} words", gap(runs, n, *names)) for n in SIZES]


CLAIMS: dict[int, Callable[[Runs], list[Finding]]] = {
    201: control_helps, 202: control_is_near, 203: reinmax_control_helps,
}  # fmt: skip


def table(runs: Runs, n: int, protocol: Protocol = FULL, *, searched: bool = False) -> Table:
    """Every row on trees of n words, at the setting of the usual search or of the wide one; those without runs as `not run`."""

    def recovery(row: Chosen) -> Cell | None:
        return row.cell("test_recovery", digits=1) if row.method.latent else None

    columns = [
        Column("recovery", "Recovery", of=recovery), Column("solved", "solved", show=at_least(SOLVED), of=recovery),
        *measured({"accuracy": "Accuracy"}, "test_{}", digits=1), seeds_of(protocol),
        said("setting", "Setting", lambda row: row.setting if row.done else ""),
    ]  # fmt: skip
    names, setting = WIDE_ROWS if searched else ROWS, Setting("tree", n)
    found = [wide(name, setting, protocol).choose(runs) if searched else row(runs, name, n, protocol) for name in names]
    notes = [f"Solved: the share of seeds with a recovery of at least {SOLVED:g}%, with its 95% interval (Wilson)."]
    if searched:
        notes.append("Setting: the best of 16 random ones for every estimator; every run has 4000 decoder calls (rule 9).")
    making = "pullback reproduce planted" + " --wide" * searched + f" --words {n}" * (n not in SIZES)
    lines = [Row(f"`{each.name}`", each.cells, each.texts, name=each.name) for each in (row.row(columns) for row in found)]
    return Table(f"{n} words", columns, lines, notes, f"planted-{n}", protocol.warning, making, "Estimator")


def groups(runs: Runs) -> list[Group]:
    figures = []
    for n in SIZES:
        rows = [row(runs, name, n) for name in _DRAWN]
        drawn = learning_curves(rows, {"recovery": "Validation: recovery (%)", "accuracy": "Validation: accuracy (%)"})
        figures.append(Figure(f"Planted trees, {n} words", drawn, f"planted-{n}-curves", "Median and range of the seeds."))
    return [
        Group("Planted trees", [table(runs, n) for n in SIZES], figures),
        Group("Longer trees", [table(runs, n) for n in LONGER]),
        Group("A wide search with equal decoder calls", [table(runs, n, searched=True) for n in SIZES]),
    ]


def claims(runs: Runs) -> list[Claim]:
    return decide(CLAIMS, runs) if runs.of(TASK.name) else []


SECTION = Section(
    "The control variate on planted trees of 6 and 10 words, beside other estimators.", groups, claims, (TASK.name,)
)
