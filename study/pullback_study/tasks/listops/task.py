"""ListOps as a task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pullback_study.tasks.listops.config import Config
from pullback_study.tasks.methods import Method
from pullback_study.tasks.task import Metric, ReplicaTask


class ListOps(ReplicaTask):
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

    def label(self, configs: Sequence[Config]) -> str:
        runs = f", {len(configs)} runs" if len(configs) > 1 else f", seed {configs[0].seed}"
        return f"{self.title}, {self.methods[configs[0].estimator].label}{runs}"


TASK = ListOps(
    name="listops",
    title="ListOps",
    about="Nested operations on digits; the latent dependency tree is known.",
    config_type=Config,
    replicas="pullback_study.tasks.listops.train:ListOpsReplicas",
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
