"""Fixtures and parameters with many values that cost little: a test runs for each of them in turn, and counts as one.

A failure says for which values. Tests that are worth an own line each are parametrised as usual.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest


class Each:
    """The values of a fixture. `around` makes the context in which a test runs with one of them."""

    def __init__(self, values: Sequence[Any], around: Callable[[Any], Any] = contextlib.nullcontext) -> None:
        assert values
        self.values, self.around = list(values), around


def each(name: str, values: Iterable[Any]) -> pytest.MarkDecorator:
    """A parameter with many values that cost little, as `pytest.mark.parametrize` is for those that are worth a line each."""
    return pytest.mark.parametrize(name, [pytest.param(Each(list(values)), id=name)])


def run(item: pytest.Function) -> bool | None:
    """Call the test of `item` for every combination of its arguments; None if it has one of each, as usual."""
    arguments = {name: item.funcargs[name] for name in item._fixtureinfo.argnames}
    several = {name: value for name, value in arguments.items() if isinstance(value, Each)}
    if not several:
        return None
    skipped = []
    combinations = list(itertools.product(*(each.values for each in several.values())))
    for values in combinations:
        chosen = dict(zip(several, values, strict=True))
        try:
            with contextlib.ExitStack() as stack:
                for name, value in chosen.items():
                    stack.enter_context(several[name].around(value))
                item.obj(**(arguments | chosen))
        except pytest.skip.Exception as why:
            skipped.append(why)
        except BaseException as problem:
            problem.add_note("for " + ", ".join(f"{name} = {value}" for name, value in chosen.items()))
            raise
    if len(skipped) == len(combinations):
        raise skipped[0]
    return True
