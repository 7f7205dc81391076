"""A task whose runs train in batches, each by itself."""

from __future__ import annotations

import abc
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pullback_study.tasks.latent.config import LatentConfig
from pullback_study.tasks.methods import Method, registered
from pullback_study.tasks.task import Task, Trainer

if TYPE_CHECKING:
    from pullback.estimators import Estimator
    from pullback_study.tasks.latent.problem import Problem


@dataclass(frozen=True, kw_only=True)
class LatentTask(Task):
    """A task that is described by a `Problem`; every estimator of the library can train it.

    Args:
        baselines: methods without a latent structure; the problem gets their name in its config.
    """

    config_type: type = LatentConfig
    baselines: tuple[Method, ...] = ()

    @abc.abstractmethod
    def problem(self, config: Any) -> Problem:
        """Data and a model with fresh parameters, on the CPU. PyTorch's default generator is seeded by the config."""

    @property
    def methods(self) -> Mapping[str, Method]:
        return {method.name: method for method in (*self.baselines, *registered({}, in_paper=lambda name: False))}

    def estimator(self, config: Any) -> Estimator | None:
        """The estimator of a config; None for a baseline."""
        return self.methods[config.estimator].build(step_size=config.step_size, steps=config.inner_steps)

    def trainer(self, configs: Sequence[Any], device: str) -> Trainer:
        from pullback_study.tasks.latent.trainer import LatentTrainer

        (config,) = configs
        return LatentTrainer(self, config, device)
