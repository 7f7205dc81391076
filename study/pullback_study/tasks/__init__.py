"""Tasks: what is trained, on what data, through which structure, and how it is measured.

A task is one folder here, or a module anywhere, and one line in the registry below. Tasks of your own are listed in the
variable PULLBACK_TASKS, as `name=module:ATTRIBUTE`, separated by commas.
"""

from __future__ import annotations

import dataclasses
import functools
import os
import pkgutil
from pathlib import Path

from pullback_study.tasks.schema import nearest
from pullback_study.tasks.task import Method, Metric, ReplicaTask, Task, Trainer

__all__ = ["TASKS", "Method", "Metric", "ReplicaTask", "Task", "Trainer", "all_tasks", "find_task", "known_task"]


_OWN = [item.partition("=") for item in os.environ.get("PULLBACK_TASKS", "").replace(" ", "").split(",") if item]
if wrong := [name for name, _, place in _OWN if not name or ":" not in place]:
    raise ValueError(f"PULLBACK_TASKS has {wrong[0]!r}; write name=module:ATTRIBUTE, separated by commas")
_BUILT_IN = {
    "synthetic": "pullback_study.tasks.synthetic.task:TASK",
    "sst": "pullback_study.tasks.text.task:SST",
    "snli": "pullback_study.tasks.text.task:SNLI",
    "planted": "pullback_study.tasks.planted.task:TASK",
    "listops": "pullback_study.tasks.listops.task:TASK",
}
if taken := [name for name, *_ in _OWN if name in _BUILT_IN]:
    raise ValueError(f"PULLBACK_TASKS names a task {taken[0]!r}, which is built in; give yours another name")
TASKS = _BUILT_IN | {name: place for name, _, place in _OWN}
"""By name, where each task is found: module and attribute."""


def find_task(name: str, data: Path | None = None) -> Task:
    """The task of that name; its data, if it needs any, is in a folder, by default `$PULLBACK_DATA`.

    >>> find_task("sst").title
    'SST'
    """
    if name not in TASKS:
        raise ValueError(f"there is no task {name!r}; {nearest(name, TASKS)}")
    task = _load(name)
    return task if data is None else dataclasses.replace(task, data=data)


def known_task(name: str) -> Task | None:
    """The task of that name; None if there is none, or if its module cannot be loaded."""
    try:
        return find_task(name)
    except ValueError:
        return None


def all_tasks() -> list[Task]:
    """Every task that can be loaded."""
    return [task for task in map(known_task, TASKS) if task is not None]


@functools.cache
def _load(name: str) -> Task:
    try:
        task = pkgutil.resolve_name(TASKS[name])
    except (Exception, SystemExit) as error:  # whatever a module does when it is imported
        why = f"{type(error).__name__}: {error}"
        raise ValueError(f"the task {name!r} cannot be loaded from {TASKS[name]}: {why}") from error
    if not isinstance(task, Task):
        raise ValueError(f"{TASKS[name]} is not a Task; see docs/write-a-task.md")
    if task.name != name:
        raise ValueError(f"the task of {TASKS[name]} is called {task.name!r}; list it as {task.name}={TASKS[name]}")
    return task
