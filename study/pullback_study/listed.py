"""What a variable of the environment lists: `name=module:ATTRIBUTE`, separated by commas."""

from __future__ import annotations

import functools
import os
import pkgutil
from typing import Any


class VariableError(ValueError):
    """A variable is wrong, whatever command is run."""


def listed(variable: str) -> dict[str, str]:
    """By name, where each thing is found: module and attribute."""
    items = [item.partition("=") for item in os.environ.get(variable, "").replace(" ", "").split(",") if item]
    if wrong := [name for name, _, place in items if not name or ":" not in place]:
        raise VariableError(f"{variable} has {wrong[0]!r}; write name=module:ATTRIBUTE, separated by commas")
    return {name: place for name, _, place in items}


@functools.cache
def load(what: str, name: str, place: str, kind: type[Any]) -> Any:
    """The attribute, an object of that kind and name; raises `ValueError` that says why it is not one."""
    try:
        found = pkgutil.resolve_name(place)
    except (Exception, SystemExit) as error:  # whatever a module does when it is imported
        why = f"{type(error).__name__}: {error}"
        raise ValueError(f"the {what} {name!r} cannot be loaded from {place}: {why}") from error
    if not isinstance(found, kind):
        page = "write-a-task" if what == "task" else "write-an-estimator"
        raise ValueError(f"{place} is not a {kind.__name__}; see docs/{page}.md")
    if found.name != name:
        raise ValueError(f"the {what} of {place} is called {found.name!r}; list it as {found.name}={place}")
    return found
