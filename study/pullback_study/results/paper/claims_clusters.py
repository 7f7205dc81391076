"""The paper's claims on synthetic data, each with the rule that decides it.

The rules were fixed before the runs were made. All compare the same seeds, pair by pair, on the test set after the last
step, with 95% intervals (`statistics.interval`); a row enters with the setting that the validation accuracy of seeds 0 to 3
chose from the paper's grid, in float32 and with the paper's scale of gamma. The verdicts rest on the 48 seeds of
`clusters.MANY` where they are run (claim 6 then looks at 1, 2, 5 and 10 inner steps), and on the four of `clusters.FULL`
otherwise. A claim holds if all its parts hold, does not hold if one part does not, and is otherwise not decided; so is a
part whose runs are not all done. Margins are in points of percent.
"""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections.abc import Callable
from dataclasses import dataclass

from pullback_study.results.choice import Chosen, Runs
from pullback_study.results.paper.clusters import FULL, MANY, METHODS, ROWS, SETTINGS, Scope, steps_plan, table_plan
from pullback_study.results.paper.verdicts import Finding, Values, Verdict, exceeds, minus, missing, near, opposite

FAR = 10.0
"""A difference that counts as far below, or as failing."""
NEAR = {"test_accuracy": 3.0, "test_v_measure": 5.0}
"""A shortfall that counts as indistinguishable, for each measure."""
RECOVERED = 90.0
"""The V-measure from which clusters count as recovered."""
MARGINS = {
    "FAR": f"FAR is {FAR:g} points",
    "NEAR": f"NEAR is {NEAR['test_accuracy']:g} points of accuracy, {NEAR['test_v_measure']:g} points of V-measure",
    "RECOVERED": f"RECOVERED is a V-measure of {RECOVERED:g}",
}
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

    def row(self, estimator: str, clusters: int) -> Chosen | None:
        return table_plan(estimator, clusters, grid=True, scope=self.scope).finished(self.runs)

    def values(self, estimator: str, clusters: int, measure: str) -> Values:
        return _values(self.row(estimator, clusters), measure)

    def steps(self, estimator: str) -> dict[int, Chosen] | None:
        """For each number of inner steps, the runs with the best step size."""
        found = {k: steps_plan(estimator, k, self.scope).finished(self.runs) for k in self.scope.inner_steps}
        return None if None in found.values() else {k: chosen for k, chosen in found.items() if chosen}

    def best_row(self, clusters: int, measure: str) -> Chosen | None:
        """The latent variable row with the highest mean of the measure, picked on the validation set."""
        rows = [self.row(name, clusters) for name in ROWS if METHODS[name].kind != "Baselines"]
        found = [row for row in rows if row]
        if len(found) < len(rows):
            return None
        return max(found, key=lambda row: statistics.fmean(row.values(measure.replace("test", "validation"))))


def claim_1(evidence: Evidence) -> list[Finding]:
    """Cluster separation is needed: the linear model is far below the gold-label oracle.

    Rule: in both settings the accuracy of the gold-label model exceeds the linear model's by more than FAR.
    """
    found = []
    for k in SETTINGS:
        gold, linear = (evidence.values(name, k, "test_accuracy") for name in ("gold", "linear"))
        found.append(exceeds(f"gold labels - linear model, accuracy, {k} clusters", minus(gold, linear), FAR))
    return found


def claim_2(evidence: Evidence) -> list[Finding]:
    """SFE fails without variance reduction; with a simple moving-average baseline it recovers the clusters.

    Rule: in both settings, without the baseline the accuracy is more than FAR below the gold-label model's; with it,
    the V-measure is above RECOVERED, and above the one without it.
    """
    found = []
    for k in SETTINGS:
        plain, reduced = (evidence.values(name, k, "test_v_measure") for name in ("sfe", "sfe-baseline"))
        gold, accuracy = (evidence.values(name, k, "test_accuracy") for name in ("gold", "sfe"))
        found += [
            exceeds(f"gold labels - SFE, accuracy, {k} clusters", minus(gold, accuracy), FAR),
            _recovers(f"SFE with baseline recovers the clusters, {k} clusters", reduced),
            exceeds(f"SFE with - without baseline, V-measure, {k} clusters", minus(reduced, plain)),
        ]
    return found


