"""The paper's claims, each with the verdict that the committed rules give to the runs that are there."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pullback.experiments.report.numbers import UNREADABLE, command, finite
from pullback.experiments.synthetic.claims import CLAIMS as SYNTHETIC_CLAIMS
from pullback.experiments.synthetic.evidence import Evidence
from pullback.experiments.synthetic.plans import Chosen
from pullback.experiments.verdicts import Finding, Verdict, all_of

_TABLE_1, _CURVES, _STEPS = ("table1", "Table 1"), ("curves", "Learning curves"), ("steps", "Multiple updates")
_TABLE_2, _TREES = ("table2", "Table 2"), ("trees", "Trees")

# Where each claim can be looked at, and the commands that make its runs.
_RESTS_ON: dict[int, tuple[tuple[tuple[str, str], ...], tuple[tuple[str, ...], ...]]] = {
    **dict.fromkeys((1, 2, 3, 11), ((_TABLE_1,), (("table1", "--grid"),))),
    4: ((_TABLE_1, _CURVES), (("table1", "--grid"),)),
    5: ((_TABLE_1, _CURVES), (("table1", "--grid"),)),
    6: ((_STEPS,), (("steps",),)),
    7: ((_TABLE_2,), (("table2", "--task", "sst"),)),
    8: ((_TABLE_2,), (("steps", "--task", "sst"),)),
    9: ((_TABLE_2,), (("table2", "--task", "sst"), ("table2", "--task", "snli"))),
    10: ((_TREES,), (("table2", "--task", "sst"),)),
}

_TEXT_CLAIMS = {
    7: "On SST the relaxations are strong, and SPIGOT is a top performer.",
    8: "On SST the number of inner steps matters little (SPIGOT, SPIGOT-CE, SPIGOT-EG at 1, 2 and 5 steps).",
    9: "On SNLI the argmax methods are below the relaxations, which are also the more stable on both text tasks.",
    10: "On SST most methods' trees are flat; SPIGOT-CE's are not (average depth around 5), and it attaches the "
    'adjectives of the third example to "drama".',
}


def claims(root: Path) -> list[dict[str, Any]]:
    """All eleven, in order."""
    evidence = _Remembered(root)
    return [_claim(number, evidence, root) for number in range(1, 12)]


class _Remembered(Evidence):
    """Evidence that reads each row once: several claims rest on the same ones."""

    def row(self, estimator: str, clusters: int) -> Chosen | None:
        return self._row(estimator, clusters)

    @functools.cached_property
    def _row(self) -> Callable[[str, int], Chosen | None]:
        return functools.cache(super().row)


def _claim(number: int, evidence: Evidence, root: Path) -> dict[str, Any]:
    links, commands = _RESTS_ON[number]
    out: dict[str, Any] = {
        "number": number, "links": [{"to": to, "label": label} for to, label in links],
        "commands": [command("reproduce", *words, root=root) for words in commands],
    }  # fmt: skip
    rule = SYNTHETIC_CLAIMS.get(number)
    if rule is None:
        return {**out, "claim": _TEXT_CLAIMS[number], "rule": "", "findings": [], "verdict": Verdict.OPEN.value}
    out["claim"], _, out["rule"] = (inspect.getdoc(rule) or "").partition("\n")
    out["rule"] = " ".join(out["rule"].split())
    try:
        found = rule(evidence)
    except UNREADABLE as error:
        found = [Finding("the runs", f"cannot be read: {error!r}", Verdict.OPEN)]
    out["findings"] = [_finding(finding) for finding in found]
    out["verdict"] = all_of([finding.verdict for finding in found]).value
    return out


def _finding(finding: Finding) -> dict[str, Any]:
    out: dict[str, Any] = {
        "statement": finding.statement, "evidence": finding.evidence, "verdict": finding.verdict.value
    }
    if finding.interval is not None and finding.threshold is not None:
        out["interval"] = [finite(value) for value in finding.interval]
        out["threshold"] = finding.threshold
    return out
