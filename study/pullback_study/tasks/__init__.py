"""Tasks: what is trained, on what data, through which structure, and how it is measured.

A task is one folder here, or a module anywhere, and one line in the registry below. Tasks of your own are listed in the
variable PULLBACK_TASKS, as `name=module:ATTRIBUTE`, separated by commas; estimators of your own, `Method`s, in
PULLBACK_ESTIMATORS.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path

from pullback_study.listed import VariableError, listed, load
from pullback_study.tasks.methods import Method, by_name, registered
from pullback_study.tasks.schema import check_known
from pullback_study.tasks.task import Metric, ReplicaTask, Task, Trainer

__all__ = [
    "TASKS", "Method", "Metric", "ReplicaTask", "Task", "Trainer", "all_tasks", "by_name", "find_task", "known_task",
    "names_of_estimators", "registered",
]  # fmt: skip


_BUILT_IN = {
    "synthetic": "pullback_study.tasks.synthetic.task:TASK",
    "sst": "pullback_study.tasks.text.task:SST",
    "snli": "pullback_study.tasks.text.task:SNLI",
    "planted": "pullback_study.tasks.planted.task:TASK",
    "listops": "pullback_study.tasks.listops.task:TASK",
    "ud": "pullback_study.tasks.ud.task:TASK",
}
_OWN = listed("PULLBACK_TASKS")
if taken := sorted(_OWN.keys() & _BUILT_IN.keys()):
    raise VariableError(f"PULLBACK_TASKS names a task {taken[0]!r}, which is built in; give yours another name")
TASKS = _BUILT_IN | _OWN
"""By name, where each task is found: module and attribute."""


def find_task(name: str, data: Path | None = None) -> Task:
    """The task of that name; its data, if it needs any, is in a folder, by default `$PULLBACK_DATA`.

    >>> find_task("sst").title
    'SST'
    """
    check_known(f"there is no task {name!r}", name, TASKS)
    task: Task = load("task", name, TASKS[name], Task)
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


def names_of_estimators() -> dict[str, str]:
    """The estimator behind each name, and behind each alias, of any task."""
    methods = [method for task in all_tasks() for method in task.methods.values()]
    return {name: method.name for method in methods for name in (method.name, *method.aliases)}
