"""A task that trains in no time: what the tests of runs are about is everything around the training."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path

import torch

from pullback_study.runs import read_run
from pullback_study.runs.progress import Report
from pullback_study.tasks import Method, Metric, Task, Trainer
from pullback_study.tasks.schema import EstimatorConfig, option

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Config(EstimatorConfig):
    estimator: str = option("fake", help="The only one.")
    name: str = option("", help="A word.")
    rate: float = option(0.5, help="A number.", positive=True)
    steps: int = option(50, help="How many.", least=1)
    pause: float = option(0.0, help="Seconds for each step.")
    trouble: str | None = option(None, help="An error.")
    members: int = option(1, help="Runs in a group.", least=1)


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
        return [[{"step": 10 * (i + 1), "x": row[r]} for i, row in enumerate(self.rows)] for r in range(len(self.configs))]

    def results(self):
        return [{"validation_accuracy": x, "test_accuracy": -x} for x in self.x.tolist()]

    def parameters(self):
        return [{"x": x.clone()} for x in self.x]


class Fake(Task):
    @property
    def methods(self):
        return {"fake": Method("fake", "Fake", "Argmax")}

    def partition(self, configs):
        """Groups of up to `members` runs."""
        configs = sorted(configs, key=lambda config: (config.name, config.seed, config.rate))
        size = configs[0].members if configs else 1
        return [configs[i : i + size] for i in range(0, len(configs), size)]

    def trainer(self, configs, device):
        return FakeTrainer(configs)

    def label(self, configs):
        return f"{configs[0].name} {', '.join(str(config.seed) for config in configs)}"


METRICS = (Metric("validation_accuracy", "Validation accuracy", curve="x"), Metric("test_accuracy", "Test accuracy"))
FAKE = Fake(name="fake", title="Fake", config_type=Config, metrics=METRICS)


class Recorder(Report):
    """Keeps what it is told."""

    def __init__(self):
        self.planned, self.begun, self.said, self.ended = [], {}, [], []

    def plan(self, groups):
        self.planned += groups

    def at(self, group, event):
        if event.steps:
            self.begun.setdefault(group, event.step)

    def end(self, group, status, message):
        if status == "again":
            self.said.append(message)
        else:
            self.ended.append((status, message))


def numbers(configs, folder):
    """For each config its curve and its numbers, whoever has trained it."""
    found = []
    for config in configs:
        run = FAKE.run(config, folder)
        found.append((read_run(run.path).curve(), run.result["validation_accuracy"], run.result["test_accuracy"]))
        parameters = torch.load(run.path / "checkpoint.pt", weights_only=True)
        assert parameters["x"] == run.result["validation_accuracy"]
        assert {path.name for path in run.path.iterdir()} == {"config.json", "metrics.jsonl", "result.json", "checkpoint.pt"}
    return found
