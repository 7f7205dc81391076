"""Verdicts on claims: three-valued, with 'not decided' as the default."""

from __future__ import annotations

import enum
import inspect
import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pullback_study.results.cells import Interval, comparable, interval
from pullback_study.results.choice import Chosen
from pullback_study.results.tables import Table

Values = Sequence[float]
"""A number for each seed; empty while runs are missing."""


class Verdict(enum.Enum):
    HOLDS = "holds"
    FAILS = "does not hold"
    OPEN = "not decided"


@dataclass(frozen=True)
class Finding:
    """One part of a claim: what was compared, what was found (in words, and as an interval), and what follows."""

    statement: str
    evidence: str = "runs missing"
    verdict: Verdict = Verdict.OPEN
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

    The first line of a rule's docstring is the claim, the rest the rule in words.
    """
    found = []
    for number, rule in rules.items():
        claim, _, words = (inspect.getdoc(rule) or "").partition("\n")
        try:
            findings = rule(evidence)
        except (ValueError, KeyError, TypeError, IndexError) as error:
            findings = [Finding("the runs", f"do not hold what the rule looks at: {error!r}")]
        found.append(Claim(number, claim, " ".join(words.split()), findings))
    return found


def verdict(findings: Sequence[Finding]) -> Verdict:
    """A conjunction: fails if a part fails, holds if all parts hold, otherwise not decided."""
    verdicts = {finding.verdict for finding in findings}
    return _either(verdicts == {Verdict.HOLDS}, Verdict.FAILS in verdicts)


def _either(holds: bool, fails: bool) -> Verdict:
    return Verdict.HOLDS if holds else Verdict.FAILS if fails else Verdict.OPEN


def exceeds(statement: str, values: Values, threshold: float = 0.0) -> Finding:
    """Is the mean above the threshold: the whole 95% interval above it (holds), or below it (fails)?"""
    return _judge(statement, values, f"more than {threshold:g}", lambda x: (x.low > threshold, x.high < threshold))


def below(statement: str, values: Values, threshold: float) -> Finding:
    """Is the mean below the threshold? The opposite of `exceeds`."""
    return _judge(statement, values, f"less than {threshold:g}", lambda x: (x.high < threshold, x.low > threshold))


def inside(statement: str, values: Values, low: float, high: float) -> Finding:
    """Does the mean lie between two numbers: the whole interval (holds), or is it wholly beyond one of them (fails)?"""
    question = f"between {low:g} and {high:g}"
    return _judge(statement, values, question, lambda x: (low < x.low and x.high < high, x.low > high or x.high < low))


def near(statement: str, shortfall: Values, margin: float) -> Finding:
    """Is a shortfall within the margin?

    Holds if the whole interval lies below the margin. Fails if the shortfall is established (the interval lies above zero)
    and its mean exceeds the margin. Otherwise not decided: to see no difference in a few seeds is not to have shown that
    there is none.
    """
    return _judge(statement, shortfall, f"within {margin:g}", lambda x: (x.high < margin, x.low > 0 and x.mean > margin))


def _judge(statement: str, values: Values, question: str, rule: Callable[[Interval], tuple[bool, bool]]) -> Finding:
    """What a rule, whether it holds and whether it fails, says about the 95% interval of the mean over the seeds."""
    if not values:
        return Finding(statement)
    found = interval(values)
    return Finding(statement, f"{_show(found)}; {question}?", _either(*rule(found)), found)


def minus(first: Values, second: Values) -> Values:
    """The difference, seed by seed."""
    return [a - b for a, b in zip(first, second, strict=True)] if first and second else []


def best_of(rows: Sequence[Chosen], measure: str) -> Chosen | None:
    """The row with the highest mean of a measure, the first of equals, none that diverged; None while one is missing."""
    return max(rows, key=lambda row: comparable(statistics.fmean(row.values(measure)))) if rows and all(rows) else None


def near_best(row: Chosen, best: Chosen | None, measure: str, words: str, margin: float) -> Finding:
    """Is a row's shortfall from the best one within the margin?"""
    statement = f"best row - {row.method.label}, {words}"
    if best is None or not row:
        return Finding(statement)
    return near(f"{statement} (best: {best.method.label})", minus(best.values(measure), row.values(measure)), margin)


def most(statement: str, findings: Sequence[Finding]) -> Finding:
    """Holds if more than half of the findings hold, fails if more than half fail."""
    verdicts = [finding.verdict for finding in findings]
    holds, fails = verdicts.count(Verdict.HOLDS), verdicts.count(Verdict.FAILS)
    found = ", ".join(f"{each.statement} {_show(each.interval)}" for each in findings if each.interval)
    evidence = f"for {holds} of {len(verdicts)}: {found}" if found else "runs missing"
    return Finding(statement, evidence, _either(2 * holds > len(verdicts), 2 * fails > len(verdicts)))


def _show(found: Interval) -> str:
    return f"{found.mean:.2f}" + ("" if math.isinf(found.low) else f" [{found.low:.2f}, {found.high:.2f}]")
