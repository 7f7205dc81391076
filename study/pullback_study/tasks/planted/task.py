"""Planted structures as a task."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from pullback_study.tasks.methods import Method, registered
from pullback_study.tasks.planted.config import PLANTED, SELECTIONS, Config, common
from pullback_study.tasks.task import Metric, Task, Trainer

BASELINES = (
    Method("bag", "Bag of parts", "Baselines", defaults={"learning_rate": 0.01}),
    Method("planted-scorer", "Planted scorer", "Baselines", defaults={"learning_rate": 0.01}),
    Method("gold", "Gold structure", "Baselines", defaults={"learning_rate": 0.01}),
)

_REPLICAS = 320  # of a group


class PlantedTask(Task):
    """Structures with a planted scorer; seeds, learning rates and step sizes train together as replicas."""

    @property
    def methods(self) -> Mapping[str, Method]:
        from pullback_study.tasks.planted.blended import Blended

        ours = Method("blended", "Blended", "Argmax", Blended, stochastic=True, decoder_calls=lambda steps: 2)
        return {method.name: method for method in (*BASELINES, *registered({}, in_paper=lambda name: False), ours)}

    def defaults(self, method: Method) -> dict[str, Any]:
        return {**super().defaults(method), "learning_rate": 0.01}

    def partition(self, configs: Sequence[Config]) -> list[list[Config]]:
        """Replica groups: all that differs in seed, learning rate, step size, noise and share only, of a limited size."""
        groups: dict[Config, list[Config]] = defaultdict(list)
        for config in configs:
            groups[common(config)].append(config)
        found = []
        for group in groups.values():
            ordered = sorted(group, key=_order)
            found += [ordered[i : i + _REPLICAS] for i in range(0, len(ordered), _REPLICAS)]
        return found

    def trainer(self, configs: Sequence[Config], device: str) -> Trainer:
        from pullback_study.tasks.planted.train import Replicas

        return Replicas(configs, self.methods[configs[0].estimator], device)

    def label(self, configs: Sequence[Config]) -> str:
        first, settings = configs[0], {(config.noise, config.share) for config in configs}
        knobs = f"{len(settings)} settings" if len(settings) > 1 else f"noise {first.noise:g}, share {first.share:g}"
        setting = "" if first.structure in SELECTIONS else f", n = {first.n}, {knobs}"
        return f"{self.methods[first.estimator].label}, {first.structure}{setting}"


def _order(config: Config) -> tuple[float, ...]:
    return config.noise, -config.share, config.seed, config.learning_rate or 0.0, config.step_size or 0.0


TASK = PlantedTask(
    name="planted",
    title="Planted structures",
    about=f"A planted scorer's best structure decides the label: {', '.join(PLANTED)}; and the selections of L2X.",
    config_type=Config,
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
