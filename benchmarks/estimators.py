"""Bias, variance, direction, zeros, calls and time of every estimator, on worlds small enough to enumerate.

    python -m benchmarks.estimators docs/results/estimators.md

writes the page's tables (between its markers) and its figures (beside it). Times are of this machine.
"""

from __future__ import annotations

import argparse
import shlex
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import mean, median

import torch
from torch import Tensor, nn

import pullback as pb
from benchmarks.environment import made_by
from pullback.estimators.diagnostics import Diagnosis, plot
from pullback.estimators.registry import ENTRIES, Entry

BEGIN, END = "<!-- tables: python -m benchmarks.estimators -->", "<!-- end of tables -->"
EXAMPLES = 4  # scores and costs that each cell is the median of


@dataclass(frozen=True)
class World:
    """A structure, and the shape of one example's scores."""

    title: str
    structure: pb.Structure
    shape: tuple[int, ...]


WORLDS = {
    "categorical": World("categorical, K = 10", pb.Categorical(), (10,)),
    "subset": World("subset, 5 of 10", pb.Subset(5), (10,)),
    "chain": World("chain, n = 5, 3 tags", pb.LinearChain(), (5, 3, 3)),
    "tree": World("projective trees, n = 4", pb.DependencyTree(), (4, 4)),
}


def losses(name: str, shape: tuple[int, ...], seed: int) -> Callable[[Tensor], Tensor]:
    """A loss of z `[B, *parts]`, one per example, from random costs of the size of the parts."""
    generator = torch.Generator().manual_seed(1000 + seed)
    a, b = torch.randn(2, *shape, dtype=torch.float64, generator=generator)
    hidden = torch.randn(16, a.numel(), dtype=torch.float64, generator=generator) / a.numel() ** 0.5
    out = torch.randn(16, dtype=torch.float64, generator=generator)

    def dot(c: Tensor, z: Tensor) -> Tensor:
        return (c * z).flatten(1).sum(1)

    return {
        "linear": lambda z: dot(a, z),
        "quadratic": lambda z: (z - a).square().flatten(1).sum(1) + dot(b, z).square(),
        "power 1.5": lambda z: ((z - a.sigmoid()).abs() + 1e-6).pow(1.5).flatten(1).sum(1),
        "xor": lambda z: -torch.tanh(2 * dot(a, z)) * torch.tanh(2 * dot(b, z)),
        "mlp": lambda z: nn.functional.softplus(torch.tanh(2 * z.flatten(1) @ hidden.T) @ out),
    }[name]


LOSSES = ("linear", "quadratic", "power 1.5", "xor", "mlp")


