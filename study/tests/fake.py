"""A study that trains in no time: what the tests of sweeps are about is everything around the training."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass

import torch

from pullback_study.study import Study, Trainer


@dataclass(frozen=True)
class Config:
    name: str
    seed: int = 0
    rate: float = 0.5
    steps: int = 50
    pause: float = 0.0
    trouble: str | None = None
    members: int = 1

    def __post_init__(self):
        if not self.rate > 0:
            raise ValueError(f"rate is {self.rate}; it must be positive")


class FakeTrainer(Trainer):
    """x <- cos(x + rate * seed), step by step: the last digits tell whether a step was left out or done twice."""

    def __init__(self, configs):
        self.configs = configs
        self.step, self.steps = 0, configs[0].steps
        self.x = torch.tensor([float(len(config.name)) for config in configs], dtype=torch.float64)
        self.rows = []

    def advance(self, until, stop):
        push = torch.tensor([c.rate * (c.seed + 1) for c in self.configs], dtype=torch.float64)
        while self.step < until and not stop():
            if self.configs[0].trouble:
                raise RuntimeError(self.configs[0].trouble)
            time.sleep(self.configs[0].pause + float(os.environ.get("FAKE_PAUSE", "0")))
            self.x = torch.cos(self.x + push)
            self.step += 1
            if self.step % 10 == 0:
                self.rows.append(self.x.tolist())

    def state(self):
        return {"step": self.step, "x": self.x, "rows": self.rows}

    def restore(self, state):
        self.step, self.x, self.rows = state["step"], state["x"], [list(row) for row in state["rows"]]

    def history(self):
        return [
            [{"step": 10 * (i + 1), "x": row[r]} for i, row in enumerate(self.rows)] for r in range(len(self.configs))
        ]

    def latest(self):
        return [rows[-1] for rows in self.history()] if self.rows else []

    def results(self):
        return [{"validation_accuracy": x, "test_accuracy": -x} for x in self.x.tolist()]

    def parameters(self):
        return [{"x": x.clone()} for x in self.x]


class Fake(Study):
    name = "fake"
    version = 1
    config_type = Config

    def partition(self, configs):
        """Groups of up to `members` runs."""
        configs = sorted(configs, key=lambda config: (config.name, config.seed, config.rate))
        size = configs[0].members if configs else 1
        return [configs[i : i + size] for i in range(0, len(configs), size)]

    def trainer(self, configs, device):
        return FakeTrainer(configs)

    def label(self, configs):
        return f"{configs[0].name} {', '.join(str(config.seed) for config in configs)}"
