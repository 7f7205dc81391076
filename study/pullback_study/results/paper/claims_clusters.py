"""The paper's claims on synthetic data, each with the rule that decides it, and what the rules look at.

The rules were committed before the runs. All compare the same seeds, pair by pair, on the test set after the last step, with
95% intervals (`cells.interval`), in float32 and with the paper's scale of gamma. Each is applied three times: to runs at the
paper's settings, to runs at the settings that the validation accuracy of seeds 0 to 3 chose from the paper's grid, and to
the numbers that the paper published (`Paper`). A comparison uses the seeds that all its rows have, and needs
`verdicts.LEAST` of the 48. A claim holds if all its parts hold, does not hold if one part does not, and is otherwise not
decided; so is a part whose runs are not all done. Margins are in points of percent.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from pullback_study.results.choice import Chosen, Protocol, Runs
from pullback_study.results.paper import reported

from pullback_study.results.paper.clusters import (  # isort: skip
    MANY, MEASURES, METHODS, ROWS, SETTINGS, groups, inner_steps, steps_plan, table_plan,
)  # fmt: skip
from pullback_study.results.paper.verdicts import (  # isort: skip
    Claim, Evidence, Finding, PaperRow, Published, Values, Verdict, below, best_of, decide, exceeds, level, minus, near, paired,
)  # fmt: skip
from pullback_study.results.registry import Section

FAR = 10.0
"""A difference that counts as far below, or as failing."""
RECOVERED = 90.0
"""The V-measure from which clusters count as recovered."""
OUTPERFORMS = 1.0
"""A difference of accuracies from which a row outperforms another."""
RELAXED = ("marginals", "sparsemap")
DISCRETE = ("perturb-and-map", "sfe-baseline", "ste-s", "ste-i", "spigot", "spigot-ce", "spigot-eg")
LATENT = tuple(name for name in ROWS if METHODS[name].kind != "Baselines")
_WORDS = {"test_accuracy": "accuracy", "test_v_measure": "V-measure"}
_RUNS = 4  # behind each of the paper's numbers, which are medians with a standard error


@dataclass(frozen=True)
class Clusters(Evidence):
    """Rows with k clusters: at the paper's settings, or with `grid` at searched ones."""

    runs: Runs
    protocol: Protocol = MANY
    grid: bool = False
    margins: ClassVar[Mapping[str, float]] = {"test_accuracy": 3.0, "test_v_measure": 5.0}
    """How much larger than in the paper a shortfall may be, for each measure."""

    def row(self, clusters: int, estimator: str) -> Any:
        return table_plan(estimator, clusters, grid=self.grid, protocol=self.protocol).choose(self.runs)

    def steps(self, estimator: str) -> dict[int, Chosen]:
        """For each number of inner steps, the runs with the best step size; none while one is missing."""
        found = {k: steps_plan(estimator, k, self.protocol).choose(self.runs) for k in inner_steps(self.protocol)}
        there = paired(*found.values())
        return dict(zip(found, there, strict=True)) if all(row.done for row in there) else {}

    def choosing(self, measure: str) -> str:
        """The measure that picks the best row."""
        return measure.replace("test", "validation")

    def near_best(self, name: str, clusters: int, measure: str) -> Finding:
        """The shortfall from the latent variable row with the highest mean of the measure, against the paper's own."""
        rows = self.rows(clusters, *LATENT)
        mine, best = rows[LATENT.index(name)], best_of(rows, self.choosing(measure))
        paper = {each: level(published(each, clusters).values(measure)) for each in LATENT}
        margin = round(self.margins[measure] + (max(paper.values()) - paper[name]), 2)
        statement = f"best row - {mine.method.label}, {_WORDS[measure]}, {clusters} clusters"
        if best is None or not mine:
            return Finding(statement)
        return near(f"{statement} (best: {best.method.label})", minus(best.values(measure), mine.values(measure)), margin)


class Paper(Clusters):
    """The paper's table in the place of runs: no seeds, no curves and nothing on the validation set."""

    def row(self, clusters: int, estimator: str) -> PaperRow:
        return published(estimator, clusters)

    def steps(self, estimator: str) -> dict[int, Chosen]:
        return {}

    def choosing(self, measure: str) -> str:
        return measure


def published(estimator: str, clusters: int) -> PaperRow:
    """A row of the paper's table."""
    method, found = METHODS[estimator], {}
    for measure in MEASURES:
        if cell := reported("synthetic", method.label, f"{clusters} clusters", measure):
            found[f"test_{measure}"] = Published(cell.value, cell.spread, _RUNS)
    return PaperRow(method, found)


def claim_1(evidence: Clusters) -> list[Finding]:
    """Cluster separation is needed: the linear model is far below the gold-label oracle.

    Rule: in both settings the accuracy of the gold-label model exceeds the linear model's by more than 10 points.
    """
    gaps = {k: evidence.gap(k, "gold", "linear", "test_accuracy") for k in SETTINGS}
    return [exceeds(f"gold labels - linear model, accuracy, {k} clusters", gap, FAR) for k, gap in gaps.items()]


