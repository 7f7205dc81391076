"""The paper's claims on text, each with the rule that decides it.

The rules were fixed before the runs were made. All compare the same seeds, pair by pair, with 95% intervals
(`statistics.interval`), on the test set unless said otherwise, each run at its epoch with the best validation accuracy.
On SST a row enters with the learning rate that the search chose (the same few for every row), on SNLI with the paper's
best setting; step sizes are the paper's, with the paper's scale of gamma. A claim holds if all its parts hold, does not
hold if one part does not, and is otherwise not decided; so is a part whose runs are not all done, or with one seed.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from pullback_study.results.choice import Chosen, Runs
from pullback_study.results.paper.text import FULL, INNER_STEPS, METHODS, ROWS, STEPPED, Scope, on_data_of, table_plan
from pullback_study.results.paper.verdicts import (
    Finding,
    Values,
    Verdict,
    above,
    between,
    exceeds,
    judge,
    minus,
    missing,
    near,
    opposite,
    show,
)

NEAR = 1.5
"""A difference of accuracies, in points, that counts as small."""
FLAT = 3.0
"""A mean depth below which trees count as flat: one word at the root and all others below it make 2."""
DEEP = (4.0, 6.0)
"""What counts as a mean depth around 5."""
MARGINS = {
    "NEAR": f"NEAR is {NEAR:g} points",
    "FLAT": f"FLAT is a depth of {FLAT:g}",
    "DEEP": f"DEEP is from {DEEP[0]:g} to {DEEP[1]:g}",
}
RELAXED = tuple(name for name in ROWS if METHODS[name].kind == "Relaxed")
ARGMAX = tuple(name for name in ROWS if METHODS[name].kind == "Argmax")
ADJECTIVES, DRAMA = (2, 4, 5), 6  # words of "A taut , intelligent psychological drama .", counted from 1


@dataclass(frozen=True)
class Evidence:
    """The runs that the verdicts rest on."""

    runs: Runs
    scopes: dict[str, Scope] = field(default_factory=dict)  # by default on the data that most of the runs were trained on
    searched: tuple[str, ...] = ("sst",)  # the tasks whose rows enter with the setting of the search, not with the paper's

    def row(self, task: str, estimator: str) -> Chosen | None:
        """A row whose runs are all done."""
        scope = self.scopes[task] if task in self.scopes else on_data_of(self.runs, FULL[task])
        return table_plan(estimator, scope, search=task in self.searched).finished(self.runs)

    def values(self, task: str, estimator: str, measure: str) -> Values:
        row = self.row(task, estimator)
        return row.values(measure) if row else None

    def best_row(self, task: str) -> Chosen | None:
        """The row with the highest mean validation accuracy, the baseline included."""
        found = [row for name in ROWS if (row := self.row(task, name))]
        if len(found) < len(ROWS):
            return None
        return max(found, key=lambda row: statistics.fmean(row.values("validation_accuracy")))

    def steps(self, estimator: str) -> dict[int, Chosen]:
        """The row on SST by its number of inner steps, where all runs are done."""
        row = self.row("sst", estimator)
        found = {k: row.replace(self.runs, inner_steps=k) for k in INNER_STEPS} if row else {}
        return {k: chosen for k, chosen in found.items() if chosen.complete}


def claim_7(evidence: Evidence) -> list[Finding]:
    """On SST the relaxations are strong, and SPIGOT is a top performer.

    Rule: for Marginals, SparseMAP and SPIGOT, the shortfall in test accuracy from the best row, the baseline
    included, is within NEAR (`verdicts.within`). The best row is picked by mean validation accuracy.
    """
    return [_near_best(evidence, "sst", name) for name in (*RELAXED, "spigot")]


def claim_8(evidence: Evidence) -> list[Finding]:
    """On SST the number of inner steps matters little (SPIGOT, SPIGOT-CE, SPIGOT-EG at 1, 2 and 5 steps).

    Rule: for each of the three, the difference in test accuracy between 2 steps and 1, and between 5 and 1, lies within
    NEAR of zero, the whole interval; it does not hold where an interval lies wholly beyond.
    """
    found = []
    for name in STEPPED:
        accuracy = {k: row.values("test_accuracy") for k, row in evidence.steps(name).items()}
        for k in INNER_STEPS[1:]:
            statement = f"{METHODS[name].label}, {k} inner steps - 1, test accuracy, SST"
            change = minus(accuracy.get(k), accuracy.get(1))
            found.append(judge(statement, change, lambda i: between(i, -NEAR, NEAR), f"between -{NEAR:g} and {NEAR:g}", NEAR))
    return found


def claim_9(evidence: Evidence) -> list[Finding]:
    """On SNLI the argmax methods are below the relaxations, which are also the more stable on both text tasks.

    Rule: on SNLI, for each argmax row, the mean test accuracy of Marginals and SparseMAP exceeds its own. Stable: on
    each task the standard deviation of the validation accuracy over the second half of the epochs is larger in the
    mean of the argmax rows than in the mean of the two relaxations.
    """
    relaxed = _mean_of([evidence.row("snli", name) for name in RELAXED], lambda row: row.values("test_accuracy"))
    found = []
    for name in ARGMAX:
        accuracy = evidence.values("snli", name, "test_accuracy")
        found.append(exceeds(f"relaxations - {METHODS[name].label}, test accuracy, SNLI", minus(relaxed, accuracy)))
    for task in ("sst", "snli"):
        unstable, stable = (
            _mean_of([evidence.row(task, name) for name in names], _late_deviation) for names in (ARGMAX, RELAXED)
        )
        statement = f"deviation of the validation accuracy late in training, {task.upper()}"
        found.append(exceeds(f"argmax methods - relaxations, {statement}", minus(unstable, stable)))
    return found


def claim_10(evidence: Evidence) -> list[Finding]:
    """On SST most methods' trees are flat; SPIGOT-CE's are not (around 5), and it attaches the adjectives to "drama".

    Rule: of the latent rows other than SPIGOT-CE, the mean depth on the test set is below FLAT for more than half
    (not so, if it is above for more than half); SPIGOT-CE's is above FLAT, and within DEEP; and in the tree of the paper's
    third example, taut, intelligent and psychological attach to drama in every seed (not so, if in none).
    """
    others = [name for name in (*RELAXED, *ARGMAX) if name != "spigot-ce"]
    flat = [_below(METHODS[name].label, evidence.values("sst", name, "test_depth"), FLAT) for name in others]
    depth = evidence.values("sst", "spigot-ce", "test_depth")
    around = f"between {DEEP[0]:g} and {DEEP[1]:g}"
    return [
        _most(f"mean depth below {FLAT:g}, for most other methods, SST", flat),
        exceeds("SPIGOT-CE's trees are not flat, SST", depth, FLAT),
        judge("mean depth of SPIGOT-CE around 5, SST", depth, lambda found: between(found, *DEEP), around),
        _example(evidence.row("sst", "spigot-ce")),
    ]


CLAIMS: dict[int, Callable[[Evidence], list[Finding]]] = {7: claim_7, 8: claim_8, 9: claim_9, 10: claim_10}


def _near_best(evidence: Evidence, task: str, name: str) -> Finding:
    """Is a row's shortfall in test accuracy from the best row small?"""
    statement = f"best row - {METHODS[name].label}, test accuracy, {task.upper()}"
    best, row = evidence.best_row(task), evidence.row(task, name)
    if best is None or row is None:
        return missing(statement)
    statement += f" (best: {METHODS[best.config.estimator].label})"
    return near(statement, minus(best.values("test_accuracy"), row.values("test_accuracy")), NEAR)


