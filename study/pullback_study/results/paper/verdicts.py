"""Verdicts on claims: three-valued, with 'not decided' as the default."""

from __future__ import annotations

import abc
import enum
import inspect
import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pullback_study.results.cells import Interval, comparable, interval, student
from pullback_study.results.tables import Table

LEAST = 8
"""How many seeds a comparison needs, or all of a table with fewer."""


@dataclass(frozen=True)
class Published:
    """A number of the paper, estimated from a few runs that were not published one by one."""

    value: float
    error: float  # its standard error
    count: int  # of runs

    @property
    def interval(self) -> Interval:
        """The 95% interval of a mean of as many runs with this standard error; differences count as unpaired."""
        half = student(self.count - 1) * self.error
        return Interval(self.value, self.value - half, self.value + half)


Values = Sequence[float] | Published
"""A number for each seed, empty while runs are missing; or one that the paper published."""


@dataclass(frozen=True)
class PaperRow:
    """A row of the paper's tables in the place of runs: its measures by the names that results have."""

    method: Any
    measures: Mapping[str, Published]

    def values(self, measure: str) -> Values:
        return self.measures.get(measure, ())


class Verdict(enum.Enum):
    HOLDS = "holds"
    FAILS = "does not hold"
    OPEN = "not decided"


@dataclass(frozen=True)
class Finding:
    """One part of a claim: what was compared, what was found (in words, and as an interval), and what follows."""

    statement: str
    evidence: str = "not enough comparable runs"
    verdict: Verdict = Verdict.OPEN
    interval: Interval | None = None


@dataclass(frozen=True)
class Claim:
    """A claim in words, the rule that was committed before the runs were made, and what it found."""

    number: int
    claim: str
    rule: str
    findings: Sequence[Finding]
    paper: Sequence[Finding] = ()  # the same rule applied to the numbers that the paper published
    where: str = ""  # the settings of the runs

    @property
    def verdict(self) -> Verdict:
        return verdict(self.findings)

    def table(self) -> Table:
        """A line for each part, with what the same rule finds in the paper's own table, for claims of the paper."""
        found = [(each.interval, each.verdict.value) for each in self.paper]
        own = [[f"{mean.show()}: {word}" if mean else "not published"] for mean, word in found]
        lines = zip(self.findings, own or [[]] * len(self.findings), strict=True)
        rows = [(each.statement, each.evidence, each.verdict.value, *paper) for each, paper in lines]
        title = f"Claim {self.number}{f', {self.where}' * bool(self.where)}: {self.verdict.value}. {self.claim}"
        columns = ["Part", "Found", "Verdict", *["The rule on the paper's numbers"] * bool(self.paper)]
        return Table.of_words(title, columns, rows, [self.rule] if self.rule else [])


def decide(
    rules: Mapping[int, Callable[[Any], Sequence[Finding]]], evidence: Any, paper: Any = None, where: str = ""
) -> list[Claim]:
    """The claims with their verdicts; not decided where the runs do not hold what a rule looks at.

    The first line of a rule's docstring is the claim, the rest the rule in words. `paper` is what the paper published in the
    place of the runs.
    """
    found = []
    for number, rule in rules.items():
        claim, _, words = (inspect.getdoc(rule) or "").partition("\n")
        findings = _applied(rule, evidence)
        own = _applied(rule, paper) if paper is not None else []
        if len(own) != len(findings):
            own = []
        found.append(Claim(number, claim, " ".join(words.split()), findings, own, where))
    return found


def _applied(rule: Callable[[Any], Sequence[Finding]], evidence: Any) -> Sequence[Finding]:
    try:
        return rule(evidence)
    except (ValueError, KeyError, TypeError, IndexError) as error:
        return [Finding("the runs", f"do not hold what the rule looks at: {error!r}")]


def paired(*rows: Any, least: int = 0) -> list[Any]:
    """The rows on the seeds that all of them have; without runs if these are too few. Rows of the paper stay as they are."""
    if any(isinstance(row, PaperRow) for row in rows):
        return list(rows)
    seeds = range(len(rows[0].runs)) if all(rows) else ()
    there = [i for i in seeds if all(row.runs[i] for row in rows)]
    if len(there) < (least or min(LEAST, max(1, len(seeds)))):
        there = []
    return [replace(row, configs=tuple(row.configs[i] for i in there), runs=tuple(row.runs[i] for i in there)) for row in rows]


class Evidence(abc.ABC):
    """What rules look at: rows in places, such as tasks or settings."""

    @abc.abstractmethod
    def row(self, place: Any, estimator: str) -> Any:
        """A row of runs, or of the paper."""

    def rows(self, place: Any, *estimators: str) -> list[Any]:
        """Several rows on the same seeds; without runs where they cannot be compared."""
        return paired(*(self.row(place, name) for name in estimators))

    def gap(self, place: Any, first: str, second: str, measure: str) -> Values:
        """The difference of two rows, seed by seed."""
        return minus(*(row.values(measure) for row in self.rows(place, first, second)))


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
    if not isinstance(values, Published) and not values:
        return Finding(statement)
    found = values.interval if isinstance(values, Published) else interval(values)
    return Finding(statement, f"{found.show()}; {question}?", _either(*rule(found)), found)


def minus(first: Values, second: Values) -> Values:
    """The difference, seed by seed."""
    if isinstance(first, Published) and isinstance(second, Published):
        return Published(first.value - second.value, math.hypot(first.error, second.error), min(first.count, second.count))
    if isinstance(first, Published) or isinstance(second, Published) or not first or not second:
        return []
    return [a - b for a, b in zip(first, second, strict=True)]


def mean_of(rows: Sequence[Any], values: Callable[[Any], Values]) -> Values:
    """The mean over several rows, for each seed; none if a row is missing."""
    found = [values(row) for row in rows]
    published = [each for each in found if isinstance(each, Published)]
    if published and len(published) == len(found):
        error, count = math.hypot(*(each.error for each in published)), min(each.count for each in published)
        return Published(statistics.fmean(each.value for each in published), error / len(found), count)
    each = [list(values) for values in found if not isinstance(values, Published)]
    return [statistics.fmean(seed) for seed in zip(*each, strict=True)] if len(each) == len(found) and all(each) else []


def level(values: Values) -> float:
    """The number itself, or the mean over the seeds."""
    return values.value if isinstance(values, Published) else statistics.fmean(values)


def best_of(rows: Sequence[Any], measure: str) -> Any:
    """The row with the highest mean of a measure, the first of equals, none that diverged; None while one is missing."""
    if not rows or not all(rows) or not all(row.values(measure) for row in rows):
        return None
    return max(rows, key=lambda row: comparable(level(row.values(measure))))


def most(statement: str, findings: Sequence[Finding]) -> Finding:
    """Holds if more than half of the findings hold, fails if more than half fail."""
    verdicts = [finding.verdict for finding in findings]
    holds, fails = verdicts.count(Verdict.HOLDS), verdicts.count(Verdict.FAILS)
    found = ", ".join(f"{each.statement} {each.interval.show()}" for each in findings if each.interval)
    evidence = f"for {holds} of {len(verdicts)}: {found}" if found else "runs missing"
    return Finding(statement, evidence, _either(2 * holds > len(verdicts), 2 * fails > len(verdicts)))