def claim_2(evidence: Clusters) -> list[Finding]:
    """SFE fails without variance reduction; with a simple moving-average baseline it recovers the clusters.

    Rule: in both settings, without the baseline the accuracy is more than 10 points below the gold-label model's; with it,
    the V-measure is above 90, and above the one without it.
    """
    found = []
    for k in SETTINGS:
        reduced = evidence.rows(k, "sfe-baseline")[0].values("test_v_measure")
        gained = evidence.gap(k, "sfe-baseline", "sfe", "test_v_measure")
        found += [
            exceeds(f"gold labels - SFE, accuracy, {k} clusters", evidence.gap(k, "gold", "sfe", "test_accuracy"), FAR),
            exceeds(f"SFE with baseline recovers the clusters: V-measure, {k} clusters", reduced, RECOVERED),
            exceeds(f"SFE with - without baseline, V-measure, {k} clusters", gained),
        ]
    return found


def claim_3(evidence: Clusters) -> list[Finding]:
    """STE-I, SPIGOT-CE and SPIGOT-EG are indistinguishable from the best methods; so are the stochastic ones.

    Rule: in both settings and on both measures, the shortfall from the best latent variable row exceeds the one in the paper's
    own table by less than 3 points of accuracy or 5 of V-measure (`verdicts.near`), for STE-I, SPIGOT-CE, SPIGOT-EG,
    Gumbel-Softmax, ST-Gumbel and SFE with baseline. The best row for a measure is picked on the validation set; in the paper's
    table, which has no validation numbers, on the test set. (The first rule did not add the paper's own shortfall, so that the
    paper's table failed it: there, SPIGOT-EG is 7.1 points of accuracy below softmax with 10 clusters.)
    """
    names = ("ste-i", "spigot-ce", "spigot-eg", "perturbed-marginals", "perturb-and-map", "sfe-baseline")
    return [evidence.near_best(name, k, measure) for name in names for k in SETTINGS for measure in evidence.margins]


def claim_4(evidence: Clusters) -> list[Finding]:
    """Vanilla SPIGOT fails there, above all in cluster recovery; the cross-entropy variants are the more stable.

    Rule: in both settings, for SPIGOT-CE and for SPIGOT-EG: its V-measure exceeds SPIGOT's by more than 10 points; that
    gap is wider than the gap in accuracy; and it is more stable: the standard deviation of the validation accuracy over the
    evaluations of the last quarter of training is smaller than SPIGOT's.
    """
    found = []
    for k in SETTINGS:
        for name in ("spigot-ce", "spigot-eg"):
            label = METHODS[name].label
            recovery, accuracy = (evidence.gap(k, name, "spigot", measure) for measure in ("test_v_measure", "test_accuracy"))
            rows = evidence.rows(k, "spigot", name)
            late = minus(*(_over_training(row, statistics.stdev, 0.75, 1) for row in rows))
            found += [
                exceeds(f"{label} - SPIGOT, V-measure, {k} clusters", recovery, FAR),
                exceeds(f"{label} - SPIGOT, gap in V-measure less gap in accuracy, {k} clusters", minus(recovery, accuracy)),
                exceeds(f"SPIGOT - {label}, deviation of the validation accuracy late in training, {k} clusters", late),
            ]
    return found


def claim_5(evidence: Clusters) -> list[Finding]:
    """Relaxations (softmax, sparsemax) learn the task fast and well, but do not recover the clusters.

    Rule, for both: well, the accuracy's shortfall from the best row is as in claim 3, in both settings; fast, with 10
    clusters the mean validation accuracy over the first tenth of training exceeds STE-I's and SPIGOT-CE's; and the
    V-measure is below 90 in both settings.
    """
    found = []
    for name in RELAXED:
        label = METHODS[name].label
        found += [evidence.near_best(name, k, "test_accuracy") for k in SETTINGS]
        for other in ("ste-i", "spigot-ce"):
            early = minus(*(_over_training(row, statistics.fmean, -1, 0.1) for row in evidence.rows(10, name, other)))
            found.append(
                exceeds(f"{label} - {METHODS[other].label}, validation accuracy early in training, 10 clusters", early)
            )
        for k in SETTINGS:
            values = evidence.rows(k, name)[0].values("test_v_measure")
            found.append(below(f"{label} does not recover the clusters: V-measure, {k} clusters", values, RECOVERED))
    return found