def cell(estimator: pb.Estimator, world: World, loss: str, draws: int, **options: str) -> list[Diagnosis]:
    """The diagnoses of some examples."""
    found = []
    for seed in range(EXAMPLES):
        torch.manual_seed(seed)
        scores = torch.randn(1, *world.shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
        found.append(pb.diagnose(estimator, world.structure, scores, losses(loss, world.shape, seed), draws, **options))
    return found


def seconds(estimator: pb.Estimator, world: World) -> float:
    """The time of one training step at a batch of 64, the median of 9."""
    scores = torch.randn(64, *world.shape, generator=torch.Generator().manual_seed(0)).requires_grad_()
    cost = torch.randn(world.shape, generator=torch.Generator().manual_seed(1))
    times = []
    for _ in range(10):
        start = time.perf_counter()
        estimator.objective(world.structure, scores, lambda z: (z * cost).flatten(1).sum(1).square()).sum().backward()
        times.append(time.perf_counter() - start)
    return median(times[1:])


def measure(draws: int) -> Iterator[tuple[str, str]]:
    """For each world a heading and a Markdown table, one row per estimator."""
    for world in WORLDS.values():
        rows = []
        for entry in (entry for entry in ENTRIES if entry.supports(world.structure)):
            print(f"{world.title}: {entry.name}", file=sys.stderr, flush=True)
            rows.append(_row(entry, world, draws))
        headings = ["estimator", *(f"cos, {loss}" for loss in LOSSES), "single cos", "bias", "scaled bias"]
        yield world.title, _table([*headings, "variance", "zeros", "D", "I", "ms"], rows)


def _row(entry: Entry, world: World, draws: int) -> list[str]:
    found = {loss: cell(entry.make(), world, loss, draws) for loss in LOSSES}
    every = [each for diagnoses in found.values() for each in diagnoses]
    calls = max(each.decoder_calls for each in every), max(each.inference_calls for each in every)

    def middle(values: list[float]) -> str:
        return f"{median(values):.2g}"

    return [
        f"`{entry.name}`",
        *(f"{median(each.cosine for each in found[loss]):.2f}" for loss in LOSSES),
        f"{median(each.single_cosine for each in every):.2f}",
        middle([each.bias / float(each.exact.norm()) for each in every]),
        middle([each.scaled_bias / float(each.exact.norm()) for each in every]),
        middle([each.variance / float(each.exact.square().sum()) for each in every]),
        middle([each.zeros for each in every]),
        *map(str, calls),
        f"{1e3 * seconds(entry.make(), world):.2f}",
    ]


def _table(headings: list[str], rows: list[list[str]]) -> str:
    lines = [headings, ["---"] * len(headings), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


STEPS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
BY_STEP = {
    "STE-I": pb.STEIdentity,
    "SPIGOT": pb.SPIGOT,
    "SPIGOT-CE": pb.SPIGOTCE,
    "SPIGOT-EG": pb.SPIGOTEG,
    "Blackbox": pb.Blackbox,
    "I-MLE": pb.IMLE,
    "LPGD, rho = 1": lambda step: pb.LPGD(step, 1.0),
}
TEMPERATURES = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
BY_TEMPERATURE = {
    "Perturbed marginals": pb.PerturbedMarginals,
    "Perturb-and-MAP": pb.PerturbAndMAP,
    "Perturbed SparseMAP": pb.PerturbedSparseMAP,
    "Perturbed argmax (sigma)": lambda sigma: pb.PerturbedArgmax(sigma, 10),
}


def figures(folder: Path, draws: int) -> list[str]:
    """Cosine and zeros against the step size, cosine and variance against the temperature, on trees with quadratic losses."""
    from matplotlib import pyplot

    sweeps: list[tuple[str, str, Mapping[str, Callable[..., pb.Estimator]], tuple[float, ...], tuple[str, str]]] = [
        ("estimators-step-size", "step size", BY_STEP, STEPS, ("cosine", "zeros")),
        ("estimators-temperature", "temperature", BY_TEMPERATURE, TEMPERATURES, ("cosine", "variance")),
    ]
    names = []
    for name, label, makers, values, measures in sweeps:
        curves = {}
        for title, make in makers.items():
            print(f"{label}: {title}", file=sys.stderr, flush=True)
            curves[title] = [_mean(cell(make(value), WORLDS["tree"], "quadratic", draws)) for value in values]
        figure = plot(curves, values, label=label, measures=measures)
        if "variance" in measures:
            figure.axes[1].set_yscale("log")
        figure.savefig(folder / f"{name}.svg", metadata={"Date": None})
        pyplot.close(figure)
        (folder / f"{name}.csv").write_text(_csv(curves, values, measures))
        names.append(name)
    return names


def _csv(curves: Mapping[str, list[Diagnosis]], values: tuple[float, ...], measures: tuple[str, ...]) -> str:
    lines = [["estimator", "measure", *map(str, values)]]
    for title, curve in curves.items():
        for name in measures:
            lines.append([f'"{title}"', name, *(f"{getattr(each, name):.3g}" for each in curve)])
    return "".join(",".join(cells) + "\n" for cells in lines)


def _mean(found: list[Diagnosis]) -> Diagnosis:
    """The first, with the mean of all as its measures."""
    means = {name: mean(getattr(each, name) for each in found) for name in ("cosine", "zeros", "variance")}
    return replace(found[0], **means)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("page", type=Path, help="the Markdown page to write into")
    parser.add_argument("--draws", type=int, default=1000, help="of each estimator's noise")
    options = parser.parse_args()
    command = shlex.join(["python", "-m", "benchmarks.estimators", *sys.argv[1:]])
    parts = [made_by(command, "date", "commit", "processor", "torch")]
    parts += [f"### {title}\n\n{table}" for title, table in measure(options.draws)]
    names = figures(options.page.parent, options.draws)
    parts += [f"![{name}]({name}.svg)\n\nThe numbers: [{name}.csv]({name}.csv)." for name in names]
    before, rest = options.page.read_text().split(BEGIN)
    options.page.write_text(f"{before}{BEGIN}\n" + "\n\n".join(parts) + f"\n{END}{rest.split(END)[1]}")


if __name__ == "__main__":
    main()
