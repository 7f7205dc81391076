"""What a run costs beyond its training, how pools scale, and how fast runs are listed: `python -m benchmarks.sweeps`.

    overhead    runs of a single tiny step, each a group of its own: seconds for each after the first
    scaling     rows of the synthetic table: this process with all threads, against pools that divide them
    listing     10,000 run directories

Times are wall-clock: run it on a machine that does nothing else. `--only scaling --steps 400` asks for a part.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import tempfile
import time
from pathlib import Path

from pullback_study.results.paper.clusters import ROWS
from pullback_study.runs import list_runs
from pullback_study.runs.executor import Executor, Pool, cores
from pullback_study.runs.train import train
from pullback_study.tasks import find_task
from pullback_study.tasks.synthetic.task import Config

TASK = find_task("synthetic")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=("overhead", "scaling", "listing"))
    parser.add_argument("--steps", type=int, default=200, help="of each run of the scaling benchmark")
    parser.add_argument("--runs", type=int, default=10_000, help="of the listing benchmark")
    options = parser.parse_args()
    print(f"{cores()} cores")
    if options.only in (None, "overhead"):
        overhead()
    if options.only in (None, "scaling"):
        scaling(options.steps)
    if options.only in (None, "listing"):
        listing(options.runs)


def overhead(few: int = 5, many: int = 35) -> None:
    """The slope from a few runs to many: start-up and imports cancel."""
    for name, make in (("this process", Executor), ("a worker process", lambda: Pool(1))):
        seconds = []
        for count in (few, many):
            configs = [_tiny(i + 1) for i in range(count)]
            seconds.append(_timed(configs, make()))
        print(f"overhead in {name}: {(seconds[1] - seconds[0]) / (many - few):.3f} s per run")


def scaling(steps: int) -> None:
    """All rows of the table, 10 clusters, two seeds, the same work for each; in turns, best of two."""
    configs = [TASK.configure(estimator=name, seed=seed, steps=steps, evaluate_every=50) for name in ROWS for seed in (0, 1)]
    there = cores()
    makers = {
        f"this process, {there} threads": Executor,
        **{f"{n} workers, {max(1, there // n)} threads each": (lambda n=n: Pool(n)) for n in sorted({2, there})},
    }
    best = {name: float("inf") for name in makers}
    for _ in range(2):
        for name, make in makers.items():
            best[name] = min(best[name], _timed(configs, make()))
    for name, seconds in best.items():
        print(f"scaling, {len(configs)} runs of {steps} steps: {seconds:.1f} s in {name}")


def listing(count: int) -> None:
    """Directories as a sweep leaves them."""
    with tempfile.TemporaryDirectory() as folder:
        root, first = Path(folder), TASK.configure(estimator="spigot-ce")
        result = {"validation_accuracy": 90.0, "test_accuracy": 89.5, "test_v_measure": 95.0, "torch": "2", "threads": 2}
        for seed in range(count):
            run = TASK.run(dataclasses.replace(first, seed=seed), root)
            run.path.mkdir()
            about = {"task": run.task, "version": run.version, "config": dataclasses.asdict(run.config)}
            (run.path / "config.json").write_text(json.dumps(about))
            (run.path / "result.json").write_text(json.dumps({**result, "loss": seed / 7}))
        for name in ("first", "again"):
            began = time.perf_counter()
            found = sum(run.state == "done" for run in list_runs(root))
            print(f"listing {found} runs, {name}: {time.perf_counter() - began:.2f} s")


def _tiny(evaluate_every: int) -> Config:
    sizes = {"features": 8, "train_examples": 60, "validation_examples": 20, "test_examples": 20}
    return TASK.configure(estimator="marginals", steps=1, evaluate_every=evaluate_every, **sizes)


def _timed(configs: list[Config], executor: Executor) -> float:
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        outcome = train(TASK, configs, Path(folder), executor=executor)
        assert outcome.complete, outcome
        return time.perf_counter() - began


if __name__ == "__main__":
    main()
