"""The paper's claims on text, each with the rule that decides it.

The rules were committed before the runs they rest on; the page names the exceptions. All compare the same seeds, pair by
pair, with 95% intervals (`cells.interval`), on the test set unless said otherwise, each run at its epoch with the best
validation accuracy. A row enters with the learning rate that the search chose, the same few for every row; step sizes are the
paper's, with the paper's scale of gamma. Each rule is also applied to the numbers that the paper published. A comparison uses
the seeds that all its rows have, and needs `verdicts.LEAST` of them, or all of a table with fewer; on SNLI it needs 5 seeds,
and one learning rate for all rows or a search as long as training. A claim holds if all its parts hold, does not hold if one
part does not, and is otherwise not decided.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from pullback_study.results.choice import Chosen, Protocol, Runs
from pullback_study.results.paper import reported, text
from pullback_study.results.paper.text import INNER_STEPS, METHODS, ROWS, STEPPED

from pullback_study.results.paper.verdicts import (  # isort: skip
    Claim, Evidence, Finding, PaperRow, Published, Values, Verdict, below, best_of, decide, exceeds, inside, mean_of, minus,
    most, near, paired,
)  # fmt: skip
from pullback_study.results.registry import Section

NEAR = 1.5
"""A difference of accuracies, in points, that counts as small."""
OUTPERFORMS = 0.5
"""A difference of accuracies from which a row outperforms another."""
FLAT = 3.0
"""A mean depth below which trees count as flat: one word at the root and all others below it make 2."""
DEEP = (4.0, 6.0)
"""What counts as a mean depth around 5."""
APART = 1.5
"""A factor from which two published times differ."""
RELAXED = tuple(name for name in ROWS if METHODS[name].kind == "Relaxed")
ARGMAX = tuple(name for name in ROWS if METHODS[name].kind == "Argmax")
LATENT = tuple(name for name in ROWS if METHODS[name].latent)
ADJECTIVES, DRAMA = (2, 4, 5), 6  # words of "A taut , intelligent psychological drama .", counted from 1
_SNLI_SEEDS = 5
_RUNS = 3  # behind each of the paper's numbers, which are means with a standard deviation


@dataclass(frozen=True)
class Text(Evidence):
    """Rows on SST or SNLI."""

    runs: Runs
    protocols: dict[str, Protocol] = field(default_factory=dict)  # by default on the data that most of the runs have

    def row(self, place: str, estimator: str, inner_steps: int | None = None) -> Any:
        row = text.table_plan(estimator, self.protocol(place), search=True).choose(self.runs)
        return row.replace(self.runs, inner_steps=inner_steps) if inner_steps else row

    def protocol(self, task: str) -> Protocol:
        """On SST that of the wider search, once it is done for all rows."""
        if task in self.protocols:
            return self.protocols[task]
        found = text.on_data_of(self.runs, text.FULL[task])
        wide = text.wide_on(self.runs)
        return wide if task == "sst" and all(text.choose(wide, self.runs, search=True)) else found

    def rows(self, place: str, *estimators: str) -> list[Any]:
        found = [self.row(place, name) for name in estimators]
        rates = {row.config.learning_rate for row in found if isinstance(row, Chosen) and row}
        unfair = place == "snli" and len(rates) > 1 and self.protocol(place).searched
        return paired(*found, least=10**9 if unfair else _SNLI_SEEDS if place == "snli" else 0)


class Paper(Text):
    """The paper's table in the place of runs: no seeds, no curves and no trees."""

    def row(self, place: str, estimator: str, inner_steps: int | None = None) -> Any:
        label, found = METHODS[estimator].label, {}
        for split in ("validation", "test") if inner_steps in (None, 1) else ():
            if cell := reported("structured", label, text.TASKS[place].title, split):
                found[f"{split}_accuracy"] = Published(cell.value, cell.spread / _RUNS**0.5, _RUNS)
        return PaperRow(METHODS[estimator], found)


def claim_7(evidence: Text) -> list[Finding]:
    """On SST the relaxations are strong, and SPIGOT is a top performer.

    Rule: strong, the mean test accuracy of Marginals and SparseMAP exceeds that of STE-S, STE-I, SPIGOT-CE and SPIGOT-EG; top
    performer, SPIGOT's exceeds the baseline's, and the mean of the other latent rows. (The first rule, a shortfall from the
    best row within 1.5 points, could not fail: 1.5 points is wider than the spread of all nine rows.)
    """
    rows = dict(zip(ROWS, evidence.rows("sst", *ROWS), strict=True))
    others = [rows[name] for name in LATENT if name != "spigot"]
    plain = [rows[name] for name in ARGMAX if name not in ("spigot", "perturb-and-map")]
    strong = minus(_accuracy([rows[name] for name in RELAXED]), _accuracy(plain))
    top = {"baseline": _accuracy([rows["baseline"]]), "mean of the other latent rows": _accuracy(others)}
    mine = _accuracy([rows["spigot"]])
    return [
        exceeds("Marginals and SparseMAP - argmax methods other than SPIGOT, test accuracy, SST", strong),
        *(exceeds(f"SPIGOT - {name}, test accuracy, SST", minus(mine, values)) for name, values in top.items()),
    ]


