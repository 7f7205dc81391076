"""The paper's claims on synthetic data, each with the rule that decides it.

The rules were fixed before the runs were made. All compare the same seeds, pair by pair, on the test set after the last
step, with 95% intervals (`cells.interval`); a row enters with the setting that the validation accuracy of seeds 0 to 3
chose from the paper's grid, in float32 and with the paper's scale of gamma. The verdicts rest on the 48 seeds of
`MANY` where they are run (claim 6 then looks at 1, 2, 5 and 10 inner steps), and on the four of `FULL`
otherwise. A claim holds if all its parts hold, does not hold if one part does not, and is otherwise not decided; so is a
part whose runs are not all done. Margins are in points of percent.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from pullback_study.results.choice import Chosen, Runs

from pullback_study.results.paper.clusters import (  # isort: skip
    FULL, MANY, METHODS, ROWS, SETTINGS, Scope, groups, steps_plan, table_plan,
)  # fmt: skip
from pullback_study.results.paper.verdicts import (  # isort: skip
    Finding, Values, Verdict, below, best_of, decide, exceeds, minus, near_best,
)  # fmt: skip
from pullback_study.results.registry import Section

FAR = 10.0
"""A difference that counts as far below, or as failing."""
NEAR = {"test_accuracy": 3.0, "test_v_measure": 5.0}
"""A shortfall that counts as indistinguishable, for each measure."""
RECOVERED = 90.0
"""The V-measure from which clusters count as recovered."""
_WORDS = {"test_accuracy": "accuracy", "test_v_measure": "V-measure"}


@dataclass(frozen=True)
class Evidence:
    """The runs that the verdicts rest on, with their seeds, steps and precision."""

    runs: Runs
    scope: Scope = FULL

    @classmethod
    def best(cls, runs: Runs) -> Evidence:
        """With 48 seeds, if the first row of the table has them, and with four otherwise."""
        many = cls(runs, MANY)
        return many if many.row(ROWS[0], SETTINGS[0]) else cls(runs)

    def row(self, estimator: str, clusters: int) -> Chosen:
        return table_plan(estimator, clusters, grid=True, scope=self.scope).finished(self.runs)

    def steps(self, estimator: str) -> dict[int, Chosen]:
        """For each number of inner steps, the runs with the best step size; none while one is missing."""
        found = {k: steps_plan(estimator, k, self.scope).finished(self.runs) for k in self.scope.inner_steps}
        return found if all(found.values()) else {}

    def gap(self, first: str, second: str, clusters: int, measure: str) -> Values:
        """The difference of two rows, seed by seed."""
        return minus(self.row(first, clusters).values(measure), self.row(second, clusters).values(measure))

    def near_best(self, name: str, clusters: int, measure: str) -> Finding:
        """The shortfall from the latent variable row with the highest mean of the measure, picked on the validation set."""
        rows = [self.row(each, clusters) for each in ROWS if METHODS[each].kind != "Baselines"]
        best = best_of(rows, measure.replace("test", "validation"))
        words = f"{_WORDS[measure]}, {clusters} clusters"
        return near_best(self.row(name, clusters), best, measure, words, NEAR[measure])


def claim_1(evidence: Evidence) -> list[Finding]:
    """Cluster separation is needed: the linear model is far below the gold-label oracle.

    Rule: in both settings the accuracy of the gold-label model exceeds the linear model's by more than 10 points.
    """
    gaps = {k: evidence.gap("gold", "linear", k, "test_accuracy") for k in SETTINGS}
    return [exceeds(f"gold labels - linear model, accuracy, {k} clusters", gap, FAR) for k, gap in gaps.items()]


def claim_2(evidence: Evidence) -> list[Finding]:
    """SFE fails without variance reduction; with a simple moving-average baseline it recovers the clusters.

    Rule: in both settings, without the baseline the accuracy is more than 10 points below the gold-label model's; with it,
    the V-measure is above 90, and above the one without it.
    """
    found = []
    for k in SETTINGS:
        plain, reduced = (evidence.row(name, k).values("test_v_measure") for name in ("sfe", "sfe-baseline"))
        found += [
            exceeds(f"gold labels - SFE, accuracy, {k} clusters", evidence.gap("gold", "sfe", k, "test_accuracy"), FAR),
            exceeds(f"SFE with baseline recovers the clusters: V-measure, {k} clusters", reduced, RECOVERED),
            exceeds(f"SFE with - without baseline, V-measure, {k} clusters", minus(reduced, plain)),
        ]
    return found


def claim_3(evidence: Evidence) -> list[Finding]:
    """STE-I, SPIGOT-CE and SPIGOT-EG are indistinguishable from the best methods; so are the stochastic ones.

    Rule: in both settings and on both measures, the shortfall from the best latent variable row is within
    3 points of accuracy or 5 of V-measure (`verdicts.within`), for STE-I, SPIGOT-CE, SPIGOT-EG, Gumbel-Softmax, ST-Gumbel and
    SFE with baseline. The best row for a measure is picked on the validation set.
    """
    names = ("ste-i", "spigot-ce", "spigot-eg", "perturbed-marginals", "perturb-and-map", "sfe-baseline")
    return [evidence.near_best(name, k, measure) for name in names for k in SETTINGS for measure in NEAR]


def claim_4(evidence: Evidence) -> list[Finding]:
    """Vanilla SPIGOT fails there, above all in cluster recovery; the cross-entropy variants are the more stable.

    Rule: in both settings, for SPIGOT-CE and for SPIGOT-EG: its V-measure exceeds SPIGOT's by more than 10 points; that
    gap is wider than the gap in accuracy; and it is more stable: the standard deviation of the validation accuracy over the
    evaluations of the last quarter of training is smaller than SPIGOT's.
    """
    found = []
    for k in SETTINGS:
        for name in ("spigot-ce", "spigot-eg"):
            label = METHODS[name].label
            recovery, accuracy = (evidence.gap(name, "spigot", k, measure) for measure in ("test_v_measure", "test_accuracy"))
            late = minus(*(_over_training(evidence.row(each, k), statistics.stdev, 0.75, 1) for each in ("spigot", name)))
            found += [
                exceeds(f"{label} - SPIGOT, V-measure, {k} clusters", recovery, FAR),
                exceeds(f"{label} - SPIGOT, gap in V-measure less gap in accuracy, {k} clusters", minus(recovery, accuracy)),
                exceeds(f"SPIGOT - {label}, deviation of the validation accuracy late in training, {k} clusters", late),
            ]
    return found


def claim_5(evidence: Evidence) -> list[Finding]:
    """Relaxations (softmax, sparsemax) learn the task fast and well, but do not recover the clusters.

    Rule, for both: well, the accuracy's shortfall from the best row is within 3 points, in both settings; fast, with 10
    clusters the mean validation accuracy over the first tenth of training exceeds STE-I's and SPIGOT-CE's; and the
    V-measure is below 90 in both settings.
    """
    found = []
    for name in ("marginals", "sparsemap"):
        label = METHODS[name].label
        found += [evidence.near_best(name, k, "test_accuracy") for k in SETTINGS]
        for other in ("ste-i", "spigot-ce"):
            early = minus(*(_over_training(evidence.row(each, 10), statistics.fmean, -1, 0.1) for each in (name, other)))
            found.append(
                exceeds(f"{label} - {METHODS[other].label}, validation accuracy early in training, 10 clusters", early)
            )
        for k in SETTINGS:
            values = evidence.row(name, k).values("test_v_measure")
            found.append(below(f"{label} does not recover the clusters: V-measure, {k} clusters", values, RECOVERED))
    return found


def claim_6(evidence: Evidence) -> list[Finding]:
    """More inner steps do not rescue SPIGOT; SPIGOT-CE improves a little and passes STE-I; each step costs a call.

    Rule, with 10 clusters, each method at the number of inner steps that the mean validation accuracy prefers: STE-I's
    V-measure exceeds SPIGOT's by more than 10 points; SPIGOT-CE's accuracy exceeds its own with one step, and
    STE-I's; and SPIGOT-CE with k steps makes k + 1 decoder calls, for every k.
    """
    curves, inner = {name: evidence.steps(name) for name in ("ste-i", "spigot", "spigot-ce")}, evidence.scope.inner_steps
    best = {name: best_of(list(rows.values()), "validation_accuracy") for name, rows in curves.items()}
    accuracy = {name: row.values("test_accuracy") if row else [] for name, row in best.items()}
    recovery = {name: row.values("test_v_measure") if row else [] for name, row in best.items()}
    once = curves["spigot-ce"][1].values("test_accuracy") if curves["spigot-ce"] else []
    each = "each at its best number of inner steps"
    calls = f"SPIGOT-CE, decoder calls with {', '.join(map(str, inner))} inner steps"
    return [
        exceeds(f"STE-I - SPIGOT, V-measure, {each}", minus(recovery["ste-i"], recovery["spigot"]), FAR),
        exceeds("SPIGOT-CE at its best number of inner steps - with one, accuracy", minus(accuracy["spigot-ce"], once)),
        exceeds(f"SPIGOT-CE - STE-I, accuracy, {each}", minus(accuracy["spigot-ce"], accuracy["ste-i"])),
        _calls(calls, list(curves["spigot-ce"].values()), [k + 1 for k in inner]),
    ]


def claim_11(evidence: Evidence) -> list[Finding]:
    """The first step of STE-I and SPIGOT costs no extra decoder call; SPIGOT-CE and -EG need one.

    Rule: the calls counted in a training step with one inner step are 1, 1, 2 and 2.
    """
    expected = {"ste-i": 1, "spigot": 1, "spigot-ce": 2, "spigot-eg": 2}
    return [_calls(f"{METHODS[name].label}, decoder calls of a step", [evidence.row(name, 10)], [calls])
            for name, calls in expected.items()]  # fmt: skip


CLAIMS = {1: claim_1, 2: claim_2, 3: claim_3, 4: claim_4, 5: claim_5, 6: claim_6, 11: claim_11}


def _calls(statement: str, rows: Sequence[Chosen], expected: list[int]) -> Finding:
    least = [min(row.values("decoder_calls"), default=0.0) for row in rows]
    counted = [0 if math.isnan(calls) else int(calls) for calls in least]
    if not counted or 0 in counted:  # a step calls the decoder, so these were not counted
        return Finding(statement)
    return Finding(statement, f"{counted}", Verdict.HOLDS if counted == expected else Verdict.FAILS)


def _over_training(row: Chosen, middle: Callable[[list[float]], float], after: float, until: float) -> Values:
    """For each seed a statistic of the validation accuracy between two points of training, as shares of its steps."""

    def inside(history: Mapping[float, float]) -> list[float]:
        return [value for step, value in history.items() if after < step / row.config.steps <= until]

    return [middle(inside(history)) for history in row.histories("accuracy")]


SECTION = Section(
    "Synthetic clusters",
    "Table 1 of the paper: test accuracy and V-measure in percent, beside the paper's numbers.",
    groups,
    lambda runs: decide(CLAIMS, Evidence.best(runs)),
)
