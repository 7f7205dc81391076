"""The paper's claims on text, each with the rule that decides it.

The rules were fixed before the runs were made. All compare the same seeds, pair by pair, with 95% intervals
(`statistics.interval`), on the test set unless said otherwise, each run at its epoch with the best validation accuracy.
On SST a row enters with the learning rate that the search chose (the same few for every row), on SNLI with the paper's
best setting; step sizes are the paper's, with the paper's scale of gamma. A claim holds if all its parts hold, does not
hold if one part does not, and is otherwise not decided; so is a part whose runs are not all done, or with one seed.
The margins NEAR, FLAT and DEEP are in `evidence.py`.
"""

from __future__ import annotations

from collections.abc import Callable

from pullback_study.statistics import interval
from pullback_study.text.evidence import (
    ARGMAX,
    DEEP,
    FLAT,
    RELAXED,
    Evidence,
    Values,
    below,
    compare,
    late_deviation,
    mean_of,
    missing,
    near_best,
    show,
    unchanged,
)
from pullback_study.text.methods import METHODS
from pullback_study.text.plans import INNER_STEPS, STEPPED
from pullback_study.verdicts import Finding, Verdict, above

ADJECTIVES, DRAMA = (2, 4, 5), 6  # words of "A taut , intelligent psychological drama .", counted from 1


def claim_7(evidence: Evidence) -> list[Finding]:
    """On SST the relaxations are strong, and SPIGOT is a top performer.

    Rule: for Marginals, SparseMAP and SPIGOT, the shortfall in test accuracy from the best row, the baseline
    included, is within NEAR (`verdicts.within`). The best row is picked by mean validation accuracy.
    """
    return [near_best(evidence, "sst", name) for name in (*RELAXED, "spigot")]


def claim_8(evidence: Evidence) -> list[Finding]:
    """On SST the number of inner steps matters little (SPIGOT, SPIGOT-CE, SPIGOT-EG at 1, 2 and 5 steps).

    Rule: for each of the three, the difference in test accuracy between 2 steps and 1, and between 5 and 1, lies within
    NEAR of zero, the whole interval; it does not hold where an interval lies wholly beyond.
    """
    found = []
    for name in STEPPED:
        rows = evidence.steps(name)
        accuracy = {k: row.values("test_accuracy") for k, row in rows.items()}
        for k in INNER_STEPS[1:]:
            statement = f"{METHODS[name].row}, {k} inner steps - 1, test accuracy, SST"
            found.append(unchanged(statement, accuracy.get(k), accuracy.get(1)))
    return found


def claim_9(evidence: Evidence) -> list[Finding]:
    """On SNLI the argmax methods are below the relaxations, which are also the more stable on both text tasks.

    Rule: on SNLI, for each argmax row, the mean test accuracy of Marginals and SparseMAP exceeds its own. Stable: on
    each task the standard deviation of the validation accuracy over the second half of the epochs is larger in the
    mean of the argmax rows than in the mean of the two relaxations.
    """
    relaxed = mean_of([evidence.row("snli", name) for name in RELAXED], lambda row: row.values("test_accuracy"))
    found = [
        compare(
            f"relaxations - {METHODS[name].row}, test accuracy, SNLI",
            relaxed, evidence.values("snli", name, "test_accuracy"),
        )
        for name in ARGMAX
    ]  # fmt: skip
    for task in ("sst", "snli"):
        unstable, stable = (
            mean_of([evidence.row(task, name) for name in names], late_deviation) for names in (ARGMAX, RELAXED)
        )
        statement = (
            f"argmax methods - relaxations, deviation of the validation accuracy late in training, {task.upper()}"
        )
        found.append(compare(statement, unstable, stable))
    return found


def claim_10(evidence: Evidence) -> list[Finding]:
    """On SST most methods' trees are flat; SPIGOT-CE's are not (around 5), and it attaches the adjectives to "drama".

    Rule: of the latent rows other than SPIGOT-CE, the mean depth on the test set is below FLAT for more than half
    (not so, if it is above for more than half); SPIGOT-CE's is above FLAT, and within DEEP; and in the tree of the paper's
    third example, taut, intelligent and psychological attach to drama in every seed (not so, if in none).
    """
    others = [name for name in (*RELAXED, *ARGMAX) if name != "spigot-ce"]
    flat = [below(METHODS[name].row, evidence.values("sst", name, "test_depth"), FLAT) for name in others]
    depth = evidence.values("sst", "spigot-ce", "test_depth")
    return [_most(f"mean depth below {FLAT:g}, for most other methods, SST", flat), *_deep(depth), _example(evidence)]


def _most(statement: str, findings: list[Finding]) -> Finding:
    """Holds if more than half of the findings hold, fails if more than half fail."""
    verdicts = [finding.verdict for finding in findings]
    verdict = Verdict.OPEN
    for each in (Verdict.HOLDS, Verdict.FAILS):
        if 2 * verdicts.count(each) > len(verdicts):
            verdict = each
    found = [f"{each.statement} {show(each.interval)}" for each in findings if each.interval]
    evidence = (
        f"for {verdicts.count(Verdict.HOLDS)} of {len(verdicts)}: {', '.join(found)}" if found else "runs missing"
    )
    return Finding(statement, evidence, verdict)


def _deep(depth: Values) -> list[Finding]:
    above_flat, around = "SPIGOT-CE's trees are not flat, SST", "mean depth of SPIGOT-CE around 5, SST"
    if depth is None:
        return [missing(above_flat), missing(around)]
    found = interval(depth)
    inside = DEEP[0] < found.low and found.high < DEEP[1]
    beyond = found.low > DEEP[1] or found.high < DEEP[0]
    return [
        Finding(above_flat, f"{show(found)}; more than {FLAT:g}?", above(found, FLAT), found, FLAT),
        Finding(
            around,
            f"{show(found)}; between {DEEP[0]:g} and {DEEP[1]:g}?",
            Verdict.HOLDS if inside else Verdict.FAILS if beyond else Verdict.OPEN,
            found,
        ),
    ]


def _example(evidence: Evidence) -> Finding:
    statement = "SPIGOT-CE attaches taut, intelligent and psychological to drama"
    row = evidence.row("sst", "spigot-ce")
    if row is None:
        return missing(statement)
    trees = [run.result["example_heads"] for run in row.runs]
    right = [all(heads[word - 1] == DRAMA for word in ADJECTIVES) for heads in trees]
    verdict = Verdict.OPEN
    if len(right) > 1 and len(set(right)) == 1:
        verdict = Verdict.HOLDS if right[0] else Verdict.FAILS
    return Finding(statement, f"in {sum(right)} of {len(right)} seeds; heads {trees}", verdict)


CLAIMS: dict[int, Callable[[Evidence], list[Finding]]] = {7: claim_7, 8: claim_8, 9: claim_9, 10: claim_10}
