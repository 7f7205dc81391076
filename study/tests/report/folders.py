"""Folders of runs that were never trained, for the report to read."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from pullback_study.report.trees import write_trees
from pullback_study.synthetic.config import Config
from pullback_study.synthetic.plans import steps_cell, table_cell
from pullback_study.synthetic.study import Synthetic
from pullback_study.trees.paper import SENTENCES

NASTY = "<script>alert('x')</script> </script> <!-- \" & \u2028 ]]>"
"""What would break a page that does not escape its data."""

WORLD = {"linear": (60.0, 0.0), "gold": (90.0, 100.0), "marginals": (89.0, 70.0), "spigot": (70.0, 25.0)}
"""Accuracy and V-measure of the rows that are done, at seed 0; seed i has i more accuracy."""


def publish(root: Path, config: Config, accuracy: float, v_measure: float) -> str:
    """A finished run with ten evaluations; returns its hash."""
    run = Synthetic().run(config, root)
    run.start()
    steps = [config.steps * i // 10 for i in range(1, 11)]
    run.write_metrics(
        {"step": step, "accuracy": accuracy - 10 + i, "v_measure": v_measure} for i, step in enumerate(steps, 1)
    )
    numbers = {"accuracy": accuracy + config.seed, "v_measure": v_measure}
    result: dict[str, Any] = {f"{split}_{name}": value for split in ("validation", "test") for name, value in numbers.items()}
    run.publish({**result, "decoder_calls": config.inner_steps or 1, "device": "a test", "torch": "0"})
    return run.hash


def small_study(root: Path) -> None:
    """Some rows of the table at the paper's best settings, one method of the figure on steps, and one run under way."""
    for name, (accuracy, v_measure) in WORLD.items():
        for clusters in (3, 10):
            for config in table_cell(name, clusters, grid=False).configs:
                publish(root, config, accuracy, v_measure)
    for k in range(1, 11):
        for config in steps_cell("ste-i", k).configs:
            if not Synthetic().run(config, root).done:
                publish(root, config, 80 + k, 90)
    going = Synthetic().run(table_cell("spigot-ce", 10, grid=False).configs[0], root)
    going.start()
    going.write_metrics([{"step": 100, "accuracy": 55.5, "v_measure": 44.4}])


def text_run(root: Path, name: str, estimator: str, sentences: Sequence[str], *, mu: Any = None, **more: Any) -> Path:
    """A finished run on text with a right-branching tree for each sentence (and weights `mu(n)`)."""
    path = root / name
    path.mkdir(parents=True)
    identity = {"study": "text", "version": 1, "config": {"task": "sst", "estimator": estimator, "seed": 0, **more}}
    (path / "config.json").write_text(json.dumps(identity))
    (path / "result.json").write_text(json.dumps({"validation_accuracy": 80.0, "test_accuracy": 81.0}))
    analyses = []
    for sentence in sentences:
        tokens = sentence.split(" ")
        weights = None if mu is None else mu(len(tokens))
        analyses.append(SimpleNamespace(tokens=tokens, heads=range(len(tokens)), mu=weights, label="positive"))
    write_trees(path, analyses)
    return path


def halves(n: int) -> list[list[float]]:
    """Each word hangs on the root with weight one half, and on its neighbour with the other."""
    mu = [[0.0] * n for _ in range(n)]
    for word in range(n):
        mu[word][word] = 0.5
        mu[word - 1 if word else min(1, n - 1)][word] += 0.5
    return mu


def failed_run(root: Path, name: str, message: str) -> None:
    path = root / name
    path.mkdir(parents=True)
    identity = {"study": "synthetic", "version": 1, "config": {"estimator": NASTY, "seed": 0}}
    (path / "config.json").write_text(json.dumps(identity))
    (path / "error.json").write_text(json.dumps({"error": message}))


def whole_folder(root: Path) -> Path:
    """A bit of everything, the hostile included."""
    small_study(root)
    sentences = [*map(" ".join, SENTENCES), NASTY, "Fun ."]
    text_run(root, "a" * 16, "spigot-ce", sentences)
    text_run(root, "b" * 16, "marginals", sentences, mu=halves)
    failed_run(root, "f" * 16, NASTY)
    return root
