"""Tasks: what is trained, on what data, through which structure, and how it is measured.

A task is one folder here, or a module anywhere, and one line in the registry below. Tasks of your own are listed in the
variable PULLBACK_TASKS, as `name=module:ATTRIBUTE`, separated by commas.
"""

from __future__ import annotations

import dataclasses
import functools
import os
from pathlib import Path

from pullback_study.tasks.methods import Method
from pullback_study.tasks.schema import nearest
from pullback_study.tasks.task import Metric, ReplicaTask, Task, Trainer, load_attribute

__all__ = ["TASKS", "Method", "Metric", "ReplicaTask", "Task", "Trainer", "find_task", "load_attribute"]


def _own() -> dict[str, str]:
    """The tasks of PULLBACK_TASKS."""
    listed = [item.strip() for item in os.environ.get("PULLBACK_TASKS", "").split(",") if item.strip()]
    found = {name.strip(): place.strip() for name, _, place in (item.partition("=") for item in listed)}
    for name, place in found.items():
        if not name or not all(place.partition(":")[::2]):
            raise ValueError(f"PULLBACK_TASKS has {name}={place}; write name=module:ATTRIBUTE, separated by commas")
    return found


TASKS = {
    "synthetic": "pullback_study.tasks.synthetic.task:TASK",
    "sst": "pullback_study.tasks.text:SST",
    "snli": "pullback_study.tasks.text:SNLI",
    "planted": "pullback_study.tasks.planted.task:TASK",
    "listops": "pullback_study.tasks.listops.task:TASK",
    **_own(),
}
"""By name, where each task is found: module and attribute."""


def find_task(name: str, data: Path | None = None) -> Task:
    """The task of that name.

    Args:
        name: in the registry.
        data: the folder of the data, for the tasks that need one; None for `$PULLBACK_DATA`.

    >>> find_task("sst").title
    'SST'
    """
    if name not in TASKS:
        raise ValueError(f"there is no task {name!r}; {nearest(name, TASKS)}")
    task = _load(name)
    return task if data is None else dataclasses.replace(task, data=data)


@functools.cache
def _load(name: str) -> Task:
    try:
        task = load_attribute(TASKS[name])
    except (ImportError, AttributeError) as error:
        raise ValueError(f"the task {name!r} cannot be loaded from {TASKS[name]}: {error}") from error
    if not isinstance(task, Task):
        raise ValueError(f"{TASKS[name]} is not a Task; see docs/write-a-task.md")
    return task