def claim_8(evidence: Text) -> list[Finding]:
    """On SST the number of inner steps matters little (SPIGOT, SPIGOT-CE, SPIGOT-EG at 1, 2 and 5 steps).

    Rule: for each of the three, the difference in test accuracy between 2 steps and 1, and between 5 and 1, lies within
    1.5 points of zero, the whole interval; it does not hold where an interval lies wholly beyond.
    """
    found = []
    for name in STEPPED:
        for k in INNER_STEPS[1:]:
            statement = f"{METHODS[name].label}, {k} inner steps - 1, test accuracy, SST"
            one, several = paired(*(evidence.row("sst", name, inner_steps) for inner_steps in (1, k)))
            change = minus(several.values("test_accuracy"), one.values("test_accuracy"))
            found.append(inside(statement, change, -NEAR, NEAR))
    return found


def claim_9(evidence: Text) -> list[Finding]:
    """On SNLI the argmax methods are below the relaxations, which are also the more stable on both text tasks.

    Rule: on SNLI, for each argmax row, the mean test accuracy of Marginals and SparseMAP exceeds its own. Stable: on
    each task the standard deviation of the validation accuracy over the second half of the epochs is larger in the
    mean of the argmax rows than in the mean of the two relaxations.
    """
    names = (*RELAXED, *ARGMAX)
    rows = {task: dict(zip(names, evidence.rows(task, *names), strict=True)) for task in ("sst", "snli")}
    relaxed = _accuracy([rows["snli"][name] for name in RELAXED])
    found = []
    for name in ARGMAX:
        shortfall = minus(relaxed, rows["snli"][name].values("test_accuracy"))
        found.append(exceeds(f"relaxations - {METHODS[name].label}, test accuracy, SNLI", shortfall))
    for task in ("sst", "snli"):
        unstable, stable = (mean_of([rows[task][name] for name in names], _late_deviation) for names in (ARGMAX, RELAXED))
        statement = f"deviation of the validation accuracy late in training, {task.upper()}"
        found.append(exceeds(f"argmax methods - relaxations, {statement}", minus(unstable, stable)))
    return found


def claim_10(evidence: Text) -> list[Finding]:
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


def claim_14(evidence: Text) -> list[Finding]:
    """Discrete methods do not outperform the relaxed alternatives, on text.

    Rule: on each task no argmax row exceeds the test accuracy of the better relaxation (Marginals or SparseMAP, by validation
    accuracy) by more than 0.5 points (`verdicts.near`: not so where the interval lies above 0 and the mean above 0.5).
    """
    found = []
    for task in text.TASKS:
        for name in ARGMAX:
            row, *relaxed = evidence.rows(task, name, *RELAXED)
            best = best_of(relaxed, "validation_accuracy")
            gap = minus(_accuracy([row]), _accuracy([best])) if best else []
            found.append(near(f"{METHODS[name].label} - better relaxation, test accuracy, {task.upper()}", gap, OUTPERFORMS))
    return found


def claim_15(evidence: Text) -> list[Finding]:
    """Relaxations (SparseMAP and Marginals) do better than straight-through variants on text.

    Rule: on each task their mean test accuracy exceeds that of STE-S, STE-I, SPIGOT, SPIGOT-CE and SPIGOT-EG. (That they are
    the more stable is in claim 9.)
    """
    found = []
    for task in text.TASKS:
        names = [name for name in ARGMAX if name != "perturb-and-map"]
        rows = dict(zip((*RELAXED, *names), evidence.rows(task, *RELAXED, *names), strict=True))
        gap = minus(_accuracy([rows[name] for name in RELAXED]), _accuracy([rows[name] for name in names]))
        found.append(exceeds(f"relaxations - straight-through variants, test accuracy, {task.upper()}", gap))
    return found


