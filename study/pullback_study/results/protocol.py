"""Protocols: the seeds, the grid and the rule by which the rows of a study are run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from pullback_study.results.choice import Plan
from pullback_study.tasks import find_task

Fields = tuple[tuple[str, Any], ...]


@dataclass(frozen=True)
class Protocol:
    """How the rows of a study are run: the full version, or less.

    The rule: of the settings of the grid, a row has the one with the highest mean validation metric over the deciding seeds.
    """

    task: str
    seeds: tuple[int, ...]  # of the results
    fields: Fields = ()  # of all configs
    rates: tuple[float, ...] = ()  # the grid's learning rates
    sizes: tuple[float, ...] = ()  # the grid's step sizes
    deciding: tuple[int, ...] = (0,)
    searched: Fields = ()  # the fields that differ in the runs that decide
    whole: Protocol | None = None  # the full version of a part

    def __getitem__(self, name: str) -> Any:
        """A field of the configs."""
        return dict(self.fields).get(name, getattr(find_task(self.task).config_type(), name))

    def having(self, **fields: Any) -> Protocol:
        """The same with other values of some fields."""
        return replace(self, fields=tuple({**dict(self.fields), **fields}.items()))

    def on(self, seeds: Sequence[int]) -> Protocol:
        """The same on other seeds."""
        return replace(self, seeds=tuple(seeds), whole=self.whole or self)

    @property
    def warning(self) -> str:
        """What is less than in the full version; empty if nothing is."""
        if self.whole is None:
            return ""
        sizes = {name: (self[name], self.whole[name]) for name in _SIZES if hasattr(find_task(self.task).config_type, name)}
        sizes = {"seeds": (len(self.seeds), len(self.whole.seeds)), **sizes}
        less = [
            f"{mine} of {full or 'all'} {name.replace('_', ' ')}"
            for name, (mine, full) in sizes.items()
            if mine is not None and (full is None or mine < full)
        ]
        return f"Reduced: {', '.join(less)}. These numbers are not comparable with the paper's." if less else ""

    def plan(self, estimator: str, rates: Sequence[Any] = (), sizes: Sequence[Any] = (), **fields: Any) -> Plan:
        """A row over these learning rates and step sizes, by default its own; with more than one setting, the rule chooses."""
        common = {**dict(self.fields), **fields}
        grid = [(rate, size) for rate in rates or [None] for size in sizes or [None]]
        settings = [{**common, "learning_rate": rate, "step_size": size} for rate, size in grid]
        deciding = self.deciding if len(settings) > 1 else ()
        return Plan(find_task(self.task), estimator, settings, self.seeds, deciding, dict(self.searched))


_SIZES = ("steps", "epochs", "train_examples")
