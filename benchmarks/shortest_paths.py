"""Regret of predicted costs on the shortest paths of PyEPO's notebook 03: `python -m benchmarks.shortest_paths`.

A 5 x 5 grid whose 40 costs are a polynomial of degree 4 of 5 features, times noise of half-width 0.5; 1000 examples to
train on and 1000 to test on, drawn and split as the notebook does; a linear model, Adam with a learning rate of 0.01, 20
epochs of batches of 32. Nothing is tuned: learning rate and epochs are the notebook's for all methods. There is one run
per method and data seed; the initial weights follow from the seed. The normalised regret is the sum of regrets divided by
the sum of the costs of the best paths, on the test set, after the last epoch. Seconds are of training, with the best
paths of the training set: processor time on one thread.

    python -m benchmarks.shortest_paths --results regret             # 20 seeds; what is in the folder is not trained again
    python -m benchmarks.shortest_paths --quick                      # two seeds, few examples and epochs: some seconds
    python -m benchmarks.shortest_paths --seeds 42 --methods spo+ mse
    python -m benchmarks.shortest_paths --results regret --markdown  # the table as Markdown
    PYTHONPATH=peers python -m benchmarks.shortest_paths             # PyEPO's own SPO+ as well, where it is installed
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import math
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

import pullback as pb
from pullback.estimators.noise import Normal

PYEPO = "PyEPO's SPO+"
FIRST = "spo+"  # the method that others are compared with


@dataclass(frozen=True)
class Setting:
    """The sizes of a run. Those of the notebook are the default."""

    side: int = 5
    features: int = 5
    degree: int = 4
    noise: float = 0.5
    examples: int = 1000  # to train on, and as many to test on
    epochs: int = 20
    batch: int = 32
    learning_rate: float = 0.01


QUICK = Setting(examples=64, epochs=2)


@dataclass(frozen=True)
class Data:
    """Features `[N, p]` and costs `[N, E]`, to train on and to test on."""

    train: tuple[Tensor, Tensor]
    test: tuple[Tensor, Tensor]


def edges(side: int) -> list[tuple[int, int]]:
    """The edges of a grid to the right and down, row by row, those to the right first."""
    found = []
    for row in range(side):
        start = row * side
        found += [(v, v + 1) for v in range(start, start + side - 1)]
        if row + 1 < side:
            found += [(v, v + side) for v in range(start, start + side)]
    return found


def draw(examples: int, setting: Setting, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Features and costs of Elmachtoub and Grigas (2022), section 6.1, in the order in which PyEPO draws them.

    Of edge e: c_e = (((B x)_e / sqrt(p) + 3)^degree + 1) / 3.5^degree * noise_e, with B of fair zeros and ones, x standard
    normal, and noise uniform around 1.
    """
    random = np.random.RandomState(seed)
    count = len(edges(setting.side))
    mixing = random.binomial(1, 0.5, size=(count, setting.features))
    x = random.normal(size=(examples, setting.features))
    grown = (x @ mixing.T / math.sqrt(setting.features) + 3.0) ** setting.degree + 1.0
    factor = random.uniform(1.0 - setting.noise, 1.0 + setting.noise, size=grown.shape)
    return x, (grown / 3.5**setting.degree * factor).astype(np.float32)


def data(setting: Setting, seed: int) -> Data:
    """Half of the examples to test on: the first of a random order, as scikit-learn splits."""
    x, costs = draw(2 * setting.examples, setting, seed)
    order = np.random.RandomState(seed).permutation(len(x))
    test, train = order[: setting.examples], order[setting.examples :]

    def tensors(rows: np.ndarray) -> tuple[Tensor, Tensor]:
        return torch.from_numpy(x[rows]).float(), torch.from_numpy(costs[rows])

    return Data(tensors(train), tensors(test))


Objective = Callable[[pb.Structure, Tensor, Tensor, Tensor], Tensor]
"""From the structure, predicted costs, true costs, and the best paths to one loss per example."""


def _decision(estimator: pb.Estimator) -> Objective:
    """The true cost of the path, by an estimator or through a layer."""
    return lambda paths, predicted, costs, best: estimator.objective(paths, -predicted, lambda z: (z * costs).sum(-1))


