"""All operations of a structure whose recursion is a hypergraph, on the CPU."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pullback.inference._numba.threads import spread
from pullback.inference.engine.hypergraph import kernels
from pullback.inference.engine.hypergraph.graph import Graph
from pullback.inference.engine.hypergraph.scaled import MOST_EXTRA
from pullback.inference.front import checks
from pullback.inference.front.by_mode import by_mode
from pullback.inference.front.layout import Layout
from pullback.inference.front.modes import Mode


def operations(layout: Layout, graph: Graph) -> tuple[Callable[..., Any], ...]:
    """The functions `argmax, log_partition, marginals, log_partition_marginals, marginals_vjp, entropy, entropy_gradient` and
    `sample` of a family.
    """

    def argmax(scores: Tensor, *sizes: Tensor, validate: bool, **options: Any) -> Tensor:
        return Batch(layout, graph, scores, sizes, options).maximum(validate)

    def run(mode: Mode, which: int | slice, scores: Tensor, *rest: Tensor, validate: bool, **options: Any) -> Any:
        sizes, given = rest[: len(layout.sizes)], rest[len(layout.sizes) :]
        found = Batch(layout, graph, scores, sizes, options)
        if mode == Mode.TANGENT:
            return found.tangent(given[0], validate)
        return (found.sums(mode, validate, *given) if mode < Mode.TANGENT else found.tangents(mode, validate))[which]

    return argmax, *by_mode(run)


class Batch:
    """Scores as the kernels take them: flat, with a goal for each example, the largest goals first."""

    def __init__(
        self, layout: Layout, graph: Graph, scores: Tensor, sizes: tuple[Tensor, ...], options: dict[str, Any]
    ) -> None:
        self.layout, self.scores, self.sizes = layout, scores.detach().contiguous(), sizes
        self.graph_of, self.options = graph, options
        self.graph = graph(tuple(scores.shape[1:]), **options)
        safe, self.sized = checks.in_range(layout, scores.shape, sizes)
        self.goals = self.graph.goals[safe]
        self.count = len(self.goals)
        self.order = np.argsort(-self.goals, kind="stable")
        self.codes, self.value = np.zeros(self.count), np.zeros(self.count)
        self.arrays = (*self.graph.arrays, self.graph.reach), flat(self.scores), self.goals, self.order

    @property
    def scale(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
        """The constants of the hypergraph that scaled weights need."""
        graph = self.graph
        return graph.height, graph.extra, graph.counts, int(graph.extra.max(initial=0))

    def maximum(self, validate: bool) -> Tensor:
        z, best = torch.zeros_like(self.scores), np.zeros(self.count)
        self.spread(kernels.argmax, 1.0, flat(z), best, self.codes)
        return self._finish(best, z, True, validate)[1]

    def sums(self, mode: Mode, validate: bool, seeds: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Log-partitions, and what each part gets (for log-partitions alone: anything)."""
        log_z = np.zeros(self.count)
        wanted = mode != Mode.LOG_PARTITION
        out = torch.zeros_like(self.scores) if wanted else self.scores
        stream = np.zeros(0, np.int64) if seeds is None else seeds.contiguous().numpy()
        work = 8.0 if mode == Mode.MARGINALS else 5.0
        self.spread(kernels.sums, work, self.graph.widest, self.scale, int(mode), stream, flat(out), log_z, self.codes)
        return self._finish(log_z, out, wanted, validate)

    def tangent(self, direction: Tensor, validate: bool) -> Tensor:
        """The derivative of the marginals along a direction: by weights in float64, or logarithms where those lose digits."""
        if self.scale[3] > MOST_EXTRA or self.count == 0:
            return self.tangents(Mode.TANGENT, validate, direction)[1]
        wide = Batch(self.layout, self.graph_of, self.scores.double(), self.sizes, self.options)
        out, value = torch.zeros_like(wide.scores), np.where(self.goals < 0, -np.inf, 0.0)
        along = direction.detach().double().contiguous()
        wide.spread(kernels.weighted_tangents, 10.0, self.scale, flat(along), flat(out), self.codes)
        lost = np.flatnonzero(self.codes == kernels.LOST)
        found = out.to(self.scores.dtype)
        if len(lost):
            rows = torch.from_numpy(lost)
            some = Batch(self.layout, self.graph_of, self.scores[rows], tuple(x[rows] for x in self.sizes), self.options)
            found[rows] = some.tangents(Mode.TANGENT, False, direction[rows])[1]
            self.codes[lost], value[lost] = some.codes, some.value
        return self._finish(value, found, True, validate)[1]

    def tangents(self, mode: Mode, validate: bool, direction: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Tangents of the values, and the results of each part (without parts: anything)."""
        value = self.value = np.zeros(self.count)
        wanted = mode != Mode.ENTROPY
        out = torch.zeros_like(self.scores) if wanted else self.scores
        along = self.scores if direction is None else direction.detach().to(self.scores.dtype).contiguous()
        rest = self.graph.widest, int(mode), flat(along), flat(out), value, self.codes
        self.spread(kernels.tangents, 20.0, *rest)
        return self._finish(value, out, wanted, validate)

    def spread(self, kernel: Callable[..., Any], cost: float, *rest: Any) -> None:
        """Run a kernel of kernels.py, whose work is `cost` per edge, on threads."""
        if self.count == 0:
            return
        lanes = 64 // self.scores.itemsize
        groups = -(-self.count // lanes)
        edges = self.graph.first[np.maximum(self.goals[self.order[::lanes]], 0) + 1].sum()
        spread(kernel, groups, 4 * cost * float(edges), *self.arrays, *rest)

    def _finish(self, value: np.ndarray, out: Tensor, wanted: bool, validate: bool) -> tuple[Tensor, Tensor]:
        results: tuple[Tensor, ...] = (torch.from_numpy(value), out) if wanted else (torch.from_numpy(value),)
        if not self.sized or self.codes.any():
            results = checks.finish(self.layout, self.scores, self.sizes, results, value, validate)
        return results[0], results[-1]


def flat(x: Tensor) -> np.ndarray:
    """A tensor `[B, *parts]` as the array `[B, K]`."""
    first, *rest = x.shape
    return x.numpy().reshape(first, math.prod(rest))
