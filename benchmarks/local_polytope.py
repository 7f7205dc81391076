"""How often a step onto the local polytope is the one onto the marginal polytope: `python -m benchmarks.local_polytope`.

Trains SPIGOT-CE on SST as `pullback train sst` does, which projects onto the local polytope. Every so many steps, the steps of
some sentences of the batch are also projected by SparseMAP, in float64 and to optimality, and the two are compared, relative to
the length of the step.

    python -m benchmarks.local_polytope --data DATA
    python -m benchmarks.local_polytope --data DATA --learning-rate 5e-5 --steps 4000 --every 400
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from benchmarks.options import text_parser
from pullback.parts import InnerState, LocallyProjected
from pullback.structures import DependencyTree
from pullback_study.tasks import find_task

_SAME = 1e-6  # of the length of the step
_LONGEST = 20  # words; SparseMAP takes seconds for longer ones


@dataclass
class Comparison(LocallyProjected):
    """The update of a run, which compares when asked to."""

    step_size: float
    sentences: int
    asked: bool = False
    same: int = 0
    compared: int = 0

    def step(self, structure: Any, state: InnerState, gamma: Tensor) -> InnerState:
        if self.asked and state.start.shape[-1] <= _LONGEST:
            self.asked = False
            self._compare(structure, state, gamma)
        return super().step(structure, state, gamma)

    def _compare(self, structure: Any, state: InnerState, gamma: Tensor) -> None:
        few = slice(0, self.sentences)
        lengths = structure.lengths[few]
        trees = DependencyTree(lengths)
        start, allowed = state.start[few].double(), state.allowed[few]
        target = torch.where(allowed, start - (self.step_size * gamma[few]).double(), -torch.inf)
        began = time.perf_counter()
        exact = trees.sparsemap_solution(target, warm_start=None if state.vertex is None else state.vertex[few].double())
        seconds = time.perf_counter() - began
        local = trees.local_projection(target)
        size = torch.linalg.vector_norm(start - exact.mu, dim=(-2, -1)).clamp_min(1e-300)
        difference = torch.linalg.vector_norm(local - exact.mu, dim=(-2, -1)) / size
        used = (exact.weights > 0).sum(-1).double().mean()
        self.same += int((difference <= _SAME).sum())
        self.compared += len(difference)
        print(
            f"{int(lengths.max()):3} words: {int((difference <= _SAME).sum()):3} of {len(difference)} the same, largest "
            f"difference {difference.max():.1e} of the step; SparseMAP: {used:.0f} trees, {seconds / len(lengths):.3f} s each",
            flush=True,
        )


def main() -> None:
    options = _options()
    torch.set_num_threads(1)
    task = find_task("sst", options.data)
    config = task.configure(estimator="spigot-ce", learning_rate=options.learning_rate, seed=options.seed)
    trainer: Any = task.trainer([config], "cpu")
    estimator = trainer._estimator
    update = Comparison(estimator.update.step_size, options.sentences)
    estimator.update = update
    for until in range(options.every, options.steps + 1, options.every):
        trainer.advance(until, lambda: False)
        print(f"step {until:5}: ", end="", flush=True)
        update.asked = True
        while update.asked:
            trainer.advance(trainer.step + 1, lambda: False)
    print(f"{update.same} of {update.compared} sentences have the same projection, to {_SAME:g} of the step")


def _options() -> argparse.Namespace:
    parser = text_parser("benchmarks.local_polytope", __doc__ or "")
    parser.add_argument("--learning-rate", type=float, default=1e-3)
    parser.add_argument("--steps", type=int, default=2000, help="of training; default: 2000")
    parser.add_argument("--every", type=int, default=200, help="steps between comparisons; default: 200")
    parser.add_argument("--sentences", type=int, default=16, help="compared each time; default: 16")
    return parser.parse_args()


if __name__ == "__main__":
    main()