METHODS: dict[str, tuple[str, Objective]] = {
    "mse": ("two stages: squared error of costs", lambda paths, p, c, z: (p - c).square().mean(-1)),
    "spo+": ("`SPOPlus()`", lambda paths, p, c, z: pb.losses.SPOPlus()(paths, -p, z, costs=c)),
    "perturbed": (
        "perturbed Fenchel-Young: `PerturbedLoss(1.0, samples=3, noise=Normal())`",
        lambda paths, p, c, z: pb.losses.PerturbedLoss(1.0, 3, Normal())(paths, -p, z),
    ),
    "softmax-margin": ("softmax-margin: `CrossEntropy(cost)`", lambda paths, p, c, z: pb.losses.CrossEntropy(c)(paths, -p, z)),
    "crf": ("`CrossEntropy()`", lambda paths, p, c, z: pb.losses.CrossEntropy()(paths, -p, z)),
    "sparsemap-loss": ("`SparseMAPLoss()`", lambda paths, p, c, z: pb.losses.SparseMAPLoss()(paths, -p, z)),
    "sparsemap": ("`SparseMAP()` as a layer", _decision(pb.SparseMAP())),
    "marginals": ("`Marginals()` as a layer", _decision(pb.Marginals())),
    "blackbox": ("`Blackbox(20.0)`", _decision(pb.Blackbox(20.0))),
    "imle": ("`IMLE(10.0, samples=3)`", _decision(pb.IMLE(10.0, samples=3))),
    "spigot": ("`SPIGOT()`", _decision(pb.SPIGOT())),
    "ste-i": ("`STEIdentity()`", _decision(pb.STEIdentity())),
    "standardized": ("`Standardized(STEIdentity())`", _decision(pb.Standardized(pb.STEIdentity()))),
}
"""Titles and objectives. The first three losses and all step sizes are the notebook's, where it has them."""


def train(setting: Setting, seed: int, name: str) -> dict[str, float]:
    """The regret of a linear model trained by a method, and the seconds of its training."""
    torch.manual_seed(seed)
    model = torch.nn.Linear(setting.features, len(edges(setting.side)))
    split, paths = data(setting, seed), pb.ShortestPath(edges(setting.side), 0, setting.side**2 - 1)
    fit = _with_pyepo if name == PYEPO else _fit
    seconds = fit(setting, model, split.train, paths, name)
    return {"regret": regret(paths, model, *split.test), "seconds": seconds}


def _fit(setting: Setting, model: torch.nn.Linear, train: tuple[Tensor, Tensor], paths: pb.Structure, name: str) -> float:
    objective = METHODS[name][1]
    began = time.process_time()
    best = paths.argmax(-train[1])
    optimizer = torch.optim.Adam(model.parameters(), lr=setting.learning_rate)
    for rows in _batches(setting):
        loss = objective(paths, model(train[0][rows]), train[1][rows], best[rows]).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return time.process_time() - began


