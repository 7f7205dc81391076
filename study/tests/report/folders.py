"""Folders of runs that were never trained, for the report to read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pullback_study.results.paper.clusters import TASK, steps_plan, table_plan
from pullback_study.tasks import find_task

NASTY = "<script>alert('x')</script> </script> <!-- \" & \u2028 ]]> [/nope] \x1b[31m\u202e"
"""What would break a page or a terminal that does not escape its data."""
WORLD = {"linear": (60.0, 0.0), "gold": (90.0, 100.0), "marginals": (89.0, 70.0), "spigot": (70.0, 25.0)}
"""Accuracy and V-measure of the rows that are done, at seed 0; seed i has i more accuracy."""


def publish(root: Path, config: Any, accuracy: float, v_measure: float) -> str:
    """A finished run on clusters with ten evaluations; returns its id."""
    run = TASK.run(config, root)
    run.start()
    steps = [config.steps * i // 10 for i in range(1, 11)]
    run.write_curve({"step": step, "accuracy": accuracy - 10 + i, "v_measure": v_measure} for i, step in enumerate(steps, 1))
    numbers = {"accuracy": accuracy + config.seed, "v_measure": v_measure}
    result: dict[str, Any] = {f"{split}_{name}": value for split in ("validation", "test") for name, value in numbers.items()}
    run.publish({**result, "decoder_calls": config.inner_steps or 1, "device": "a test", "commit": "0" * 40})
    return run.id


def small_study(root: Path) -> None:
    """Some rows of the table at the paper's best settings, one method of the figure on steps, and one run under way."""
    for name, (accuracy, v_measure) in WORLD.items():
        for clusters in (3, 10):
            for config in table_plan(name, clusters, grid=False).configs:
                publish(root, config, accuracy, v_measure)
    for k in range(1, 11):
        for config in steps_plan("ste-i", k).configs:
            if not TASK.run(config, root).done:
                publish(root, config, 80 + k, 90)
    going = TASK.run(table_plan("spigot-ce", 10, grid=False).configs[0], root)
    going.start()
    going.write_curve([{"step": 100, "accuracy": 55.5, "v_measure": 44.4}])


def text_run(root: Path, estimator: str, **fields: Any) -> Path:
    """A finished run on SST."""
    task = find_task("sst")
    run = task.run(task.configure(estimator=estimator, **{"data": "sst", "vectors": "mine", **fields}), root)
    run.start()
    run.write_curve({"step": i, "epoch": i, "accuracy": 70.0 + i, "depth": 2.0} for i in range(1, 5))
    run.publish({"validation_accuracy": 80.0, "test_accuracy": 81.0, "test_depth": 3.0})
    return run.path


def raw_run(root: Path, name: str, config: str, **files: str) -> None:
    """A directory with given contents."""
    path = root / name
    path.mkdir(parents=True)
    (path / "config.json").write_text(config)
    for file, content in files.items():
        (path / f"{file}.json").write_text(content)


def foreign_run(root: Path, name: str, seed: int) -> None:
    """A run of a task that is not installed."""
    config = {"task": "parity", "version": 3, "config": {"estimator": "imle", "seed": seed, "bits": 8}}
    result = {"validation_accuracy": 70.0 + seed, "test_accuracy": 60.0, "test_f1": 0.5}
    raw_run(root, name, json.dumps(config), result=json.dumps(result))


def whole_folder(root: Path) -> Path:
    """A bit of everything, the hostile included."""
    small_study(root)
    text_run(root, "spigot-ce")
    failed = json.dumps({"task": "synthetic", "version": TASK.version, "config": {"estimator": NASTY, "seed": 0}})
    raw_run(root, "f" * 16, failed, error=json.dumps({"error": NASTY}))
    raw_run(root, "e" * 16, "[" * 100_000)
    for seed in range(3):
        foreign_run(root, f"{seed}" * 16, seed)
    return root
