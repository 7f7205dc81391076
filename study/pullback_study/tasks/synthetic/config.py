"""The config of a run on synthetic clusters."""

from __future__ import annotations

from dataclasses import dataclass

from pullback_study.tasks.config import EstimatorConfig
from pullback_study.tasks.schema import option

LEARNING_RATES = (0.0001, 0.001, 0.002)
STEP_SIZES = (0.1, 1.0, 2.0)


@dataclass(frozen=True)
class Config(EstimatorConfig):
    """One run."""

    clusters: int = option(10, help="K.", least=2)
    gamma_scale: str | None = option(
        None,
        help="What a step size is multiplied with. `paper`: the gradient of the mean loss over the training set, and the "
        "surrogate used as it is; `example`: the gradient of one example's loss.",
        shown="paper",
        choices=("paper", "example"),
    )
    steps: int = option(10_000, help="Updates, each on the whole training set.", least=1)
    evaluate_every: int = option(100, help="Steps between evaluations.", least=1)
    dtype: str = option("float32", help="Precision.", choices=("float32", "float64"))
    features: int = option(100, help="D, the size of an input.", least=1)
    train_examples: int = option(5000, help="Training examples.", least=1)
    validation_examples: int = option(1000, help="Validation examples.", least=1)
    test_examples: int = option(1000, help="Test examples.", least=1)
