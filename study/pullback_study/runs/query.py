"""Questions about stored runs: conditions on their fields, an order, and CSV.

    clusters=10    estimator!=linear    learning_rate<=0.001    test_accuracy>90

A field is one of the config or of the metrics, or `state`, `task`, `version`, `run` or `error`. Numbers compare as numbers; a
run without the field fails every condition on it but `!=`, and `none` is the value of a field that does not apply.
"""

from __future__ import annotations

import csv
import io
import operator
import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from pullback_study.runs.store import Stored
from pullback_study.tasks import TASKS, find_task
from pullback_study.tasks.schema import nearest

_ORDERS: dict[str, Callable[[Any, Any], bool]] = {"<=": operator.le, ">=": operator.ge, "<": operator.lt, ">": operator.gt}
_CONDITION = re.compile(r"\s*([\w-]+)\s*(<=|>=|!=|=|<|>)=?\s*(.*?)\s*")


class Condition(NamedTuple):
    """A field, a comparison and a value.

    >>> Condition.parse("learning_rate <= 1e-3")
    Condition(field='learning_rate', comparison='<=', value='1e-3')
    """

    field: str
    comparison: str
    value: str

    @classmethod
    def parse(cls, text: str) -> Condition:
        found = _CONDITION.fullmatch(text)
        if found is None:
            raise ValueError(f"{text!r} is not a condition; write a field, one of = != < <= > >=, and a value")
        name, value = found[1].replace("-", "_"), found[3]
        if name == "estimator":  # its own name, for one of its aliases
            methods = (method for task in map(find_task, TASKS) for method in task.methods.values())
            value = next((method.name for method in methods if value in method.aliases), value)
        if found[2] in _ORDERS and _number(value) is None:
            raise ValueError(f"{text}: {value!r} is not a number")
        return cls("state" if name == "status" else name, found[2], value)

    def holds(self, about: dict[str, Any]) -> bool:
        mine, number = about.get(self.field), _number(self.value)
        if self.comparison in _ORDERS:
            return (value := _number(mine)) is not None and _ORDERS[self.comparison](value, number)
        same = str(mine).lower() == self.value.lower() or (number is not None and _number(mine) == number)
        return same == (self.comparison == "=")


def select(runs: Sequence[Stored], where: Sequence[str] = (), sort: str | None = None) -> list[Stored]:
    """The runs for which all conditions hold, in the order of a field (`-field`: the highest first).

    A field that no run has is a mistake. Runs without the field to sort by come last.
    """
    flat = [(run, _fields(run)) for run in runs]
    known = sorted({name for _, about in flat for name in about})
    order = (sort or "").lstrip("-").replace("-", "_")
    conditions = [Condition.parse(text) for text in where]
    for name in [condition.field for condition in conditions] + ([order] if sort else []):
        if known and name not in known:
            raise ValueError(f"no run here has a field {name!r}; {nearest(name, known)}")
    flat = [item for item in flat if all(condition.holds(item[1]) for condition in conditions)]
    if sort:
        there = [item for item in flat if item[1].get(order) is not None]
        there.sort(key=lambda item: _rank(item[1][order]), reverse=sort.startswith("-"))
        flat = there + [item for item in flat if item[1].get(order) is None]
    return [run for run, _ in flat]


def as_csv(runs: Sequence[Stored]) -> str:
    """One line for each run: what it is, then the fields of configs and metrics in their order; escapes for what no text is."""
    from pullback.viz import visible

    names = list(dict.fromkeys(["run", "state", "task", "version", *(n for run in runs for n in (*run.config, *run.metrics))]))
    names += ["error"] if any(run.error for run in runs) else []
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([visible(name) for name in names])
    for about in map(_fields, runs):
        writer.writerow(["" if about.get(name) is None else visible(str(about[name])) for name in names])
    return out.getvalue()


def _fields(run: Stored) -> dict[str, Any]:
    """All there is to know about a run, flat: `error` only where it has one."""
    about = {"run": run.id, "state": run.state, "task": run.task, "version": run.version}
    return {**run.metrics, **run.config, **about, **({"error": run.error} if run.error else {})}


def _rank(value: Any) -> tuple[bool, float, str]:
    """Numbers by their size, then texts."""
    number = _number(value)
    return number is None, number or 0.0, str(value)


def _number(value: Any) -> float | None:
    """What a number is, or a text says; None for anything else."""
    try:
        return None if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        return None
