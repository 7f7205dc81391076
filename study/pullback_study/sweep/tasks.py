"""The tasks that a sweep file can name."""

from __future__ import annotations

import typing
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pullback.estimators.config import nearest
from pullback_study.study import Study

TASKS = ("synthetic", "sst", "snli")


@dataclass(frozen=True)
class SweepTask:
    """A study, and how its configs are made from the fields of a sweep file.

    Args:
        study: of the runs.
        configure: from fields by name to a config; fills in what is not given.
        given: fields of the config that the task itself decides.
        required: fields that a sweep must name.
    """

    study: Study
    configure: Callable[..., Any]
    given: tuple[str, ...] = ()
    required: tuple[str, ...] = ()

    @property
    def fields(self) -> dict[str, Any]:
        """The fields that a sweep may list, with their types."""
        types = typing.get_type_hints(self.study.config_type)
        return {name: kind for name, kind in types.items() if name not in self.given}


def find_task(name: str, data: Path | None = None) -> SweepTask:
    """The task of that name.

    Args:
        name: one of `TASKS`.
        data: the folder of the data of the text tasks; None for `$PULLBACK_DATA`.
    """
    if name == "synthetic":
        from pullback_study.synthetic.config import configure
        from pullback_study.synthetic.study import Synthetic

        return SweepTask(Synthetic(), configure, required=("estimator",))
    if name in ("sst", "snli"):
        return _text(name, data)
    raise ValueError(f"there is no task {name!r}; {nearest(name, list(TASKS))}")


def _text(name: str, data: Path | None) -> SweepTask:
    from pullback_study.corpora import find_data
    from pullback_study.text.config import configure
    from pullback_study.text.study import TextStudy
    from pullback_study.text.tasks import find_task

    folder = find_data(data)
    there = find_task(name).training_data(folder)

    def with_data(*, estimator: str, **options: Any) -> Any:
        return configure(name, estimator, data=there, **options)

    return SweepTask(TextStudy(folder), with_data, given=("task", "data"), required=("estimator",))