def claim_3(evidence: Evidence) -> list[Finding]:
    """STE-I, SPIGOT-CE and SPIGOT-EG are indistinguishable from the best methods; so are the stochastic ones.

    Rule: in both settings and on both measures, the shortfall from the best latent variable row is within NEAR
    (`verdicts.within`), for STE-I, SPIGOT-CE, SPIGOT-EG, Gumbel-Softmax, ST-Gumbel and SFE with baseline.
    The best row for a measure is picked on the validation set.
    """
    names = ("ste-i", "spigot-ce", "spigot-eg", "perturbed-marginals", "perturb-and-map", "sfe-baseline")
    return [_near_best(evidence, name, k, measure) for name in names for k in SETTINGS for measure in NEAR]


def claim_4(evidence: Evidence) -> list[Finding]:
    """Vanilla SPIGOT fails there, above all in cluster recovery; the cross-entropy variants are the more stable.

    Rule: in both settings, for SPIGOT-CE and for SPIGOT-EG: its V-measure exceeds SPIGOT's by more than FAR; that gap
    is wider than the gap in accuracy; and it is more stable: the standard deviation of the validation accuracy over the
    evaluations of the last quarter of training is smaller than SPIGOT's.
    """
    found = []
    for k in SETTINGS:
        spigot = evidence.row("spigot", k)
        for name in ("spigot-ce", "spigot-eg"):
            row, label = evidence.row(name, k), METHODS[name].label
            recovery, accuracy = (minus(_values(row, m), _values(spigot, m)) for m in ("test_v_measure", "test_accuracy"))
            late = minus(_late_deviation(spigot), _late_deviation(row))
            found += [
                exceeds(f"{label} - SPIGOT, V-measure, {k} clusters", recovery, FAR),
                exceeds(f"{label} - SPIGOT, gap in V-measure less gap in accuracy, {k} clusters", minus(recovery, accuracy)),
                exceeds(f"SPIGOT - {label}, deviation of the validation accuracy late in training, {k} clusters", late),
            ]
    return found


def claim_5(evidence: Evidence) -> list[Finding]:
    """Relaxations (softmax, sparsemax) learn the task fast and well, but do not recover the clusters.

    Rule, for both: well, the accuracy's shortfall from the best row is within NEAR, in both settings; fast, with 10
    clusters the mean validation accuracy over the first tenth of training exceeds STE-I's and SPIGOT-CE's; and the
    V-measure is below RECOVERED in both settings.
    """
    found = []
    for name in ("marginals", "sparsemap"):
        label = METHODS[name].label
        found += [_near_best(evidence, name, k, "test_accuracy") for k in SETTINGS]
        for other in ("ste-i", "spigot-ce"):
            early = minus(_early_accuracy(evidence.row(name, 10)), _early_accuracy(evidence.row(other, 10)))
            statement = f"{label} - {METHODS[other].label}, validation accuracy early in training, 10 clusters"
            found.append(exceeds(statement, early))
        for k in SETTINGS:
            statement = f"{label} does not recover the clusters, {k} clusters"
            recovered = _recovers(statement, evidence.values(name, k, "test_v_measure"))
            found.append(dataclasses.replace(recovered, verdict=opposite(recovered.verdict)))
    return found


