"""The config of a run of the synthetic study."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pullback.estimators.config import nearest
from pullback.experiments.synthetic.methods import find_method

GAMMA_SCALES = ("paper", "example")
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
        if self.estimator != method.name:
            raise ValueError(f"estimator is {self.estimator!r}, another name of {method.name!r}; use `configure`")
        pulled = (self.step_size, self.inner_steps, self.gamma_scale)
        if method.pulled_back and None in pulled:
            raise ValueError(f"{self.estimator} needs a step size, inner steps and a scale of gamma; got {pulled}")
        if not method.pulled_back and pulled != (None, None, None):
            raise ValueError(
                f"{self.estimator} makes no inner steps: it has no step size, number of inner steps or scale of gamma; "
                f"got {pulled}"
            )
        if self.gamma_scale is not None:
            _one_of("gamma_scale", self.gamma_scale, GAMMA_SCALES)
        _one_of("dtype", self.dtype, ("float32", "float64"))
        for name in ("learning_rate", "step_size"):
            if (value := getattr(self, name)) is not None and not value > 0:
                raise ValueError(f"{name} is {value}; it must be positive")
        counts = ("inner_steps", "steps", "evaluate_every", "features")
        for name in (*counts, "train_examples", "validation_examples", "test_examples"):
            _at_least(name, getattr(self, name), 1)
        _at_least("clusters", self.clusters, 2)


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


def _one_of(field: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise ValueError(f"{field} is {value!r}; {nearest(value, list(choices))}")


def _at_least(field: str, value: int | None, least: int) -> None:
    if value is not None and value < least:
        raise ValueError(f"{field} is {value}; it must be at least {least}")
