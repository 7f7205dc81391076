"""The fields that configs of all tasks share."""

from __future__ import annotations

from dataclasses import dataclass

from pullback_study.tasks.schema import check, option


@dataclass(frozen=True)
class EstimatorConfig:
    """A method, a seed, and the settings that every table searches over. `Task.configure` fills in what is not given.

    Fields that do not apply to the method are None, so that equal runs have equal identities.
    """

    estimator: str = option("", help="An estimator or a baseline; `pullback estimators` lists them.", shown="")
    seed: int = option(0, help="The seed of data, initialisation and noise.", least=0)
    learning_rate: float | None = option(
        None, help="The learning rate of Adam.", shown="the best known for the estimator", positive=True
    )
    step_size: float | None = option(
        None, help="The step size eta of the inner steps.", shown="the best known for the estimator", positive=True
    )
    inner_steps: int | None = option(None, help="The number k of inner steps.", shown="1", least=1)

    def __post_init__(self) -> None:
        check(self)
