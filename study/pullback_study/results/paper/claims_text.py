"""The paper's claims on text, each with the rule that decides it.

The rules were fixed before the runs were made. All compare the same seeds, pair by pair, with 95% intervals
(`cells.interval`), on the test set unless said otherwise, each run at its epoch with the best validation accuracy.
A row enters with the learning rate that the search chose, the same few for every row; step sizes are the paper's, with the
paper's scale of gamma. A comparison uses the seeds that all its rows have, and needs LEAST of them, or all of a table with
fewer. A claim holds if all its parts hold, does not hold if one part does not, and is otherwise not decided; so is a part
without enough runs, or with one seed.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from pullback_study.results.choice import Chosen, Runs
from pullback_study.results.paper import text
from pullback_study.results.paper.text import INNER_STEPS, LEAST, METHODS, ROWS, STEPPED

from pullback_study.results.paper.verdicts import (  # isort: skip
    Finding, Values, Verdict, below, best_of, decide, exceeds, inside, minus, most, near_best,
)  # fmt: skip
from pullback_study.results.registry import Section

NEAR = 1.5
"""A difference of accuracies, in points, that counts as small."""
FLAT = 3.0
"""A mean depth below which trees count as flat: one word at the root and all others below it make 2."""
DEEP = (4.0, 6.0)
"""What counts as a mean depth around 5."""
RELAXED = tuple(name for name in ROWS if METHODS[name].kind == "Relaxed")
ARGMAX = tuple(name for name in ROWS if METHODS[name].kind == "Argmax")
ADJECTIVES, DRAMA = (2, 4, 5), 6  # words of "A taut , intelligent psychological drama .", counted from 1


@dataclass(frozen=True)
class Evidence:
    """The runs that the verdicts rest on."""

    runs: Runs
    scopes: dict[str, text.Scope] = field(default_factory=dict)  # by default on the data that most of the runs were trained on

    def row(self, task: str, estimator: str, inner_steps: int | None = None) -> Chosen:
        """A row with the runs that are done."""
        scope = self.scopes[task] if task in self.scopes else text.on_data_of(self.runs, text.FULL[task])
        row = text.table_plan(estimator, scope, search=True).choose(self.runs)
        return row.replace(self.runs, inner_steps=inner_steps) if inner_steps else row

    def rows(self, task: str, *estimators: str) -> list[Chosen]:
        """Several rows on the same seeds."""
        return _common([self.row(task, name) for name in estimators])


def claim_7(evidence: Evidence) -> list[Finding]:
    """On SST the relaxations are strong, and SPIGOT is a top performer.

    Rule: for Marginals, SparseMAP and SPIGOT, the shortfall in test accuracy from the best row, the baseline
    included, is within 1.5 points (`verdicts.within`). The best row is picked by mean validation accuracy.
    """
    rows = evidence.rows("sst", *ROWS)
    best = best_of(rows, "validation_accuracy")
    of = [row for row in rows if row.estimator in (*RELAXED, "spigot")]
    return [near_best(row, best, "test_accuracy", "test accuracy, SST", NEAR) for row in of]


def claim_8(evidence: Evidence) -> list[Finding]:
    """On SST the number of inner steps matters little (SPIGOT, SPIGOT-CE, SPIGOT-EG at 1, 2 and 5 steps).

    Rule: for each of the three, the difference in test accuracy between 2 steps and 1, and between 5 and 1, lies within
    1.5 points of zero, the whole interval; it does not hold where an interval lies wholly beyond.
    """
    found = []
    for name in STEPPED:
        for k in INNER_STEPS[1:]:
            statement = f"{METHODS[name].label}, {k} inner steps - 1, test accuracy, SST"
            one, several = _common([evidence.row("sst", name, inner_steps) for inner_steps in (1, k)])
            change = minus(several.values("test_accuracy"), one.values("test_accuracy"))
            found.append(inside(statement, change, -NEAR, NEAR))
    return found


def claim_9(evidence: Evidence) -> list[Finding]:
    """On SNLI the argmax methods are below the relaxations, which are also the more stable on both text tasks.

    Rule: on SNLI, for each argmax row, the mean test accuracy of Marginals and SparseMAP exceeds its own. Stable: on
    each task the standard deviation of the validation accuracy over the second half of the epochs is larger in the
    mean of the argmax rows than in the mean of the two relaxations.
    """
    rows = {task: {row.estimator: row for row in evidence.rows(task, *RELAXED, *ARGMAX)} for task in ("sst", "snli")}
    relaxed = _mean_of([rows["snli"][name] for name in RELAXED], lambda row: row.values("test_accuracy"))
    found = []
    for name in ARGMAX:
        shortfall = minus(relaxed, rows["snli"][name].values("test_accuracy"))
        found.append(exceeds(f"relaxations - {METHODS[name].label}, test accuracy, SNLI", shortfall))
    for task in ("sst", "snli"):
        unstable, stable = (_mean_of([rows[task][name] for name in names], _late_deviation) for names in (ARGMAX, RELAXED))
        statement = f"deviation of the validation accuracy late in training, {task.upper()}"
        found.append(exceeds(f"argmax methods - relaxations, {statement}", minus(unstable, stable)))
    return found


def claim_10(evidence: Evidence) -> list[Finding]:
    """On SST most methods' trees are flat; SPIGOT-CE's are not (around 5), and it attaches the adjectives to "drama".

    Rule: of the latent rows other than SPIGOT-CE, the mean depth on the test set is below 3 (flat) for more than half
    (not so, if it is above for more than half); SPIGOT-CE's is above 3, and between 4 and 6; and in the tree of the paper's
    third example, taut, intelligent and psychological attach to drama in every seed (not so, if in none).
    """
    others = [name for name in (*RELAXED, *ARGMAX) if name != "spigot-ce"]
    rows = [evidence.rows("sst", name)[0] for name in others]
    flat = [below(row.method.label, row.values("test_depth"), FLAT) for row in rows]
    (deep,) = evidence.rows("sst", "spigot-ce")
    depth = deep.values("test_depth")
    return [
        most(f"mean depth below {FLAT:g}, for most other methods, SST", flat),
        exceeds("SPIGOT-CE's trees are not flat, SST", depth, FLAT),
        inside("mean depth of SPIGOT-CE around 5, SST", depth, *DEEP),
        _example(deep),
    ]


CLAIMS = {7: claim_7, 8: claim_8, 9: claim_9, 10: claim_10}


def _common(rows: Sequence[Chosen]) -> list[Chosen]:
    """The rows on the seeds that all of them have; without runs if these are too few."""
    seeds = range(len(rows[0].runs)) if all(rows) else ()
    there = [i for i in seeds if all(row.runs[i] for row in rows)]
    if not there or len(there) < min(LEAST, len(seeds)):
        there = []
    return [replace(row, configs=tuple(row.configs[i] for i in there), runs=tuple(row.runs[i] for i in there)) for row in rows]


def _mean_of(rows: Sequence[Chosen], values: Callable[[Chosen], list[float]]) -> Values:
    """The mean over several rows, for each seed; none if a row is missing."""
    return [statistics.fmean(seed) for seed in zip(*map(values, rows), strict=True)] if all(rows) else []


def _late_deviation(chosen: Chosen) -> list[float]:
    """The standard deviation of the validation accuracy over the second half of the epochs, for each seed."""
    histories = [list(history.values()) for history in chosen.histories("accuracy")]
    return [statistics.stdev(history[len(history) // 2 :]) for history in histories]


def _example(row: Chosen) -> Finding:
    statement = "SPIGOT-CE attaches taut, intelligent and psychological to drama"
    if not row:
        return Finding(statement)
    trees = [run.result["example_heads"] for run in row.done]
    right = [all(heads[word - 1] == DRAMA for word in ADJECTIVES) for heads in trees]
    verdict = Verdict.OPEN
    if len(right) > 1 and len(set(right)) == 1:
        verdict = Verdict.HOLDS if right[0] else Verdict.FAILS
    seen = ", ".join(map(str, trees[:3]))
    return Finding(statement, f"in {sum(right)} of {len(right)} seeds; heads of the first seeds: {seen}", verdict)


SECTION = Section(
    "Latent trees on text",
    "Table 2 of the paper: accuracy in percent on SST and SNLI, beside the paper's numbers.",
    text.groups,
    lambda runs: decide(CLAIMS, Evidence(runs)),
)
