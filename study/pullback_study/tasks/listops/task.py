"""ListOps as a task."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from pullback_study.tasks.listops.config import Config
from pullback_study.tasks.methods import Method
from pullback_study.tasks.task import Metric, Task, Trainer

_REPLICAS = 16
"""How many runs train together at most."""


class ListOps(Task):
    """Nested operations on digits; seeds, learning rates and step sizes of one method train together as replicas."""

    @property
    def methods(self) -> Mapping[str, Method]:
        from pullback_study.tasks.listops.methods import methods

        return methods()

    def defaults(self, method: Method) -> dict[str, Any]:
        return super().defaults(method) | ({"projection": "local"} if method.name == "spigot-ce" else {})

    def validate(self, config: Config, method: Method) -> None:
        super().validate(config, method)
        if config.projection is not None and method.name != "spigot-ce":
            raise ValueError(f"projection is {config.projection!r}; only spigot-ce has a choice: leave it out")
        shortest = 4 + 3 * (config.depth - 1)
        if config.tokens < shortest:
            raise ValueError(f"tokens is {config.tokens}; an expression of depth {config.depth} has at least {shortest}")
        if config.dropout >= 1:
            raise ValueError(f"dropout is {config.dropout}; it must be below 1")

    def partition(self, configs: Sequence[Config]) -> list[list[Config]]:
        """Replica groups: all that differs in seed, learning rate and step size only."""
        groups: dict[Config, list[Config]] = defaultdict(list)
        for config in configs:
            size = None if config.step_size is None else 1.0
            groups[dataclasses.replace(config, seed=0, learning_rate=1.0, step_size=size)].append(config)
        found = []
        for group in groups.values():
            ordered = sorted(group, key=lambda each: (each.seed, each.learning_rate or 0.0, each.step_size or 0.0))
            found += [ordered[i : i + _REPLICAS] for i in range(0, len(ordered), _REPLICAS)]
        return found

    def trainer(self, configs: Sequence[Config], device: str) -> Trainer:
        from pullback_study.tasks.listops.train import ReplicaGroup

        return ReplicaGroup(configs, device)

    def label(self, configs: Sequence[Config]) -> str:
        runs = f", {len(configs)} runs" if len(configs) > 1 else f", seed {configs[0].seed}"
        return f"{self.title}, {self.methods[configs[0].estimator].label}{runs}"


TASK = ListOps(
    name="listops",
    title="ListOps",
    about="Nested operations on digits; the latent dependency tree is known.",
    config_type=Config,
    metrics=(
        Metric("validation_accuracy", "Validation accuracy", curve="accuracy"),
        Metric("validation_attachment", "Validation attachment", curve="attachment", headline=False),
        Metric("test_accuracy", "Test accuracy"),
        Metric("test_attachment", "Attachment"),
        Metric("test_attachment_open", "Without closing brackets"),
        Metric("test_precision", "Edge precision"),
        Metric("test_recall", "Edge recall"),
        Metric("depth_8_accuracy", "Accuracy, depth 8"),
        Metric("depth_8_attachment", "Attachment, depth 8", headline=False),
        Metric("depth_10_accuracy", "Accuracy, depth 10"),
        Metric("depth_10_attachment", "Attachment, depth 10", headline=False),
        Metric("loss", "Loss", curve="loss", percent=False, higher_is_better=False, headline=False, digits=4),
    ),
)
