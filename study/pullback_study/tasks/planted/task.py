"""Planted structures as a task."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pullback_study.tasks import Method, Metric, ReplicaTask
from pullback_study.tasks.schema import EstimatorConfig, option

PLANTED = ("tree", "chain", "segmentation", "subset", "alignment", "binary-tree")
SELECTIONS = ("xor", "orange-skin", "additive", "switch")
_BASELINES = {"bag": "Bag of parts", "planted-scorer": "Planted scorer", "gold": "Gold structure"}


@dataclass(frozen=True)
class Config(EstimatorConfig):
    """One run."""

    structure: str = option(
        "tree", help="The latent structure; the last four are the feature selections of L2X.", choices=(*PLANTED, *SELECTIONS)
    )
    n: int = option(6, help="Words or items; L2X always has 10 features.", least=2)
    noise: float = option(0.0, help="Standard deviation of the noise on the features that the model sees.", least=0)
    share: float = option(1.0, help="How much of the label needs the structure, from 0 to 1.", least=0)
    temperature: float | None = option(
        None, help="Of the noise of perturbed estimators.", shown="the estimator's", positive=True
    )
    samples: int | None = option(
        None, help="Structures per example of an estimator that draws several.", shown="its own", least=1
    )
    steps: int = option(1000, help="Updates.", least=1)
    batch_size: int = option(64, help="Examples per update.", least=1)
    evaluate_every: int = option(100, help="Steps between evaluations.", least=1)
    features: int = option(4, help="Features of a word or item.", least=1)
    train_examples: int = option(2048, help="Training examples.", least=1)
    validation_examples: int = option(500, help="Validation examples.", least=1)
    test_examples: int = option(1000, help="Test examples.", least=1)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.share > 1:
            raise ValueError(f"share is {self.share:g}; it must be at most 1")
        if self.batch_size > self.train_examples:
            raise ValueError(f"batch_size is {self.batch_size}; it must be at most train_examples, {self.train_examples}")
        if self.structure in SELECTIONS:
            usual = {field.name: field.default for field in self.__dataclass_fields__.values()}
            for name in ("n", "noise", "share", "features"):
                if (value := getattr(self, name)) != usual[name]:
                    raise ValueError(f"{name} is {value:g}; {self.structure} is fixed by its definition: leave it out")


class PlantedTask(ReplicaTask):
    """Structures with a planted scorer; seeds, learning rates and step sizes train together as replicas."""

    def defaults(self, method: Method) -> dict[str, Any]:
        missing = {name: None for name in ("temperature", "samples") if name not in method.accepted}
        return {**super().defaults(method), "learning_rate": 0.01, **missing}

    def order(self, config: Config) -> tuple[float, ...]:
        noise, share, *others = super().order(config)
        return noise, -share, *others


TASK = PlantedTask(
    name="planted",
    title="Planted structures",
    about=f"A planted scorer's best structure decides the label: {', '.join(PLANTED)}; and the selections of L2X.",
    config_type=Config,
    baselines=tuple(Method(name, label, "Baselines") for name, label in _BASELINES.items()),
    four_samples=True,
    trained_by="pullback_study.tasks.planted.train:PlantedReplicas",
    varied=("noise", "share", "seed", "learning_rate", "step_size"),
    most=320,
    metrics=(
        Metric("validation_accuracy", "Validation accuracy", curve="accuracy"),
        Metric("validation_recovery", "Validation recovery", curve="recovery", headline=False),
        Metric("test_accuracy", "Test accuracy"),
        Metric("test_recovery", "Recovery"),
        Metric("test_exact", "Whole structures", headline=False),
        Metric("step_ms", "Milliseconds per step", headline=False, digits=3),
    ),
    tables_by=("structure", "n", "noise", "share"),
)
