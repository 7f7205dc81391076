"""The two tasks by name."""

from __future__ import annotations

from pullback.estimators.config import nearest
from pullback_study.nli.task import SNLI
from pullback_study.sentiment.task import SST
from pullback_study.text.task import Task

TASKS: dict[str, Task] = {task.name: task for task in (SST, SNLI)}


def find_task(name: str) -> Task:
    """The task of that name.

    >>> find_task("sst").title
    'SST'
    """
    if name not in TASKS:
        raise ValueError(f"there is no task {name!r}; {nearest(name, list(TASKS))}")
    return TASKS[name]
