"""Planted structures as a task."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pullback_study.tasks.methods import Method, registered
from pullback_study.tasks.planted.config import PLANTED, Config
from pullback_study.tasks.task import Metric, ReplicaTask

BASELINES = (
    Method("bag", "Bag of parts", "Baselines", defaults={"learning_rate": 0.01}),
    Method("planted-scorer", "Planted scorer", "Baselines", defaults={"learning_rate": 0.01}),
    Method("gold", "Gold structure", "Baselines", defaults={"learning_rate": 0.01}),
)


class PlantedTask(ReplicaTask):
    """Structures with a planted scorer; seeds, learning rates and step sizes train together as replicas."""

    @property
    def methods(self) -> Mapping[str, Method]:
        from pullback_study.tasks.blended import BLENDED

        return {method.name: method for method in (*BASELINES, *registered({}, in_paper=lambda name: False), BLENDED)}

    def defaults(self, method: Method) -> dict[str, Any]:
        return {**super().defaults(method), "learning_rate": 0.01}

    def order(self, config: Config) -> tuple[float, ...]:
        noise, share, *others = super().order(config)
        return noise, -share, *others


TASK = PlantedTask(
    name="planted",
    title="Planted structures",
    about=f"A planted scorer's best structure decides the label: {', '.join(PLANTED)}; and the selections of L2X.",
    config_type=Config,
    replicas="pullback_study.tasks.planted.train:PlantedReplicas",
    varied=("noise", "share", "seed", "learning_rate", "step_size"),
    most=320,
    metrics=(
        Metric("validation_accuracy", "Validation accuracy", curve="accuracy"),
        Metric("validation_recovery", "Validation recovery", curve="recovery", headline=False),
        Metric("test_accuracy", "Test accuracy"),
        Metric("test_recovery", "Recovery"),
        Metric("test_exact", "Whole structures", headline=False),
        Metric("step_ms", "Milliseconds per step", percent=False, higher_is_better=False, headline=False, digits=3),
    ),
    tables_by=("structure", "n", "noise", "share"),
)
