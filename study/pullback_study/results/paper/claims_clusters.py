"""The paper's claims on synthetic data, each with the rule that decides it.

The rules were fixed before the runs were made. All compare the same seeds, pair by pair, on the test set after the last
step, with 95% intervals (`statistics.interval`); a row enters with the setting that the validation accuracy chose from the
paper's grid, in float32 and with the paper's scale of gamma. A claim holds if all its parts hold, does not hold if one
part does not, and is otherwise not decided; so is a part whose runs are not all done. Margins are in points of percent.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import statistics
from collections.abc import Callable
from dataclasses import dataclass

from pullback_study.results.choice import Chosen, Runs
from pullback_study.results.paper.clusters import FULL, METHODS, ROWS, SETTINGS, Scope, steps_plan, table_plan
from pullback_study.results.paper.verdicts import Finding, Values, Verdict, compare, exceeds, missing, near, opposite

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
    """The runs that the verdicts rest on.

    Args:
        runs: the folder.
        scope: seeds, steps and precision.
    """

    runs: Runs
    scope: Scope = FULL

    def row(self, estimator: str, clusters: int) -> Chosen | None:
        return self._row(estimator, clusters)

    @functools.cached_property
    def _row(self) -> Callable[[str, int], Chosen | None]:
        def row(estimator: str, clusters: int) -> Chosen | None:
            return table_plan(estimator, clusters, grid=True, scope=self.scope).choose(self.runs)

        return functools.cache(row)

    def values(self, estimator: str, clusters: int, measure: str) -> Values:
        row = self.row(estimator, clusters)
        return row.values(measure) if row else None

    def steps(self, estimator: str) -> dict[int, Chosen] | None:
        """For each number of inner steps, the runs with the best step size."""
        found = {k: steps_plan(estimator, k, self.scope).choose(self.runs) for k in self.scope.inner_steps}
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
    measure = "test_accuracy"
    return [
        compare(
            f"gold labels - linear model, accuracy, {k} clusters",
            evidence.values("gold", k, measure), evidence.values("linear", k, measure), FAR,
        )
        for k in SETTINGS
    ]  # fmt: skip


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
            compare(f"gold labels - SFE, accuracy, {k} clusters", gold, accuracy, FAR),
            _recovers(f"SFE with baseline recovers the clusters, {k} clusters", reduced),
            compare(f"SFE with - without baseline, V-measure, {k} clusters", reduced, plain),
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
            found += [
                _differ(f"{label} - SPIGOT, V-measure, {k} clusters", row, spigot, _measure("test_v_measure"), FAR),
                _differ(f"{label} - SPIGOT, gap in V-measure less gap in accuracy, {k} clusters", row, spigot, _gap),
                _differ(
                    f"SPIGOT - {label}, deviation of the validation accuracy late in training, {k} clusters",
                    spigot, row, _late_deviation,
                ),
            ]  # fmt: skip
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
        found += [
            _differ(
                f"{label} - {METHODS[other].label}, validation accuracy early in training, 10 clusters",
                evidence.row(name, 10), evidence.row(other, 10), _early_accuracy,
            )
            for other in ("ste-i", "spigot-ce")
        ]  # fmt: skip
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
    accuracy = _measure("test_accuracy")
    return [
        _differ(
            "STE-I - SPIGOT, V-measure, each at its best number of inner steps",
            best["ste-i"], best["spigot"], _measure("test_v_measure"), FAR,
        ),
        _differ(
            "SPIGOT-CE at its best number of inner steps - with one, accuracy",
            best["spigot-ce"], improved[1] if improved else None, accuracy,
        ),
        _differ(
            "SPIGOT-CE - STE-I, accuracy, each at its best number of inner steps",
            best["spigot-ce"], best["ste-i"], accuracy,
        ),
        _calls("SPIGOT-CE, decoder calls with 1 to 10 inner steps", improved, [k + 1 for k in evidence.scope.inner_steps]),
    ]  # fmt: skip


def claim_11(evidence: Evidence) -> list[Finding]:
    """The first step of STE-I and SPIGOT costs no extra decoder call; SPIGOT-CE and -EG need one.

    Rule: the calls counted in a training step with one inner step are 1, 1, 2 and 2.
    """
    expected = {"ste-i": 1, "spigot": 1, "spigot-ce": 2, "spigot-eg": 2}
    found = []
    for name, calls in expected.items():
        row = evidence.row(name, 10)
        found.append(_calls(f"{METHODS[name].label}, decoder calls of a step", {1: row} if row else None, [calls]))
    return found


CLAIMS: dict[int, Callable[[Evidence], list[Finding]]] = {
    1: claim_1, 2: claim_2, 3: claim_3, 4: claim_4, 5: claim_5, 6: claim_6, 11: claim_11,
}  # fmt: skip


def _differ(
    statement: str, high: Chosen | None, low: Chosen | None, values: Callable[[Chosen], list[float]], threshold: float = 0.0
) -> Finding:
    return compare(statement, values(high) if high else None, values(low) if low else None, threshold)


def _near_best(evidence: Evidence, name: str, clusters: int, measure: str) -> Finding:
    statement = f"best row - {METHODS[name].label}, {_WORDS[measure]}, {clusters} clusters"
    best, row = evidence.best_row(clusters, measure), evidence.row(name, clusters)
    if best is None or row is None:
        return missing(statement)
    statement += f" (best: {METHODS[best.config.estimator].label})"
    return near(statement, best.values(measure), row.values(measure), NEAR[measure])


def _recovers(statement: str, values: Values) -> Finding:
    return exceeds(statement, values, RECOVERED, "V-measure ")


def _calls(statement: str, rows: dict[int, Chosen] | None, expected: list[int]) -> Finding:
    least = [min(row.values("decoder_calls")) for row in rows.values()] if rows else [0.0]
    counted = [0 if math.isnan(calls) else int(calls) for calls in least]
    if 0 in counted:  # a step calls the decoder, so these were not counted
        return missing(statement)
    return Finding(statement, f"{counted}", Verdict.HOLDS if counted == expected else Verdict.FAILS)


def _best_steps(curve: dict[int, Chosen] | None) -> Chosen | None:
    if curve is None:
        return None
    return max(curve.values(), key=lambda chosen: statistics.fmean(chosen.values("validation_accuracy")))


def _measure(name: str) -> Callable[[Chosen], list[float]]:
    return lambda chosen: chosen.values(name)


def _gap(chosen: Chosen) -> list[float]:
    pairs = zip(chosen.values("test_v_measure"), chosen.values("test_accuracy"), strict=True)
    return [recovery - accuracy for recovery, accuracy in pairs]


def _early_accuracy(chosen: Chosen) -> list[float]:
    """The mean validation accuracy over the first tenth of training, for each seed."""
    last = chosen.config.steps / 10
    return [statistics.fmean(v for step, v in each.items() if step <= last) for each in chosen.histories("accuracy")]


def _late_deviation(chosen: Chosen) -> list[float]:
    """The standard deviation of the validation accuracy over the last quarter of training, for each seed."""
    first = 0.75 * chosen.config.steps
    return [statistics.stdev(v for step, v in each.items() if step > first) for each in chosen.histories("accuracy")]
