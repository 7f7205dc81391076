"""What a study is to the runner: configs that train together in groups, and a trainer for a group."""

from __future__ import annotations

import abc
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar

from torch import Tensor

from pullback_study.runs import Run


class Trainer(abc.ABC):
    """Trains the runs of one group together, from step 0 to `steps`.

    Its state is tensors and plain values alone, so that a checkpoint is data and not code, and it decides
    everything that follows: a trainer restored from its state ends with the same numbers.
    """

    step: int
    steps: int
    epochs: int = 0  # that have ended; stays 0 where a step is all of the data, and only time asks for a checkpoint

    @abc.abstractmethod
    def advance(self, until: int, stop: Callable[[], bool]) -> None:
        """Train up to step `until`; return early, between two steps, when `stop()` is true."""

    @abc.abstractmethod
    def state(self) -> dict[str, Any]:
        """All that training depends on; also the evaluations so far."""

    @abc.abstractmethod
    def restore(self, state: dict[str, Any]) -> None:
        """Go on from the state of a trainer of the same group."""

    @abc.abstractmethod
    def history(self) -> list[list[dict[str, Any]]]:
        """For each run, its evaluations so far: rows with a `step`."""

    @abc.abstractmethod
    def latest(self) -> list[dict[str, Any]]:
        """For each run, its last evaluation; empty before the first."""

    @abc.abstractmethod
    def results(self) -> list[dict[str, Any]]:
        """For each run, its final numbers. Called once, at the last step."""

    @abc.abstractmethod
    def parameters(self) -> list[dict[str, Tensor]]:
        """For each run, its named parameters."""


class Study(abc.ABC):
    """A name, a version, a type of config, and how configs train.

    Configurations are chosen by the mean of `validation_metric` over seeds, the higher the better, and compared by
    `test_metrics`: names in a run's results.
    """

    name: ClassVar[str]
    version: ClassVar[int]
    config_type: ClassVar[type]
    validation_metric: ClassVar[str] = "validation_accuracy"
    test_metrics: ClassVar[tuple[str, ...]] = ("test_accuracy",)

    @abc.abstractmethod
    def partition(self, configs: Sequence[Any]) -> list[list[Any]]:
        """The groups in which these configs train, in a fixed order. Each config is in exactly one."""

    @abc.abstractmethod
    def trainer(self, configs: Sequence[Any], device: str) -> Trainer:
        """A trainer for one group, at step 0."""

    @abc.abstractmethod
    def label(self, configs: Sequence[Any]) -> str:
        """A few words for a group, for people."""

    def sources(self, config: Any) -> dict[str, Path]:
        """The files at hand that a run of this config is trained on; none where it makes its data, or they are not there."""
        return {}

    def run(self, config: Any, root: Path) -> Run:
        return Run(root, self.name, self.version, config)
