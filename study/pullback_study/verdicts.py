"""Verdicts on claims: three-valued, with 'not decided' as the default."""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pullback.viz.tables import Table
from pullback_study.statistics import Interval


class Verdict(enum.Enum):
    HOLDS = "holds"
    FAILS = "does not hold"
    OPEN = "not decided"


@dataclass(frozen=True)
class Finding:
    """One part of a claim: what was compared, what was found, and what follows.

    Args:
        statement: what was compared.
        evidence: what was found, in words.
        verdict: what follows.
        interval: what was found, where it is an interval.
        threshold: what the interval was compared with.
    """

    statement: str
    evidence: str
    verdict: Verdict
    interval: Interval | None = None
    threshold: float | None = None


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

    >>> within(Interval(0.5, -1.0, 2.0), margin=3.0)
    <Verdict.HOLDS: 'holds'>
    >>> within(Interval(8.0, 2.0, 14.0), margin=3.0)
    <Verdict.FAILS: 'does not hold'>
    >>> within(Interval(8.0, -2.0, 18.0), margin=3.0)
    <Verdict.OPEN: 'not decided'>
    """
    if shortfall.high < margin:
        return Verdict.HOLDS
    return Verdict.FAILS if shortfall.low > 0 and shortfall.mean > margin else Verdict.OPEN


def all_of(verdicts: Sequence[Verdict]) -> Verdict:
    """A conjunction: fails if a part fails, holds if all parts hold, otherwise not decided.

    >>> all_of([Verdict.HOLDS, Verdict.OPEN])
    <Verdict.OPEN: 'not decided'>
    """
    if Verdict.FAILS in verdicts:
        return Verdict.FAILS
    return Verdict.HOLDS if verdicts and set(verdicts) == {Verdict.HOLDS} else Verdict.OPEN


def verdict(findings: Sequence[Finding]) -> Verdict:
    """On a claim, from all its parts."""
    return all_of([finding.verdict for finding in findings])


def claims_tables(claims: Mapping[int, Callable[[Any], Sequence[Finding]]], evidence: Any) -> list[Table]:
    """For each claim the verdict, and what it rests on.

    Args:
        claims: by number, the rule that decides it; the first line of its docstring is the claim.
        evidence: what the rules look at.
    """
    tables = []
    for number, rule in claims.items():
        findings = rule(evidence)
        claim = (rule.__doc__ or "").splitlines()[0]
        table = Table(f"Claim {number}: {verdict(findings).value}. {claim}", ["Part", "Found", "Verdict"])
        table.rows = [[finding.statement, finding.evidence, finding.verdict.value] for finding in findings]
        tables.append(table)
    return tables
