"""A number of ours beside the paper's, with the runs behind it, as plain values for JSON."""

from __future__ import annotations

import math
import shlex
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pullback_study.paper import Reported
from pullback_study.status import Listed

UNREADABLE = (OSError, ValueError, KeyError, TypeError, AttributeError)
"""What reading a run directory that others have edited may raise."""


def finite(value: Any, digits: int = 4) -> float | None:
    """A number short enough for a page; None for what is not one: a diverged run's NaN is not JSON."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return round(value, digits)


def number(value: Any) -> float:
    """A number that was read from a file, or an error that says what is there instead."""
    if (found := finite(value)) is None:
        raise ValueError(f"{value!r} is not a number")
    return found


def plain(value: Any) -> Any:
    """The same without NaN and infinities, which a file of others may hold and JSON cannot: they become None."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def beside(value: float, spread: float, paper: Reported | None) -> dict[str, Any]:
    """Our number, the paper's, and their difference; `differs` where that exceeds both spreads together."""
    out: dict[str, Any] = {"value": finite(value), "spread": finite(spread), "paper": shown(paper)}
    if paper is not None and math.isfinite(value):
        difference = value - paper.value
        out["difference"] = finite(difference)
        out["differs"] = math.isfinite(spread) and abs(difference) > spread + paper.spread
    return out


def shown(paper: Reported | None) -> list[float] | None:
    return None if paper is None else [paper.value, paper.spread]


def progress(hashes: Sequence[str], listed: Mapping[str, Listed]) -> dict[str, int]:
    """How many of these runs there are, by status."""
    found = [listed[name].status for name in hashes if name in listed]
    return {"total": len(hashes), **{status: found.count(status) for status in sorted(set(found))}}


def command(*words: str, root: Path) -> str:
    """A command line of ours that would make what is missing in `root`.

    >>> command("reproduce", "steps", root=Path("my runs"))
    "pullback reproduce steps --runs 'my runs'"
    """
    where = [] if root == Path("runs") else ["--runs", str(root)]
    return shlex.join(["pullback", *words, *where])


def band(points: Sequence[Sequence[Any]], middle: Callable[[Sequence[float]], float]) -> dict[str, list[float | None]]:
    """A line through the middle of the values at each point, with the lowest and the highest; None where there are none."""
    numbers = [[value for point in values if (value := finite(point, 2)) is not None] for values in points]
    return {
        "y": [finite(middle(values), 2) if values else None for values in numbers],
        "low": [min(values, default=None) for values in numbers],
        "high": [max(values, default=None) for values in numbers],
    }


def thinned(points: Sequence[Any], most: int = 200) -> list[Any]:
    """At most about `most` points of a long curve, evenly spaced, the last one always among them.

    >>> thinned(list(range(10)), most=4)
    [0, 3, 6, 9]
    """
    every = max(1, math.ceil(len(points) / most))
    first = (len(points) - 1) % every
    return list(points[first::every])
