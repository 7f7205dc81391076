"""Tasks whose runs train in batches, each by itself, on any data, model and structure (`problem.py`)."""

from __future__ import annotations

import abc
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pullback_study.tasks import Task
from pullback_study.tasks.schema import EstimatorConfig, option

if TYPE_CHECKING:
    from pullback.estimators import Estimator
    from pullback_study.tasks.latent.problem import Problem


@dataclass(frozen=True)
class LatentConfig(EstimatorConfig):
    """One run."""

    epochs: int = option(10, help="Passes over the training data.", least=1)
    patience: int | None = option(
        None, help="Stop after this many epochs without a better validation score.", shown="never", least=1
    )
    frozen_after: int | None = option(
        None,
        help="After this many epochs with one inner step, freeze the best model but for its scorer, and train that anew.",
        shown="never",
        least=1,
    )
    train_examples: int | None = option(None, help="Use only this many training examples.", shown="all", least=1)
    batch_size: int = option(32, help="Examples per batch.", least=1)
    weight_decay: float = option(0.0, help="The weight decay of AdamW.", least=0)


@dataclass(frozen=True, kw_only=True)
class LatentTask(Task):
    """A task that is described by a `Problem`; every estimator of the library can train it."""

    config_type: type = LatentConfig
    trained_by: str = "pullback_study.tasks.latent.trainer:LatentTrainer"

    @abc.abstractmethod
    def problem(self, config: Any) -> Problem:
        """Data and a model with fresh parameters, on the CPU. PyTorch's default generator is seeded by the config."""

    def estimator(self, config: Any) -> Estimator | None:
        """The estimator of a config; None for a baseline."""
        return self.methods[config.estimator].build(step_size=config.step_size, steps=config.inner_steps)
