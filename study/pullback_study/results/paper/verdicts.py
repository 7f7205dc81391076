"""Verdicts on claims: three-valued, with 'not decided' as the default."""

from __future__ import annotations

import enum
import inspect
import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pullback_study.results.choice import Chosen
from pullback_study.results.statistics import Interval, interval
from pullback_study.results.tables import Table

Values = Sequence[float]
"""A number for each seed; empty while runs are missing."""


class Verdict(enum.Enum):
    HOLDS = "holds"
    FAILS = "does not hold"
    OPEN = "not decided"


_OPPOSITE = {Verdict.HOLDS: Verdict.FAILS, Verdict.FAILS: Verdict.HOLDS, Verdict.OPEN: Verdict.OPEN}


@dataclass(frozen=True)
class Finding:
    """One part of a claim: what was compared, what was found (in words, and as an interval), and what follows."""

    statement: str
    evidence: str
    verdict: Verdict
    interval: Interval | None = None


@dataclass(frozen=True)
class Claim:
    """A claim in words, the rule that was committed before the runs were made, and what it found."""

    number: int
    claim: str
    rule: str
    findings: Sequence[Finding]

    @property
    def verdict(self) -> Verdict:
        return verdict(self.findings)

    def table(self) -> Table:
        rows = [(each.statement, each.evidence, each.verdict.value) for each in self.findings]
        title = f"Claim {self.number}: {self.verdict.value}. {self.claim}"
        return Table.of_words(title, ["Part", "Found", "Verdict"], rows)


def decide(rules: Mapping[int, Callable[[Any], Sequence[Finding]]], evidence: Any) -> list[Claim]:
    """The claims with their verdicts; not decided where the runs do not hold what a rule looks at.

    Args:
        rules: by number, the rule that decides it; the first line of its docstring is the claim, the rest the rule.
        evidence: what the rules look at.
    """
    found = []
    for number, rule in rules.items():
        claim, _, words = (inspect.getdoc(rule) or "").partition("\n")
        try:
            findings = rule(evidence)
        except (ValueError, KeyError, TypeError, IndexError) as error:
            findings = [Finding("the runs", f"do not hold what the rule looks at: {error!r}", Verdict.OPEN)]
        found.append(Claim(number, claim, " ".join(words.split()), findings))
    return found


def verdict(findings: Sequence[Finding]) -> Verdict:
    """A conjunction: fails if a part fails, holds if all parts hold, otherwise not decided."""
    verdicts = {finding.verdict for finding in findings}
    if Verdict.FAILS in verdicts:
        return Verdict.FAILS
    return Verdict.HOLDS if verdicts == {Verdict.HOLDS} else Verdict.OPEN


def above(found: Interval, threshold: float) -> Verdict:
    """Holds if the whole interval lies above the threshold, fails if it lies below, otherwise not decided.

    >>> above(Interval(5.0, 4.0, 6.0), 3.0)
    <Verdict.HOLDS: 'holds'>
    """
    if found.low > threshold:
        return Verdict.HOLDS
    return Verdict.FAILS if found.high < threshold else Verdict.OPEN


def within(shortfall: Interval, margin: float) -> Verdict:
    """Is a shortfall negligible?

    Holds if the whole interval lies below the margin. Fails if the shortfall is established (the interval
    lies above zero) and its mean exceeds the margin. Otherwise not decided: to see no difference in a few seeds is not
    to have shown that there is none.

    >>> within(Interval(0.5, -1.0, 2.0), margin=3.0), within(Interval(8.0, 2.0, 14.0), margin=3.0)
    (<Verdict.HOLDS: 'holds'>, <Verdict.FAILS: 'does not hold'>)
    >>> within(Interval(8.0, -2.0, 18.0), margin=3.0)
    <Verdict.OPEN: 'not decided'>
    """
    if shortfall.high < margin:
        return Verdict.HOLDS
    return Verdict.FAILS if shortfall.low > 0 and shortfall.mean > margin else Verdict.OPEN


def between(found: Interval, low: float, high: float) -> Verdict:
    """Holds if the whole interval lies between the two, fails if it lies beyond one of them, otherwise not decided."""
    if low < found.low and found.high < high:
        return Verdict.HOLDS
    return Verdict.FAILS if found.low > high or found.high < low else Verdict.OPEN


def minus(first: Values, second: Values) -> Values:
    """The difference, seed by seed."""
    return [a - b for a, b in zip(first, second, strict=True)] if first and second else []


def best_of(rows: Sequence[Chosen], measure: str) -> Chosen | None:
    """The row with the highest mean of a measure, the first of equals; None while one of them is missing."""
    return max(rows, key=lambda row: statistics.fmean(row.values(measure))) if all(rows) else None


def judge(statement: str, values: Values, rule: Callable[[Interval], Verdict], question: str) -> Finding:
    """What a rule says about the 95% interval of the mean over the seeds."""
    if not values:
        return missing(statement)
    found = interval(values)
    return Finding(statement, f"{show(found)}; {question}?", rule(found), found)


def exceeds(statement: str, values: Values, threshold: float = 0.0) -> Finding:
    """Is the mean above the threshold?"""
    return judge(statement, values, lambda found: above(found, threshold), f"more than {threshold:g}")


def below(statement: str, values: Values, threshold: float) -> Finding:
    """Is the mean below the threshold?"""
    return judge(statement, values, lambda found: _OPPOSITE[above(found, threshold)], f"less than {threshold:g}")


def inside(statement: str, values: Values, low: float, high: float) -> Finding:
    """Does the mean lie between two numbers?"""
    return judge(statement, values, lambda found: between(found, low, high), f"between {low:g} and {high:g}")


def near(statement: str, shortfall: Values, margin: float) -> Finding:
    """Is a shortfall within the margin?"""
    return judge(statement, shortfall, lambda found: within(found, margin), f"within {margin:g}")


def near_best(row: Chosen, best: Chosen | None, measure: str, words: str, margin: float) -> Finding:
    """Is a row's shortfall from the best one within the margin?"""
    statement = f"best row - {row.method.label}, {words}"
    if best is None or not row:
        return missing(statement)
    statement += f" (best: {best.method.label})"
    return near(statement, minus(best.values(measure), row.values(measure)), margin)


def most(statement: str, findings: Sequence[Finding]) -> Finding:
    """Holds if more than half of the findings hold, fails if more than half fail."""
    verdicts = [finding.verdict for finding in findings]
    decided = [each for each in (Verdict.HOLDS, Verdict.FAILS) if 2 * verdicts.count(each) > len(verdicts)]
    found = ", ".join(f"{each.statement} {show(each.interval)}" for each in findings if each.interval)
    evidence = f"for {verdicts.count(Verdict.HOLDS)} of {len(verdicts)}: {found}" if found else "runs missing"
    return Finding(statement, evidence, decided[0] if decided else Verdict.OPEN)


def missing(statement: str) -> Finding:
    return Finding(statement, "runs missing", Verdict.OPEN)


def show(found: Interval) -> str:
    spread = "" if math.isinf(found.low) else f" [{found.low:.2f}, {found.high:.2f}]"
    return f"{found.mean:.2f}{spread}"