def claim_6(evidence: Clusters) -> list[Finding]:
    """More inner steps do not rescue SPIGOT; SPIGOT-CE improves a little and passes STE-I; each step costs a call.

    Rule, with 10 clusters, each method at the number of inner steps that the mean validation accuracy prefers: STE-I's
    V-measure exceeds SPIGOT's by more than 10 points; SPIGOT-CE's accuracy exceeds its own with one step, and
    STE-I's; and SPIGOT-CE with k steps makes k + 1 decoder calls, for every k.
    """
    names, inner = ("ste-i", "spigot", "spigot-ce"), inner_steps(evidence.protocol)
    curves = {name: evidence.steps(name) for name in names}
    best = {name: best_of(list(rows.values()), "validation_accuracy") for name, rows in curves.items()}
    there = all(best.values())
    once = curves["spigot-ce"][1] if there else None

    def gap(first: Chosen | None, second: Chosen | None, measure: str) -> Values:
        if first is None or second is None:
            return []
        return minus(*(row.values(measure) for row in paired(first, second)))

    each = "each at its best number of inner steps"
    calls = f"SPIGOT-CE, decoder calls with {', '.join(map(str, inner))} inner steps"
    return [
        exceeds(f"STE-I - SPIGOT, V-measure, {each}", gap(best["ste-i"], best["spigot"], "test_v_measure"), FAR),
        exceeds(
            "SPIGOT-CE at its best number of inner steps - with one, accuracy", gap(best["spigot-ce"], once, "test_accuracy")
        ),
        exceeds(f"SPIGOT-CE - STE-I, accuracy, {each}", gap(best["spigot-ce"], best["ste-i"], "test_accuracy")),
        _calls(calls, list(curves["spigot-ce"].values()), [k + 1 for k in inner]),
    ]


def claim_11(evidence: Clusters) -> list[Finding]:
    """The first step of STE-I and SPIGOT costs no extra decoder call; SPIGOT-CE and -EG need one.

    Rule: the calls counted in a training step with one inner step are 1, 1, 2 and 2.
    """
    expected = {"ste-i": 1, "spigot": 1, "spigot-ce": 2, "spigot-eg": 2}
    return [_calls(f"{METHODS[name].label}, decoder calls of a step", [evidence.row(10, name)], [calls])
            for name, calls in expected.items()]  # fmt: skip


def claim_12(evidence: Clusters) -> list[Finding]:
    """SPIGOT fails on both metrics, accuracy and V-measure, where STE-I works well (10 clusters).

    Rule: with 10 clusters STE-I exceeds SPIGOT by more than 10 points of accuracy, and by more than 10 of V-measure.
    """
    words = {"test_accuracy": "accuracy", "test_v_measure": "V-measure"}
    return [
        exceeds(f"STE-I - SPIGOT, {word}, 10 clusters", evidence.gap(10, "ste-i", "spigot", name), FAR)
        for name, word in words.items()
    ]


def claim_13(evidence: Clusters) -> list[Finding]:
    """Discrete methods do not outperform the relaxed alternatives, on clusters.

    Rule: in both settings, no row whose decoder sees structures exceeds the accuracy of softmax by more than 1 point
    (`verdicts.near`: not so where the interval lies above 0 and the mean above 1).
    """
    found = []
    for name in DISCRETE:
        for k in SETTINGS:
            gap = evidence.gap(k, name, "marginals", "test_accuracy")
            found.append(near(f"{METHODS[name].label} - Softmax, accuracy, {k} clusters", gap, OUTPERFORMS))
    return found


CLAIMS = {
    1: claim_1, 2: claim_2, 3: claim_3, 4: claim_4, 5: claim_5, 6: claim_6, 11: claim_11, 12: claim_12, 13: claim_13,
}  # fmt: skip
_SAME = (6, 11)
"""Claims whose runs have the paper's settings in any case."""


def claims(runs: Runs, **protocol: Any) -> list[Claim]:
    """Every claim at the paper's settings, and those that depend on them at searched settings, too."""
    searched = {number: rule for number, rule in CLAIMS.items() if number not in _SAME}
    ways = {"at the paper's settings": (CLAIMS, False), "at searched settings": (searched, True)}
    found = [
        decide(rules, Clusters(runs, **protocol, grid=grid), Paper(runs, **protocol), where)
        for where, (rules, grid) in ways.items()
    ]
    return [claim for each in found for claim in each]


def _calls(statement: str, rows: Sequence[Any], expected: list[int]) -> Finding:
    found = [row.values("decoder_calls") for row in rows]
    least = [min(values, default=0.0) for values in found if not isinstance(values, Published)]
    counted = [0 if math.isnan(calls) else int(calls) for calls in least]
    if not counted or 0 in counted:  # a step calls the decoder, so these were not counted
        return Finding(statement)
    return Finding(statement, f"{counted}", Verdict.HOLDS if counted == expected else Verdict.FAILS)


def _over_training(row: Any, middle: Callable[[list[float]], float], after: float, until: float) -> Values:
    """For each seed a statistic of the validation accuracy between two points of training, as shares of its steps."""

    def inside(history: Mapping[float, float]) -> list[float]:
        return [value for step, value in history.items() if after < step / row.config.steps <= until]

    return [] if isinstance(row, PaperRow) else [middle(inside(history)) for history in row.histories("accuracy")]


SECTION = Section(
    "Table 1 of the paper: test accuracy and V-measure in percent, beside the paper's numbers.", groups, claims, ("synthetic",)
)
