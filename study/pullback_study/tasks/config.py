"""The fields that configs of all tasks share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pullback_study.tasks.methods import Method
from pullback_study.tasks.schema import check, option


@dataclass(frozen=True)
class EstimatorConfig:
    """A method, a seed, and the settings that every table searches over. `Task.configure` fills in what is not given.

    Fields that do not apply to the method are None, so that equal runs have equal identities.
    """

    estimator: str = option("", help="An estimator or a baseline; `pullback estimators` lists them.", shown="")
    seed: int = option(0, help="Of data, initialisation and noise.", least=0)
    learning_rate: float | None = option(None, help="Adam's.", shown="the best known for the estimator", positive=True)
    step_size: float | None = option(
        None, help="eta of the inner steps.", shown="the best known for the estimator", positive=True
    )
    inner_steps: int | None = option(None, help="k, the number of inner steps.", shown="1", least=1)

    def __post_init__(self) -> None:
        check(self)


def inner_steps(method: Method) -> dict[str, Any]:
    """The defaults of what belongs to inner steps, for the methods that make some."""
    found: dict[str, Any] = {"learning_rate": 0.001}
    if "step_size" in method.accepted:
        usual = method.accepted["step_size"].default
        found["step_size"] = float(usual) if isinstance(usual, int | float) else 1.0
    if "steps" in method.accepted:
        found["inner_steps"] = 1
    return found


def check_inner_steps(config: Any, method: Method) -> None:
    """What belongs to inner steps is there when, and only when, the method takes it."""
    for name, argument in (("step_size", "step_size"), ("inner_steps", "steps")):
        value = getattr(config, name, None)
        if value is not None and argument not in method.accepted:
            raise ValueError(f"{name} is {value}; {method.name} has none: leave it out")
