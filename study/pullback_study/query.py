"""Questions about runs: conditions on their fields, an order, and CSV.

    clusters=10    estimator!=linear    learning_rate<=0.001    test_accuracy>90

A field is one of the config or of the results, or `status`, `study`, `version` or `run`. Numbers compare as numbers; a run
without the field fails every condition on it but `!=`, and `none` is the value of a field that does not apply.
"""

from __future__ import annotations

import csv
import io
import operator
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from pullback.estimators.config import nearest
from pullback_study.status import Listed

_OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "<=": operator.le, ">=": operator.ge, "!=": operator.ne, "=": operator.eq, "<": operator.lt, ">": operator.gt,
}  # fmt: skip
_CONDITION = re.compile(r"\s*([\w-]+)\s*(<=|>=|!=|=|<|>)=?\s*(.*?)\s*")


def fields(run: Listed) -> dict[str, Any]:
    """All there is to ask about a run, flat: `error` only where it has one."""
    about = {"run": run.hash, "status": run.status, "study": run.study, "version": run.version}
    return {**run.result, **run.config, **about}


@dataclass(frozen=True)
class Condition:
    """A field, a comparison and a value.

    >>> Condition.parse("learning_rate <= 1e-3")
    Condition(field='learning_rate', comparison='<=', value=0.001)
    """

    field: str
    comparison: str
    value: Any

    @classmethod
    def parse(cls, text: str) -> Condition:
        found = _CONDITION.fullmatch(text)
        if found is None:
            raise ValueError(f"{text!r} is not a condition; write a field, one of = != < <= > >=, and a value")
        return cls(found[1].replace("-", "_"), found[2], _value(found[3]))

    def holds(self, about: dict[str, Any]) -> bool:
        mine = about.get(self.field)
        if self.comparison in ("=", "!="):
            same = mine == self.value or str(mine).lower() == str(self.value).lower()
            return same == (self.comparison == "=")
        if mine is None or self.value is None:
            return False
        both_numbers = _is_number(mine) and _is_number(self.value)
        left, right = (mine, self.value) if both_numbers else (str(mine), str(self.value))
        return _OPERATORS[self.comparison](left, right)


def select(runs: Sequence[Listed], where: Sequence[str] = (), sort: str | None = None) -> list[Listed]:
    """The runs for which all conditions hold, in the order of a field (`-field`: the highest first).

    A field that no run has is a mistake. Runs without the field to sort by come last.
    """
    flat = [(run, fields(run)) for run in runs]
    known = sorted({name for _, about in flat for name in about})
    for text in where:
        condition = Condition.parse(text)
        if flat:
            _check(condition.field, known)
        flat = [(run, about) for run, about in flat if condition.holds(about)]
    if sort is not None:
        name, down = sort.lstrip("-").replace("-", "_"), sort.startswith("-")
        if known:
            _check(name, known)
        there = [item for item in flat if item[1].get(name) is not None]
        numbers = all(_is_number(about[name]) for _, about in there)
        there.sort(key=lambda item: item[1][name] if numbers else str(item[1][name]), reverse=down)
        flat = there + [item for item in flat if item[1].get(name) is None]
    return [run for run, _ in flat]


def as_csv(runs: Sequence[Listed]) -> str:
    """One line for each run: what it is, then the fields of configs and results in their order; nested values left out."""
    names = dict.fromkeys(["run", "status", "study", "version"])
    for run in runs:
        names.update(dict.fromkeys(run.config))
    for run in runs:
        names.update(dict.fromkeys(name for name, value in run.result.items() if not isinstance(value, dict | list)))
    names.pop("traceback", None)
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(names)
    for run in runs:
        about = fields(run)
        writer.writerow(["" if about.get(name) is None else about[name] for name in names])
    return out.getvalue()


def _check(name: str, known: Sequence[str]) -> None:
    if name not in known:
        raise ValueError(f"no run here has a field {name!r}; {nearest(name, list(known))}")


def _value(text: str) -> Any:
    if text.lower() in ("none", "null", ""):
        return None
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
