"""The variance of unbiased estimators with control variates, beside that of leave-one-out with as many samples.

    python -m benchmarks.control docs/results/estimators.md

writes a table between the page's markers: the worlds and losses of `benchmarks.estimators`. beta is learned on the same
problem, or fixed.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from pathlib import Path
from statistics import median

import torch

import pullback as pb
from benchmarks.environment import made_by
from benchmarks.estimators import EXAMPLES, LOSSES, WORLDS, World, losses

BEGIN, END = "<!-- control variates: python -m benchmarks.control -->", "<!-- end of control variates -->"
SAMPLES, SETTLING = 4, 200  # samples of every estimator; training steps of beta


def fixed(beta: float) -> pb.ScoreFunction:
    baseline = pb.parts.ControlVariate(SAMPLES)
    baseline.beta.fill_(beta)
    return pb.ScoreFunction(baseline)


ESTIMATORS = {
    "leave-one-out": lambda: pb.ScoreFunction(pb.parts.LeaveOneOut(SAMPLES)),
    "control at samples": lambda: pb.ScoreFunction(pb.parts.ControlVariate(SAMPLES)),
    "control at marginals": lambda: pb.ScoreFunction(pb.parts.ControlVariate(SAMPLES, point="marginals")),
    "control at samples, beta = 1": lambda: fixed(1.0),
    "ReinMax": lambda: pb.ReinMax(SAMPLES),
    "ReinMax, control at samples": lambda: pb.ReinMax(SAMPLES, "samples"),
    "ReinMax, control at marginals": lambda: pb.ReinMax(SAMPLES, "marginals"),
}
LEARNED = ("control at samples", "control at marginals")


def variance(name: str, world: World, loss: str, seed: int, draws: int) -> tuple[float, float]:
    """Its variance and bias, relative to the norm of the exact gradient, and its square."""
    torch.manual_seed(seed)
    scores = torch.randn(1, *world.shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    downstream, estimator = losses(loss, world.shape, seed), ESTIMATORS[name]()
    for _ in range(SETTLING if name in LEARNED else 0):
        batch = scores.expand(32, *world.shape).clone().requires_grad_()
        estimator.objective(world.structure, batch, downstream).sum().backward()
    found = pb.diagnose(estimator, world.structure, scores, downstream, draws)
    return found.variance / float(found.exact.square().sum()), found.bias / float(found.exact.norm())


def measure(draws: int) -> str:
    """A Markdown table: for each estimator and loss the ratio of its variance to leave-one-out's, and its bias."""
    lines = ["| structure | estimator | " + " | ".join(f"variance, {loss}" for loss in LOSSES) + " | bias, largest |"]
    lines.append("| --- " * (len(LOSSES) + 3) + "|")
    for world in WORLDS.values():
        found = {}
        for name in ESTIMATORS:
            print(f"{world.title}: {name}", file=sys.stderr, flush=True)
            found[name] = {loss: [variance(name, world, loss, seed, draws) for seed in range(EXAMPLES)] for loss in LOSSES}
        for name, row in found.items():
            pairs = {loss: zip(row[loss], found["leave-one-out"][loss], strict=True) for loss in LOSSES}
            ratios = [f"{median(mine[0] / plain[0] for mine, plain in pairs[loss]):.2g}" for loss in LOSSES]
            bias = max(median(each[1] for each in row[loss]) for loss in LOSSES)
            lines.append(f"| {world.title} | {name} | " + " | ".join(ratios) + f" | {bias:.2g} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("page", type=Path, help="the Markdown page to write into")
    parser.add_argument("--draws", type=int, default=1000, help="of each estimator")
    options = parser.parse_args()
    command = shlex.join(["python", "-m", "benchmarks.control", *sys.argv[1:]])
    text = f"{made_by(command, 'date', 'commit', 'torch')}\n\n{measure(options.draws)}"
    before, rest = options.page.read_text().split(BEGIN)
    options.page.write_text(f"{before}{BEGIN}\n{text}\n{END}{rest.split(END)[1]}")


if __name__ == "__main__":
    main()