def _with_pyepo(setting: Setting, model: torch.nn.Linear, train: tuple[Tensor, Tensor], paths: pb.Structure, _: str) -> float:
    """The same loop with PyEPO's loss and its solver, GLOP of OR-Tools."""
    import pyepo
    from pyepo.model.ort import shortestPathModel

    problem = shortestPathModel((setting.side, setting.side))
    assert problem.arcs == edges(setting.side)
    began = time.process_time()
    given = pyepo.data.dataset.optDataset(problem, train[0].numpy(), train[1].numpy())
    x, costs, best, value = (
        torch.as_tensor(np.asarray(part)).float() for part in (given.feats, given.costs, given.sols, given.objs)
    )
    loss_of = pyepo.func.SPOPlus(problem, processes=1)
    optimizer = torch.optim.Adam(model.parameters(), lr=setting.learning_rate)
    for rows in _batches(setting):
        loss = loss_of(model(x[rows]), costs[rows], best[rows], value[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return time.process_time() - began


def _batches(setting: Setting) -> Iterator[Tensor]:
    for _ in range(setting.epochs):
        yield from torch.randperm(setting.examples).split(setting.batch)


@torch.no_grad()
def regret(paths: pb.Structure, model: torch.nn.Module, x: Tensor, costs: Tensor) -> float:
    """How much more the chosen paths cost than the best ones, by the cost of those."""
    chosen, best = ((costs.double() * paths.argmax(-c)).sum(-1) for c in (model(x), costs))
    return float((chosen - best).sum() / best.abs().sum())


def interval(values: Sequence[float]) -> tuple[float, float]:
    """The mean, and half of its 95% confidence interval by Student's t; NaN for fewer than 5 values."""
    if len(values) < 5:
        return statistics.mean(values), math.nan
    z, freedom = 1.959964, len(values) - 1
    t = z + (z**3 + z) / (4 * freedom) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)  # its expansion in 1 / freedom
    return statistics.mean(values), t * statistics.stdev(values) / math.sqrt(len(values))


def table(runs: list[dict[str, dict[str, float]]], names: Sequence[str]) -> tuple[list[str], list[list[str]]]:
    """Headings and rows: regrets, their differences to SPO+ of the same seed, and seconds."""
    rows = []
    for name in names:
        done = [run for run in runs if name in run]
        if not done:
            continue
        both = [100 * (run[name]["regret"] - run[FIRST]["regret"]) for run in done if FIRST in run]
        title = f"{PYEPO}, GLOP of OR-Tools" if name == PYEPO else METHODS[name][0]
        seconds = statistics.median(run[name]["seconds"] for run in done)
        own = _pair(interval([100 * run[name]["regret"] for run in done]))
        rows.append([title, own, "" if name == FIRST or not both else _pair(interval(both), "+"), f"{seconds:.2f}"])
    return ["method", "regret, %", f"less that of `{METHODS[FIRST][0].strip('`')}`", "seconds"], rows


def _pair(found: tuple[float, float], sign: str = "") -> str:
    return f"{found[0]:{sign}.2f}" + ("" if math.isnan(found[1]) else f" ± {found[1]:.2f}")


def main(arguments: Sequence[str] | None = None) -> None:
    options = _options(arguments)
    setting = QUICK if options.quick else Setting()
    seeds = options.seeds or ([42, 0] if options.quick else [42, *range(19)])
    names = options.methods or [name for name in (*METHODS, PYEPO) if name != PYEPO or find_spec("pyepo")]
    torch.set_num_threads(1)
    for name in names:  # compiles kernels, and loads libraries
        train(dataclasses.replace(QUICK, epochs=1), 0, name)
    runs = []
    with _Progress(len(seeds) * len(names)) as progress:
        for seed in seeds:
            stored = _Stored(options.results, seed, setting)
            for name in names:
                if name not in stored.found:
                    stored.add(name, train(setting, seed, name))
                progress.advance(f"seed {seed}: {name} {100 * stored.found[name]['regret']:.2f}%")
            runs.append(stored.found)
    _show(*table(runs, names), markdown=options.markdown)


class _Stored:
    """The results of a seed, in a file where there is a folder; those of another setting are forgotten."""

    def __init__(self, folder: Path | None, seed: int, setting: Setting) -> None:
        self._path, self._setting = None if folder is None else folder / f"seed-{seed}.json", dataclasses.asdict(setting)
        self.found: dict[str, dict[str, float]] = {}
        if self._path is not None and self._path.exists():
            known = json.loads(self._path.read_text())
            self.found = known["methods"] if known["setting"] == self._setting else {}

    def add(self, name: str, result: dict[str, float]) -> None:
        self.found[name] = result
        if self._path is None:
            return
        self._path.parent.mkdir(parents=True, exist_ok=True)
        new = self._path.with_suffix(".new")
        new.write_text(json.dumps({"setting": self._setting, "methods": self.found}, indent=1) + "\n")
        new.replace(self._path)


class _Progress:
    """A bar on a terminal with rich, else a line per run, on standard error."""

    def __init__(self, total: int) -> None:
        self._total, self._done, self._bar = total, 0, None
        if sys.stderr.isatty() and find_spec("rich"):
            from rich.console import Console
            from rich.progress import Progress

            self._bar = Progress(console=Console(stderr=True))
            self._task = self._bar.add_task("", total=total)

    def __enter__(self) -> _Progress:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def advance(self, text: str) -> None:
        self._done += 1
        if self._bar is not None:
            self._bar.update(self._task, advance=1, description=text)
        else:
            print(f"{self._done} of {self._total}: {text}", file=sys.stderr, flush=True)


def _show(headings: list[str], rows: list[list[str]], *, markdown: bool) -> None:
    if markdown:
        lines = [headings, ["---", *["---:"] * (len(headings) - 1)], *rows]
        print("\n".join(f"| {' | '.join(line)} |" for line in lines))
        return
    widths = [max(map(len, column)) for column in zip(headings, *rows, strict=True)]
    for line in (headings, *rows):
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())


def _options(arguments: Sequence[str] | None) -> Any:
    about, _, examples = (__doc__ or "").partition("\n\n    python")
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.shortest_paths", description=about, epilog=f"examples:\n    python{examples}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("--seeds", nargs="+", type=int, metavar="N", help="of the data; default: 42 and 0 to 18")
    parser.add_argument("--methods", nargs="+", choices=(*METHODS, PYEPO), metavar="NAME", help=f"of {', '.join(METHODS)}")
    parser.add_argument("--results", type=Path, metavar="DIR", help="where to keep results, one JSON file per seed")
    parser.add_argument("--quick", action="store_true", help="two seeds, 64 examples, 2 epochs")
    parser.add_argument("--markdown", action="store_true", help="print the table as Markdown")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
