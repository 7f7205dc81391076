"""The paper's claims, each with the verdict that the committed rules give to the runs that are there."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pullback_study.report.numbers import UNREADABLE, command, finite
from pullback_study.synthetic import evidence as synthetic
from pullback_study.synthetic.claims import CLAIMS as SYNTHETIC_CLAIMS
from pullback_study.synthetic.plans import Chosen
from pullback_study.text import evidence as text
from pullback_study.text.claims import CLAIMS as TEXT_CLAIMS
from pullback_study.verdicts import Finding, Verdict, all_of

_TABLE_1, _CURVES, _STEPS = ("table1", "Table 1"), ("curves", "Learning curves"), ("steps", "Multiple updates")
_TABLE_2, _TREES = ("table2", "Table 2"), ("trees", "Trees")
_SST = ("table2", "--task", "sst", "--search")

# Where each claim can be looked at, and the commands that make its runs.
_RESTS_ON: dict[int, tuple[tuple[tuple[str, str], ...], tuple[tuple[str, ...], ...]]] = {
    **dict.fromkeys((1, 2, 3, 11), ((_TABLE_1,), (("table1", "--grid"),))),
    4: ((_TABLE_1, _CURVES), (("table1", "--grid"),)),
    5: ((_TABLE_1, _CURVES), (("table1", "--grid"),)),
    6: ((_STEPS,), (("steps",),)),
    7: ((_TABLE_2,), (_SST,)),
    8: ((_STEPS,), (_SST, ("steps", "--task", "sst"))),
    9: ((_TABLE_2, _CURVES), (_SST, ("table2", "--task", "snli"))),
    10: ((_TREES,), (_SST,)),
}


def claims(root: Path) -> list[dict[str, Any]]:
    """All of them, in order."""
    on_synthetic, on_text = _Remembered(root), text.Evidence(root)
    rules: dict[int, tuple[Callable[[Any], list[Finding]], Any]] = {
        **{number: (rule, on_synthetic) for number, rule in SYNTHETIC_CLAIMS.items()},
        **{number: (rule, on_text) for number, rule in TEXT_CLAIMS.items()},
    }
    return [_claim(number, *rules[number], root) for number in sorted(rules)]


class _Remembered(synthetic.Evidence):
    """Evidence that reads each row once: several claims rest on the same ones."""

    def row(self, estimator: str, clusters: int) -> Chosen | None:
        return self._row(estimator, clusters)

    @functools.cached_property
    def _row(self) -> Callable[[str, int], Chosen | None]:
        return functools.cache(super().row)


def _claim(number: int, rule: Callable[[Any], list[Finding]], evidence: Any, root: Path) -> dict[str, Any]:
    links, commands = _RESTS_ON[number]
    out: dict[str, Any] = {
        "number": number, "links": [{"to": to, "label": label} for to, label in links],
        "commands": [command("reproduce", *words, root=root) for words in commands],
    }  # fmt: skip
    out["claim"], _, out["rule"] = (inspect.getdoc(rule) or "").partition("\n")
    out["rule"] = " ".join(out["rule"].split())
    out["margins"] = [words for name, words in _MARGINS[type(evidence)].items() if name in out["rule"]]
    try:
        found = rule(evidence)
    except UNREADABLE as error:
        found = [Finding("the runs", f"cannot be read: {error!r}", Verdict.OPEN)]
    out["findings"] = [_finding(finding) for finding in found]
    out["verdict"] = all_of([finding.verdict for finding in found]).value
    return out


_MARGINS = {
    _Remembered: {
        "FAR": f"FAR is {synthetic.FAR:g} points",
        "NEAR": "NEAR is "
        + ", ".join(f"{margin:g} points of {synthetic.MEASURES[name]}" for name, margin in synthetic.NEAR.items()),
        "RECOVERED": f"RECOVERED is a V-measure of {synthetic.RECOVERED:g}",
    },
    text.Evidence: {
        "NEAR": f"NEAR is {text.NEAR:g} points",
        "FLAT": f"FLAT is a depth of {text.FLAT:g}",
        "DEEP": f"DEEP is from {text.DEEP[0]:g} to {text.DEEP[1]:g}",
    },
}


def _finding(finding: Finding) -> dict[str, Any]:
    out: dict[str, Any] = {
        "statement": finding.statement, "evidence": finding.evidence, "verdict": finding.verdict.value
    }
    if finding.interval is not None and finding.threshold is not None:
        out["interval"] = [finite(value) for value in finding.interval]
        out["threshold"] = finding.threshold
    return out