def _below(statement: str, values: Values, threshold: float) -> Finding:
    return judge(statement, values, lambda i: opposite(above(i, threshold)), f"less than {threshold:g}", threshold)


def _mean_of(rows: Sequence[Chosen | None], values: Callable[[Chosen], list[float]]) -> Values:
    """The mean over several rows, for each seed; None if one is missing."""
    if None in rows:
        return None
    return [statistics.fmean(seed) for seed in zip(*(values(row) for row in rows if row), strict=True)]


def _late_deviation(chosen: Chosen) -> list[float]:
    """The standard deviation of the validation accuracy over the second half of the epochs, for each seed."""
    histories = [list(history.values()) for history in chosen.histories("accuracy")]
    return [statistics.stdev(history[len(history) // 2 :]) for history in histories]


def _most(statement: str, findings: list[Finding]) -> Finding:
    """Holds if more than half of the findings hold, fails if more than half fail."""
    verdicts = [finding.verdict for finding in findings]
    decided = [each for each in (Verdict.HOLDS, Verdict.FAILS) if 2 * verdicts.count(each) > len(verdicts)]
    found = [f"{each.statement} {show(each.interval)}" for each in findings if each.interval]
    evidence = (
        f"for {verdicts.count(Verdict.HOLDS)} of {len(verdicts)}: {', '.join(found)}" if found else "runs missing"
    )
    return Finding(statement, evidence, decided[0] if decided else Verdict.OPEN)


def _example(row: Chosen | None) -> Finding:
    statement = "SPIGOT-CE attaches taut, intelligent and psychological to drama"
    if row is None:
        return missing(statement)
    trees = [run.result["example_heads"] for run in row.done]
    right = [all(heads[word - 1] == DRAMA for word in ADJECTIVES) for heads in trees]
    verdict = Verdict.OPEN
    if len(right) > 1 and len(set(right)) == 1:
        verdict = Verdict.HOLDS if right[0] else Verdict.FAILS
    return Finding(statement, f"in {sum(right)} of {len(right)} seeds; heads {trees}", verdict)