def claim_6(evidence: Evidence) -> list[Finding]:
    """More inner steps do not rescue SPIGOT; SPIGOT-CE improves a little and passes STE-I; each step costs a call.

    Rule, with 10 clusters, each method at the number of inner steps that the mean validation accuracy prefers: STE-I's
    V-measure exceeds SPIGOT's by more than FAR; SPIGOT-CE's accuracy exceeds its own with one step, and
    STE-I's; and SPIGOT-CE with k steps makes k + 1 decoder calls, for every k.
    """
    curves = {name: evidence.steps(name) for name in ("ste-i", "spigot", "spigot-ce")}
    best = {name: _best_steps(curve) for name, curve in curves.items()}
    improved = curves["spigot-ce"]
    once = _values(improved[1] if improved else None, "test_accuracy")
    recovery = {name: _values(row, "test_v_measure") for name, row in best.items()}
    accuracy = {name: _values(row, "test_accuracy") for name, row in best.items()}
    each, counted = "each at its best number of inner steps", ", ".join(str(k) for k in evidence.scope.inner_steps)
    return [
        exceeds(f"STE-I - SPIGOT, V-measure, {each}", minus(recovery["ste-i"], recovery["spigot"]), FAR),
        exceeds("SPIGOT-CE at its best number of inner steps - with one, accuracy", minus(accuracy["spigot-ce"], once)),
        exceeds(f"SPIGOT-CE - STE-I, accuracy, {each}", minus(accuracy["spigot-ce"], accuracy["ste-i"])),
        _calls(f"SPIGOT-CE, decoder calls with {counted} inner steps", improved, [k + 1 for k in evidence.scope.inner_steps]),
    ]


def claim_11(evidence: Evidence) -> list[Finding]:
    """The first step of STE-I and SPIGOT costs no extra decoder call; SPIGOT-CE and -EG need one.

    Rule: the calls counted in a training step with one inner step are 1, 1, 2 and 2.
    """
    found = []
    for name, calls in {"ste-i": 1, "spigot": 1, "spigot-ce": 2, "spigot-eg": 2}.items():
        row = evidence.row(name, 10)
        found.append(_calls(f"{METHODS[name].label}, decoder calls of a step", {1: row} if row else None, [calls]))
    return found


CLAIMS: dict[int, Callable[[Evidence], list[Finding]]] = {
    1: claim_1, 2: claim_2, 3: claim_3, 4: claim_4, 5: claim_5, 6: claim_6, 11: claim_11,
}  # fmt: skip


def _near_best(evidence: Evidence, name: str, clusters: int, measure: str) -> Finding:
    statement = f"best row - {METHODS[name].label}, {_WORDS[measure]}, {clusters} clusters"
    best, row = evidence.best_row(clusters, measure), evidence.row(name, clusters)
    if best is None or row is None:
        return missing(statement)
    statement += f" (best: {METHODS[best.config.estimator].label})"
    return near(statement, minus(best.values(measure), row.values(measure)), NEAR[measure])


def _recovers(statement: str, values: Values) -> Finding:
    found = exceeds(statement, values, RECOVERED)
    return dataclasses.replace(found, evidence=f"V-measure {found.evidence}") if found.interval else found


def _calls(statement: str, rows: dict[int, Chosen] | None, expected: list[int]) -> Finding:
    least = [min(row.values("decoder_calls")) for row in rows.values()] if rows else [0.0]
    counted = [0 if math.isnan(calls) else int(calls) for calls in least]
    if 0 in counted:  # a step calls the decoder, so these were not counted
        return missing(statement)
    return Finding(statement, f"{counted}", Verdict.HOLDS if counted == expected else Verdict.FAILS)


def _best_steps(curve: dict[int, Chosen] | None) -> Chosen | None:
    return max(curve.values(), key=lambda row: statistics.fmean(row.values("validation_accuracy"))) if curve else None


def _values(row: Chosen | None, measure: str) -> Values:
    return row.values(measure) if row else None


def _early_accuracy(row: Chosen | None) -> Values:
    """The mean validation accuracy over the first tenth of training, for each seed."""
    if row is None:
        return None
    last = row.config.steps / 10
    return [statistics.fmean(v for step, v in each.items() if step <= last) for each in row.histories("accuracy")]


def _late_deviation(row: Chosen | None) -> Values:
    """The standard deviation of the validation accuracy over the last quarter of training, for each seed."""
    if row is None:
        return None
    first = 0.75 * row.config.steps
    return [statistics.stdev(v for step, v in each.items() if step > first) for each in row.histories("accuracy")]