def claim_16(evidence: Text) -> list[Finding]:
    """More inner steps do not help on SST because the decoder is a moving target.

    Rule: with the decoder of a trained model frozen and its arc scorer trained anew, 5 inner steps have a higher test accuracy
    than 1, for SPIGOT, SPIGOT-CE and SPIGOT-EG. The model is trained with 1 inner step for the epochs of the table, and the
    scorer for as many.
    """
    found = []
    for name in STEPPED:
        row = evidence.row("sst", name)
        rows = [] if isinstance(row, PaperRow) else [text.frozen(row, evidence.runs, k) for k in text.FROZEN_STEPS]
        one, several = (each.values("test_accuracy") for each in paired(*rows)) if rows else ((), ())
        gap = minus(several, one)
        found.append(exceeds(f"{METHODS[name].label}, frozen decoder, 5 inner steps - 1, test accuracy, SST", gap))
    return found


def claim_17(evidence: Text) -> list[Finding]:
    """The run times of the appendix: which methods take longer for an epoch.

    Rule: of the pairs of rows whose published times differ by a factor of 1.5 or more, ours have the same order in more than
    three quarters (holds), or in less than half (does not hold). The times are those of runs of one epoch on 2000 examples,
    one after the other with nothing beside them (`table2 --times`); other runs shared their device, and decide nothing.
    """
    found = []
    for task in text.TASKS:
        rows = [] if isinstance(evidence, Paper) else text.timed(task, evidence.protocol(task), evidence.runs)
        times: dict[str, tuple[float, float]] = {}
        for row in (row for row in rows if row.complete):
            if paper := reported("structured", row.method.label, text.TASKS[task].title, "minutes"):
                seconds = [each["seconds"] for run in row.done for each in run.curve() if "seconds" in each]
                times[row.estimator] = paper.value, statistics.median(seconds)
        pairs = [(a, b) for a in times.values() for b in times.values() if a[0] >= APART * b[0]]
        same = sum(a[1] > b[1] for a, b in pairs)
        complete = pairs and set(LATENT) <= times.keys()
        verdict = Verdict.HOLDS if 4 * same > 3 * len(pairs) else Verdict.FAILS if 2 * same < len(pairs) else Verdict.OPEN
        words = f"{same} of {len(pairs)}" if complete else "runs missing"
        statement = f"pairs of rows in the paper's order by time, {task.upper()}"
        found.append(Finding(statement, words, verdict if complete else Verdict.OPEN))
    return found


CLAIMS = {
    7: claim_7, 8: claim_8, 9: claim_9, 10: claim_10, 14: claim_14, 15: claim_15, 16: claim_16, 17: claim_17,
}  # fmt: skip


def claims(runs: Runs) -> list[Claim]:
    return decide(CLAIMS, Text(runs), Paper(runs))


def _accuracy(rows: Sequence[Any]) -> Values:
    """The mean test accuracy over several rows, for each seed."""
    return mean_of(rows, lambda row: row.values("test_accuracy"))


def _late_deviation(chosen: Any) -> Values:
    """The standard deviation of the validation accuracy over the second half of the epochs, for each seed."""
    histories = [] if isinstance(chosen, PaperRow) else [list(each.values()) for each in chosen.histories("accuracy")]
    return [statistics.stdev(history[len(history) // 2 :]) for history in histories]


def _example(row: Any) -> Finding:
    statement = "SPIGOT-CE attaches taut, intelligent and psychological to drama"
    if isinstance(row, PaperRow) or not row.done:
        return Finding(statement)
    trees = [run.result["example_heads"] for run in row.done]
    right = [all(heads[word - 1] == DRAMA for word in ADJECTIVES) for heads in trees]
    verdict = Verdict.OPEN
    if len(right) > 1 and len(set(right)) == 1:
        verdict = Verdict.HOLDS if right[0] else Verdict.FAILS
    seen = ", ".join(map(str, trees[:3]))
    return Finding(statement, f"in {sum(right)} of {len(right)} seeds; heads of the first seeds: {seen}", verdict)


SECTION = Section(
    "Table 2 of the paper: accuracy in percent on SST and SNLI, beside the paper's numbers.",
    text.groups,
    claims,
    tuple(text.TASKS),
)


def wide_claims(runs: Runs) -> list[Claim]:
    """Those about accuracies on SST, once the wider search is done for all rows."""
    done = all(text.choose(text.wide_on(runs), runs, search=True))
    return [claim for claim in claims(runs) if claim.number in (7, 14, 15)] if done else []


WIDE = Section(
    "SST with a search of learning rates from 0.0001 to 0.005 and the paper's step sizes, three seeds for each setting.",
    text.wide_groups,
    wide_claims,
    ("sst",),
    title="SST, a wider search",
)
