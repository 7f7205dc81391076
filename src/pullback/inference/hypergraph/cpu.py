"""All operations of a structure whose recursion is a hypergraph, on the CPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pullback.inference import checks
from pullback.inference.hypergraph import kernels
from pullback.inference.hypergraph.graph import Hypergraph
from pullback.inference.layout import Layout
from pullback.inference.threads import spread

Graph = Callable[..., Hypergraph]
"""From the shape of the parts and the options to the hypergraph; it should be cached."""


def operations(layout: Layout, graph: Graph) -> tuple[Callable[..., Tensor], ...]:
    """The functions `argmax, log_partition, marginals, marginals_vjp, entropy, entropy_gradient, sample` of a family."""

    def batch(scores: Tensor, sizes: tuple[Tensor, ...], options: dict[str, Any]) -> _Batch:
        return _Batch(layout, graph, scores, sizes, options)

    def argmax(scores: Tensor, *sizes: Tensor, validate: bool, **options: Any) -> Tensor:
        return batch(scores, sizes, options).maximum(validate)

    def log_partition(scores: Tensor, *sizes: Tensor, validate: bool, **options: Any) -> Tensor:
        return batch(scores, sizes, options).sums(kernels.LOG_PARTITION, validate)

    def marginals(scores: Tensor, *sizes: Tensor, validate: bool, **options: Any) -> Tensor:
        return batch(scores, sizes, options).sums(kernels.MARGINALS, validate)

    def sample(scores: Tensor, *rest: Tensor, validate: bool, **options: Any) -> Tensor:
        *sizes, seeds = rest
        return batch(scores, tuple(sizes), options).sums(kernels.SAMPLE, validate, seeds)

    def marginals_vjp(scores: Tensor, *rest: Tensor, validate: bool, **options: Any) -> Tensor:
        *sizes, direction = rest
        return batch(scores, tuple(sizes), options).slopes(kernels.SLOPE, validate, direction)

    def entropy(scores: Tensor, *sizes: Tensor, validate: bool, **options: Any) -> Tensor:
        return batch(scores, sizes, options).slopes(kernels.ENTROPY, validate)

    def entropy_gradient(scores: Tensor, *sizes: Tensor, validate: bool, **options: Any) -> Tensor:
        return batch(scores, sizes, options).slopes(kernels.ENTROPY_SLOPE, validate)

    return argmax, log_partition, marginals, marginals_vjp, entropy, entropy_gradient, sample


class _Batch:
    """Scores as the kernels take them: flat, with a goal for each example, the largest goals first."""

    def __init__(
        self, layout: Layout, graph: Graph, scores: Tensor, sizes: tuple[Tensor, ...], options: dict[str, Any]
    ) -> None:
        self.layout, self.scores, self.sizes = layout, scores.detach().contiguous(), sizes
        self.shape = tuple(scores.shape[1:])
        self.graph = graph(self.shape, **options)
        self.goals = self.graph.goals[tuple(size.numpy() for size in layout.in_range(scores, sizes))]
        self.count = len(self.goals)
        self.order = np.argsort(-self.goals, kind="stable")
        self.codes = np.zeros(self.count)
        flat = self.scores.numpy().reshape(self.count, int(np.prod(self.shape)))
        self.arrays = *self.graph.arrays, self.graph.reach, flat, self.goals, self.order

    def maximum(self, validate: bool) -> Tensor:
        z, best = torch.zeros_like(self.scores), np.zeros(self.count)
        self._spread(kernels.argmax, 1.0, self._flat(z), best, self.codes)
        return self._finish(z, best, validate)

    def sums(self, what: int, validate: bool, seeds: Tensor | None = None) -> Tensor:
        log_z = np.zeros(self.count)
        wanted = what != kernels.LOG_PARTITION
        out = torch.zeros_like(self.scores) if wanted else self.scores
        stream = np.zeros(0, np.int64) if seeds is None else seeds.contiguous().numpy()
        work = 8.0 if what == kernels.MARGINALS else 5.0
        self._spread(kernels.sums, work, self.graph.widest, what, stream, self._flat(out), log_z, self.codes)
        return self._finish(out if wanted else torch.from_numpy(log_z), log_z, validate)

    def slopes(self, what: int, validate: bool, direction: Tensor | None = None) -> Tensor:
        value = np.zeros(self.count)
        wanted = what != kernels.ENTROPY
        out = torch.zeros_like(self.scores) if wanted else self.scores
        along = self.scores if direction is None else direction.detach().to(self.scores.dtype).contiguous()
        rest = self.graph.widest, what, self._flat(along), self._flat(out), value, self.codes
        self._spread(kernels.slopes, 20.0, *rest)
        return self._finish(out if wanted else torch.from_numpy(value), value, validate)

    def _flat(self, x: Tensor) -> np.ndarray:
        return x.numpy().reshape(self.count, -1) if x.numel() else np.zeros((self.count, 0), x.numpy().dtype)

    def _spread(self, kernel: Callable[..., Any], cost: float, *rest: Any) -> None:
        if self.count == 0:
            return
        lanes = 64 // self.scores.itemsize
        groups = -(-self.count // lanes)
        edges = self.graph.first[np.maximum(self.goals[self.order[::lanes]], 0) + 1].sum()
        spread(kernel, groups, 4 * cost * float(edges), *self.arrays, *rest)

    def _finish(self, result: Tensor, value: np.ndarray, validate: bool) -> Tensor:
        """The result, NaN for the examples that have none; or an error that names the first of those."""
        safe = self.layout.in_range(self.scores, self.sizes)
        sizes_ok = all(torch.equal(x, y) for x, y in zip(self.sizes, safe, strict=True))
        none = value == -np.inf
        if sizes_ok and not self.codes.any() and not none.any():
            return result
        status = self.layout.status(self.scores, self.sizes)
        status = torch.where((status == checks.OK) & torch.from_numpy(none), checks.INFEASIBLE, status)
        if validate:
            checks.raise_for(status)
        return torch.where((status != checks.OK).reshape(-1, *[1] * (result.dim() - 1)), torch.nan, result)
