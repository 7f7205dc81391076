"""The config of a run on text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pullback.estimators.config import nearest
from pullback_study.settings import check_at_least, check_estimator, check_one_of, check_positive
from pullback_study.text.methods import find_method
from pullback_study.text.tasks import find_task

VECTORS = "googlenews_mapped.300d"


@dataclass(frozen=True)
class Config:
    """One run. `configure` fills in the paper's settings.

    Args:
        task: `sst` or `snli`.
        estimator: the name of a row: an estimator, or `baseline`.
        seed: of the initialisation, the order of the examples and the noise.
        learning_rate: AdamW's.
        step_size: eta of the pulled-back estimators, None for the others (so that equal runs have equal hashes).
        inner_steps: k of the pulled-back estimators, None for the others.
        gamma_scale: what a step size is multiplied with. `example`: the gradient of one example's loss. `paper`: the
            gradient of the loss averaged over S numbers, as the paper's code had it (S = 16 for SST, 64 for SNLI): inner
            steps of eta / S, and the surrogate not divided by S once more. None for the other estimators.
        projection: what inner steps of SPIGOT and SPIGOT-CE are projected onto. `exact`: the marginal polytope, by SparseMAP.
            `local`: the local polytope, which contains it. None for the other estimators.
        projective: trees without crossing arcs; None for the baseline. Several words may attach to the root.
        data: the name of the training data: a part of SNLI is another one than the whole.
        vectors: the name of the word vectors; they stay fixed.
        epochs: passes over the training data; the model is the one of the epoch with the best validation accuracy.
        patience: stop after this many epochs without a better validation accuracy; None: never.
        train_examples: only the first so many; None: all.
        batch_size: examples.
        weight_decay: AdamW's.
        dtype: `float32` or `float64`.
    """

    task: str
    estimator: str
    seed: int
    learning_rate: float
    step_size: float | None
    inner_steps: int | None
    gamma_scale: str | None
    projection: str | None
    projective: bool | None
    data: str
    vectors: str
    epochs: int
    patience: int | None
    train_examples: int | None
    batch_size: int
    weight_decay: float
    dtype: str

    def __post_init__(self) -> None:
        find_task(self.task)
        method = find_method(self.estimator)
        check_estimator(self, method)
        if method.projects == (self.projection is None):
            raise ValueError(f"projection is {self.projection!r}; {self.estimator} {_about_projection(method.projects)}")
        if self.projection is not None:
            check_one_of("projection", self.projection, ("exact", "local"))
        if method.latent == (self.projective is None):
            raise ValueError(f"projective is {self.projective}; {self.estimator} {_about_trees(method.latent)}")
        check_one_of("dtype", self.dtype, ("float32", "float64"))
        check_positive(self, "learning_rate", "step_size")
        if self.weight_decay < 0:
            raise ValueError(f"weight_decay is {self.weight_decay}; it must not be negative")
        check_at_least(self, 0, "seed")
        check_at_least(self, 1, "inner_steps", "epochs", "patience", "train_examples", "batch_size")

    @property
    def gamma_divisor(self) -> int:
        """S: an inner step is eta / S on the gradient of one example's loss."""
        return find_task(self.task).averaged_over if self.gamma_scale == "paper" else 1


def configure(task: str, estimator: str, *, seed: int = 0, **options: Any) -> Config:
    """A config with the paper's best settings for whatever is not given (or None).

    >>> configure("sst", "spigot-ce", seed=3).step_size
    0.1
    >>> configure("snli", "marginals").projective
    False
    """
    about, method = find_task(task), find_method(estimator)
    rate, size = method.settings.get(task, (1e-4, None))
    values: dict[str, Any] = {
        "learning_rate": rate,
        "step_size": (size or 1.0) if method.pulled_back else None,
        "inner_steps": 1 if method.pulled_back else None,
        "gamma_scale": "paper" if method.pulled_back else None,
        "projection": method.projection,
        "projective": about.projective if method.latent else None,
        "data": about.name,
        "vectors": VECTORS,
        "epochs": 40,
        "patience": None,
        "train_examples": None,
        "batch_size": about.batch_size,
        "weight_decay": about.weight_decay,
        "dtype": "float32",
    }
    for name, value in options.items():
        if name not in values:
            raise ValueError(f"a config has no field {name!r}; {nearest(name, list(values))}")
        if value is not None:
            values[name] = value
    return Config(task=about.name, estimator=method.name, seed=seed, **values)


def _about_projection(projects: bool) -> str:
    return "projects its inner steps: say onto what, exact or local" if projects else "projects nothing: leave it out"


def _about_trees(latent: bool) -> str:
    return "has trees: say whether they are projective" if latent else "has no trees: leave it out"
