"""The synthetic study as the runner sees it."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Sequence
from typing import ClassVar

from pullback_study.study import Study, Trainer
from pullback_study.synthetic.config import Config
from pullback_study.synthetic.methods import find_method


class Synthetic(Study):
    name: ClassVar[str] = "synthetic"
    version: ClassVar[int] = 1
    config_type: ClassVar[type] = Config
    test_metrics: ClassVar[tuple[str, ...]] = ("test_accuracy", "test_v_measure")

    def partition(self, configs: Sequence[Config]) -> list[list[Config]]:
        """Replica groups: all that differs in seed, learning rate and step size only, with the same seeds for each."""
        seeds: dict[tuple[Config, float, float | None], set[int]] = defaultdict(set)
        for config in configs:
            size = None if config.step_size is None else 1.0
            shared = dataclasses.replace(config, seed=0, learning_rate=1.0, step_size=size)
            seeds[shared, config.learning_rate, config.step_size].add(config.seed)
        groups: dict[tuple[Config, tuple[int, ...]], list[tuple[float, float | None]]] = defaultdict(list)
        for (shared, *setting), which in seeds.items():
            groups[shared, tuple(sorted(which))].append(tuple(setting))  # type: ignore[arg-type]
        return [
            [
                dataclasses.replace(shared, seed=seed, learning_rate=rate, step_size=size)
                for seed in which
                for rate, size in sorted(settings, key=lambda setting: (setting[0], setting[1] or 0.0))
            ]
            for (shared, which), settings in groups.items()
        ]

    def trainer(self, configs: Sequence[Config], device: str) -> Trainer:
        from pullback_study.synthetic.train import ReplicaGroup

        return ReplicaGroup(configs, device)

    def label(self, configs: Sequence[Config]) -> str:
        first = configs[0]
        inner = f", {first.inner_steps} inner steps" if (first.inner_steps or 1) > 1 else ""
        scale = f", gamma of one {first.gamma_scale}" if first.gamma_scale == "example" else ""
        return f"{find_method(first.estimator).row}, {first.clusters} clusters{inner}{scale}"
