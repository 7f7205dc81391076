"""Synthetic clusters as a task."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pullback_study.tasks import Method, Metric, ReplicaTask
from pullback_study.tasks.schema import GAMMA_SCALE, EstimatorConfig, option

_NUMBERS = 1 << 25
"""How many scores a replica group has at most: a tensor of them takes 128 MiB in float32."""


@dataclass(frozen=True)
class Config(EstimatorConfig):
    """One run."""

    clusters: int = option(10, help="The number K of clusters.", least=2)
    gamma_scale: str | None = option(None, **GAMMA_SCALE)
    steps: int = option(10_000, help="Training steps, each on the whole training set.", least=1)
    evaluate_every: int = option(100, help="Steps between evaluations.", least=1)
    features: int = option(100, help="The number of features of an input.", least=1)
    train_examples: int = option(5000, help="Training examples.", least=1)
    validation_examples: int = option(1000, help="Validation examples.", least=1)
    test_examples: int = option(1000, help="Test examples.", least=1)


class Synthetic(ReplicaTask):
    """Clusters with a linear model each; seeds, learning rates and step sizes train together as replicas."""

    @property
    def methods(self) -> Mapping[str, Method]:
        from pullback_study.tasks.synthetic.train import METHODS

        return METHODS

    def partition(self, configs: Sequence[Config]) -> list[list[Config]]:
        """Replica groups: all that differs in seed, learning rate and step size only, with the same seeds for each.

        A group has at most `_NUMBERS` scores, so that its tensors fit on the device; more seeds make more groups.
        """
        seeds: dict[Config, set[int]] = defaultdict(set)
        for config in configs:
            seeds[dataclasses.replace(config, seed=0)].add(config.seed)
        groups: dict[tuple[Config, tuple[int, ...]], list[Config]] = defaultdict(list)
        for setting, which in seeds.items():
            groups[self.common(setting), tuple(sorted(which))].append(setting)
        found = []
        for (shared, ordered), settings in groups.items():
            most = max(1, _NUMBERS // (shared.train_examples * shared.clusters * len(settings)))
            settings.sort(key=self.order)
            for part in (ordered[i : i + most] for i in range(0, len(ordered), most)):
                found.append([dataclasses.replace(each, seed=seed) for seed in part for each in settings])
        return found


TASK = Synthetic(
    name="synthetic",
    title="Synthetic clusters",
    about="Clusters with a linear model each; the latent variable is the cluster.",
    version=2,
    config_type=Config,
    metrics=(
        Metric("validation_accuracy", "Validation accuracy", curve="accuracy"),
        Metric("validation_v_measure", "Validation V-measure", curve="v_measure", headline=False),
        Metric("test_accuracy", "Test accuracy"),
        Metric("test_v_measure", "Test V-measure"),
        Metric("loss", "Loss", curve="loss", headline=False, digits=4),
    ),
    tables_by=("clusters",),
    trained_by="pullback_study.tasks.synthetic.train:Clusters",
)
