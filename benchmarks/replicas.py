"""Replica groups of the synthetic study against a loop over the same step function: `python -m benchmarks.replicas`.

A group trains R replicas (4 seeds, the paper's learning rates and step sizes) as one batched model, on a GPU as a CUDA
graph. The loop trains the same replicas one after the other with the same step function, launched from Python.

    python -m benchmarks.replicas                  the ratio for each estimator, on the CPU
    python -m benchmarks.replicas --device cuda    on a GPU
    python -m benchmarks.replicas --check          first: do group, loop and devices take the same steps?
"""

from __future__ import annotations

import argparse
import dataclasses
import time
from typing import Any

import torch

from pullback_study.results.paper.clusters import FULL, METHODS, ROWS
from pullback_study.tasks import find_task
from pullback_study.tasks.synthetic.task import Config
from pullback_study.tasks.synthetic.train import Clusters

TASK: Any = find_task("synthetic")


def main() -> None:
    options = _options()
    print(f"torch {torch.__version__}, {_device_name(options.device)}, {torch.get_num_threads()} threads")
    names = options.only or ROWS
    if options.check:
        check(names, options.device)
    else:
        compare(names, options.device, options.clusters, options.seconds)


def compare(names: list[str], device: str, clusters: int, seconds: float) -> None:
    """Time per step of all replicas, in a group and one by one."""
    print(f"{clusters} clusters, 5000 x 100 inputs, float32; milliseconds for one step of all replicas")
    print(f"{'estimator':22}{'replicas':>9}{'group':>10}{'loop':>10}{'ratio':>8}{'10,000 steps of the group':>28}")
    for name in names:
        configs = replicas(name, clusters)
        group = Clusters(TASK, configs, device)
        alone = _launched(configs[:1], device)
        together, single = best_of((group, alone), seconds)
        loop = single * len(configs)
        print(
            f"{METHODS[name].label:22}{len(configs):9}{1e3 * together:10.3f}{1e3 * loop:10.3f}{loop / together:8.1f}"
            f"{10_000 * together:26.1f} s",
            flush=True,
        )


def best_of(both: tuple[Clusters, Clusters], seconds: float) -> tuple[float, float]:
    """The shortest time of a step of each, measured in turns."""
    for group in both:
        _advance(group, 3)
    best = [float("inf"), float("inf")]
    deadline = time.perf_counter() + seconds
    while time.perf_counter() < deadline:
        for i, group in enumerate(both):
            steps = 20 if group.device.type == "cuda" else 1
            began = time.perf_counter()
            _advance(group, steps)
            best[i] = min(best[i], (time.perf_counter() - began) / steps)
    return best[0], best[1]


def check(names: list[str], device: str) -> None:
    """The largest difference of parameters after 50 steps in float64: group and loop; CPU and device."""
    titles = ["group and loop", *(["CPU and GPU", "graph and launches", "resumed"] if device == "cuda" else [])]
    print("largest difference of parameters after 50 steps, float64, 3 clusters")
    print(f"{'estimator':22}" + "".join(f"{title:>20}" for title in titles))
    for name in names:
        configs = [dataclasses.replace(config, dtype="float64") for config in replicas(name, 3)]
        few = [config for config in configs if config.seed < 2]
        group = _trained(few, "cpu")
        loop = torch.cat([_trained([config], "cpu").theta for config in (few[0], few[-1])])
        differences = [(group.theta[[0, -1]] - loop).abs().max()]
        if device == "cuda":
            graph, launched = _trained(few, "cuda"), _launched(few, "cuda")
            _advance(launched, 50)
            differences.append((group.theta - graph.theta.cpu()).abs().max())
            differences.append((graph.theta - launched.theta).abs().max())
            resumed = Clusters(TASK, few, "cuda")
            resumed.advance(20, lambda: False)
            state, resumed = resumed.state(), Clusters(TASK, few, "cuda")
            resumed.restore(state)
            resumed.advance(50, lambda: False)
            differences.append((graph.theta - resumed.theta).abs().max())
        print(f"{METHODS[name].label:22}" + "".join(f"{value.item():20.1e}" for value in differences), flush=True)


def replicas(name: str, clusters: int) -> list[Config]:
    """The paper's grid for one row: 12 replicas, or 36 where there are step sizes."""
    sizes = FULL.sizes if METHODS[name].pulled_back else (None,)
    endless = {"steps": 10**9, "evaluate_every": 10**9}
    task = find_task("synthetic")
    return [
        task.configure(estimator=name, clusters=clusters, seed=seed, learning_rate=rate, step_size=size, **endless)
        for seed in range(4)
        for rate in FULL.rates
        for size in sizes
    ]


def _trained(configs: list[Config], device: str) -> Clusters:
    group = Clusters(TASK, configs, device)
    _advance(group, 50)
    return group


def _launched(configs: list[Config], device: str) -> Clusters:
    """Without CUDA graphs."""
    group = Clusters(TASK, configs, device)
    group.use(group.estimator, captured=False)
    return group


def _advance(group: Clusters, steps: int) -> None:
    group.advance(group.step + steps, lambda: False)
    if group.device.type == "cuda":
        torch.cuda.synchronize()


def _device_name(device: str) -> str:
    return torch.cuda.get_device_name() if device == "cuda" else "CPU"


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.replicas", description=__doc__.splitlines()[0])
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--clusters", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=4.0, help="of measuring, for each estimator")
    parser.add_argument("--only", nargs="*", choices=list(METHODS), help="some estimators")
    parser.add_argument("--check", action="store_true", help="compare the steps instead of their times")
    return parser.parse_args()


if __name__ == "__main__":
    main()
