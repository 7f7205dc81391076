"""The config of a run of the synthetic study."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pullback_study.settings import check_at_least, check_estimator, check_one_of, check_positive
from pullback_study.synthetic.methods import find_method

LEARNING_RATES = (0.0001, 0.001, 0.002)
STEP_SIZES = (0.1, 1.0, 2.0)


@dataclass(frozen=True)
class Config:
    """One run. `configure` fills in the paper's settings.

    Args:
        estimator: the name of a row: an estimator, or one of the baselines `linear` and `gold`.
        clusters: K.
        seed: of the data, the initialisation and the noise.
        learning_rate: Adam's.
        step_size: eta of the pulled-back estimators, None for the others (so that equal runs have equal hashes).
        inner_steps: k of the pulled-back estimators, None for the others.
        gamma_scale: what a step size is multiplied with. `paper`: the gradient of the loss averaged over the
            training set, that is inner steps of eta / n, the surrogate then used as it is. `example`: the gradient of
            one example's loss. None for the other estimators.
        steps: full-batch updates.
        evaluate_every: steps between two evaluations on the validation set.
        dtype: `float32` or `float64`.
        features: D.
        train_examples: n.
        validation_examples: drawn in one pool with the training examples.
        test_examples: from the same centers, models and thresholds.
    """

    estimator: str
    clusters: int
    seed: int
    learning_rate: float
    step_size: float | None
    inner_steps: int | None
    gamma_scale: str | None
    steps: int = 10_000
    evaluate_every: int = 100
    dtype: str = "float32"
    features: int = 100
    train_examples: int = 5000
    validation_examples: int = 1000
    test_examples: int = 1000

    def __post_init__(self) -> None:
        method = find_method(self.estimator)
        check_estimator(self, method)
        check_one_of("dtype", self.dtype, ("float32", "float64"))
        check_positive(self, "learning_rate", "step_size")
        check_at_least(self, 0, "seed")
        check_at_least(self, 1, "inner_steps", "steps", "evaluate_every", "features")
        check_at_least(self, 1, "train_examples", "validation_examples", "test_examples")
        check_at_least(self, 2, "clusters")


def configure(estimator: str, *, clusters: int = 10, seed: int = 0, **options: Any) -> Config:
    """A config with the paper's best settings for whatever is not given.

    >>> configure("spigot-ce", seed=3).step_size
    0.1
    >>> configure("softmax").estimator
    'marginals'
    """
    method = find_method(estimator)
    given = {name: value for name, value in options.items() if value is not None}
    defaults: dict[str, Any] = {"learning_rate": method.learning_rate or 0.001}
    if method.pulled_back:
        defaults |= {"step_size": method.step_size or 1.0, "inner_steps": 1, "gamma_scale": "paper"}
    else:
        defaults |= {"step_size": None, "inner_steps": None, "gamma_scale": None}
    return Config(**{"estimator": method.name, "clusters": clusters, "seed": seed, **defaults, **given})
