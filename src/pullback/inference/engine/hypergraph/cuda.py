"""All operations of a structure whose recursion is a hypergraph, on a GPU: no synchronisation with the host."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from types import ModuleType
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from pullback.inference._triton.support import Fixed, contiguous, launch, next_power_of_2
from pullback.inference.engine.hypergraph import cuda_kernels as kernels
from pullback.inference.engine.hypergraph import cuda_maximum as maximum
from pullback.inference.engine.hypergraph import cuda_narrow as narrow
from pullback.inference.engine.hypergraph.cuda_likelihood import likelihood
from pullback.inference.engine.hypergraph.graph import Graph
from pullback.inference.engine.hypergraph.levels import Levels, by_level
from pullback.inference.engine.hypergraph.tables import remembered
from pullback.inference.front import checks
from pullback.inference.front.checks import capturing
from pullback.inference.front.layout import Layout

MAXIMUM, SUM, SAMPLE, SLOPE, SURPRISE = range(5)  # as the kernels number their modes
ONE_TILE = 4096  # edges of a level, with those that nodes with fewer lack
_captured: set[Levels] = set()  # CUDA graphs read them as long as the process lives
_launches: WeakKeyDictionary[Levels, dict[int, Fixed | None]] = WeakKeyDictionary()


def operations(layout: Layout, graph: Graph) -> tuple[Callable[..., Any], ...]:
    """The functions `argmax, log_partition, marginals, log_partition_marginals, log_prob, marginals_vjp, entropy,
    entropy_gradient` and `sample` of a family.
    """

    @remembered
    def levels(shape: tuple[int, ...], device: torch.device, options: tuple[tuple[str, Any], ...]) -> Levels:
        return by_level(graph(shape, **dict(options)), math.prod(shape), device)

    def batch(scores: Tensor, sizes: tuple[Tensor, ...], validate: bool, options: dict[str, Any]) -> _Batch:
        table = levels(tuple(scores.shape[1:]), scores.device, tuple(options.items()))
        if capturing(scores):
            _captured.add(table)
        prepared = _Batch(layout, table, scores, sizes)
        if validate:
            prepared.check()
        return prepared

    def argmax(scores: Tensor, *sizes: Tensor, validate: bool, **options: Any) -> Tensor:
        return batch(scores, sizes, validate, options).best()

    def log_partition(scores: Tensor, *sizes: Tensor, validate: bool, **options: Any) -> Tensor:
        return batch(scores, sizes, validate, options).total(SUM)

    def marginals(scores: Tensor, *sizes: Tensor, validate: bool, **options: Any) -> Tensor:
        return batch(scores, sizes, validate, options).parts(SUM)

    def log_partition_marginals(scores: Tensor, *sizes: Tensor, validate: bool, **options: Any) -> tuple[Tensor, Tensor]:
        return batch(scores, sizes, validate, options).total_and_parts(SUM)

    def sample(scores: Tensor, *rest: Tensor, validate: bool, **options: Any) -> Tensor:
        *sizes, seeds = rest
        return batch(scores, tuple(sizes), validate, options).parts(SAMPLE, seeds=seeds)

    def log_prob(scores: Tensor, *rest: Tensor, validate: bool, **options: Any) -> tuple[Tensor, Tensor]:
        *sizes, z = rest
        prepared = batch(scores, tuple(sizes), validate, options)
        log_z, mu = prepared.total_and_parts(SUM)
        return likelihood(prepared.scores, z, log_z, mu, prepared.sizes, prepared.levels.least)

    def marginals_vjp(scores: Tensor, *rest: Tensor, validate: bool, **options: Any) -> Tensor:
        *sizes, direction = rest
        return batch(scores, tuple(sizes), validate, options).parts(SLOPE, direction=direction)

    def entropy(scores: Tensor, *sizes: Tensor, validate: bool, **options: Any) -> Tensor:
        return batch(scores, sizes, validate, options).total(SURPRISE)

    def entropy_gradient(scores: Tensor, *sizes: Tensor, validate: bool, **options: Any) -> Tensor:
        return batch(scores, sizes, validate, options).parts(SURPRISE)

    return (
        argmax, log_partition, marginals, log_partition_marginals, log_prob, marginals_vjp, entropy, entropy_gradient, sample,
    )  # fmt: skip


class _Batch:
    """Scores as the kernels take them, and the memory that they share."""

    def __init__(self, layout: Layout, levels: Levels, scores: Tensor, sizes: tuple[Tensor, ...]) -> None:
        self.layout, self.levels, self.sizes = layout, levels, tuple(map(contiguous, sizes))
        self.scores = contiguous(scores)
        self.count, self.parts_count = scores.shape[0], levels.parts

    def check(self) -> None:
        """Raise for the first example with bad values or without a structure; synchronises."""
        status = self.layout.status(self.scores, self.sizes)
        none = ~self.total(MAXIMUM).isfinite()
        checks.raise_for(torch.where((status == checks.OK) & none, checks.INFEASIBLE, status))

    def total(self, mode: int) -> Tensor:
        """The value of each example's goal, or its rate."""
        if self.count == 0:
            return self.scores.new_empty(0, dtype=torch.float64)
        values, rates, _, _ = self._upward(mode, None, None)
        out = torch.empty(self.count, dtype=torch.float64, device=values.device)
        return self._read(values, rates if mode == SURPRISE else values, out)

    def _read(self, values: Tensor, shown: Tensor, out: Tensor) -> Tensor:
        tensors = values, self.levels.goals, *self._goal_sizes(), shown, out
        launch(kernels.read_goal, self.count, out.device, *tensors, self.levels.nodes, *self._limits(), TWO=len(self.sizes) > 1)
        return out

    def best(self) -> Tensor:
        """The best structure of each example."""
        levels, s = self.levels, self.scores
        module, tile = _tile(levels.widest[0], levels.widest[2], "EDGES")
        if module is not narrow or s.numel() == 0:
            return self.parts(MAXIMUM)
        out = torch.empty_like(s)
        scratch = torch.empty(self.count, 2 * levels.nodes + 2, dtype=torch.float64, device=s.device)
        launch(
            maximum.argmax, self.count, s.device, s, out, scratch, levels.plan, levels.left, levels.right, levels.part,
            levels.goals, *self._goal_sizes(), len(levels.plan) - 2, levels.nodes, levels.edges, self.parts_count,
            *self._limits(), TWO=len(self.sizes) > 1, BINARY=levels.binary, **tile,
        )  # fmt: skip
        return out

    def total_and_parts(self, mode: int) -> tuple[Tensor, Tensor]:
        """The value of each example's goal, and what each part gets."""
        if self.scores.numel() == 0:
            return self.total(SUM), torch.empty_like(self.scores)
        log_z = torch.empty(self.count, dtype=torch.float64, device=self.scores.device)
        return log_z, self.parts(mode, log_z=log_z)

    def parts(
        self, mode: int, *, seeds: Tensor | None = None, direction: Tensor | None = None, log_z: Tensor | None = None
    ) -> Tensor:
        """What each part gets: its choice, its probability, or the derivative of that; the goals' values in `log_z`."""
        levels, s = self.levels, self.scores
        if s.numel() == 0:
            return torch.empty_like(s)
        launches = _launches.setdefault(levels, {})
        if mode not in launches:
            launches[mode] = _through(levels, self.layout, s.shape[1:], mode)
        fixed = launches[mode]
        if fixed is None:
            upward = self._upward(mode, seeds, direction)
            if log_z is not None:
                self._read(upward[0], upward[0], log_z)
            return self._downward(mode, *upward)
        words = (2 * levels.nodes + levels.edges + 3) * (2 if mode >= SLOPE else 1) + 1
        scratch, out = torch.empty(self.count * words, dtype=torch.float64, device=s.device), torch.empty_like(s)
        tensors = *self._given(seeds, direction), scratch, out, scratch if log_z is None else log_z, *self._goal_sizes()
        launch(narrow.through, self.count, s.device, *tensors, fixed=fixed)
        return out

    def _given(self, seeds: Tensor | None, direction: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
        """Scores, direction and seeds; where the latter are not needed, anything."""
        along = self.scores if direction is None else contiguous(direction.to(self.scores.dtype))
        return self.scores, along, self.sizes[0] if seeds is None else contiguous(seeds)

    def _downward(self, mode: int, values: Tensor, _: Tensor, weights: Tensor, shifts: Tensor) -> Tensor:
        """What each part gets, by the kernels for levels of any width."""
        out = torch.empty_like(self.scores)
        levels, dual = self.levels, mode >= SLOPE
        reached = self._chart(levels.nodes, out.dtype)
        moved = self._chart(levels.nodes, out.dtype) if dual else reached
        goal_of = torch.empty(self.count, dtype=torch.int32, device=out.device)
        charts = values, weights, shifts, reached, moved, goal_of
        launch(
            kernels.downward, self.count, out.device, *charts, levels.goals, *self._goal_sizes(), levels.plan,
            levels.use_edge, levels.use_node, len(levels.plan) - 2, levels.nodes, levels.edges, *self._limits(),
            TWO=len(self.sizes) > 1, DUAL=dual, **_chunk(levels.widest[1], "USES"),
        )  # fmt: skip
        block = min(next_power_of_2(self.parts_count), 256)
        launch(
            kernels.gather, self.count * -(-self.parts_count // block), out.device, *charts, levels.part_edge, levels.part_node,
            out, levels.nodes, levels.edges, self.parts_count, levels.part_edge.shape[1], DUAL=dual, PARTS=block,
        )  # fmt: skip
        return out

    def _upward(self, mode: int, seeds: Tensor | None, direction: Tensor | None) -> tuple[Tensor, ...]:
        levels, s = self.levels, self.scores
        dual = mode >= SLOPE
        values, weights = self._chart(levels.nodes, torch.float64), self._chart(levels.edges, s.dtype)
        rates = self._chart(levels.nodes, torch.float64) if dual else values
        shifts = self._chart(levels.edges, s.dtype) if dual else weights
        module, tile = _tile(levels.widest[0], levels.widest[2], "EDGES")
        launch(
            module.upward, self.count, s.device, *self._given(seeds, direction), values, rates, weights, shifts, levels.plan,
            levels.left, levels.right, levels.part, len(levels.plan) - 2, levels.nodes, levels.edges, self.parts_count,
            MODE=mode, BINARY=levels.binary, **tile,
        )  # fmt: skip
        return values, rates, weights, shifts

    def _chart(self, size: int, dtype: torch.dtype) -> Tensor:
        return torch.empty(self.count, size + 1, dtype=dtype, device=self.scores.device)

    def _goal_sizes(self) -> tuple[Tensor, Tensor]:
        return self.sizes[0], self.sizes[-1]

    def _limits(self) -> tuple[int, int]:
        return _limits(self.layout, self.scores.shape)


def _through(levels: Levels, layout: Layout, shape: torch.Size, mode: int) -> Fixed | None:
    """What all launches of `through` for a hypergraph have in common; None where it takes the kernels for any width."""
    edges, uses = (_tile(levels.widest[i], levels.widest[2], name) for i, name in enumerate(("EDGES", "USES")))
    if edges[0] is not narrow or uses[0] is not narrow or mode == MAXIMUM:
        return None
    tile = edges[1] | uses[1] | {"num_warps": max(edges[1]["num_warps"], uses[1]["num_warps"])}
    return Fixed(
        levels.plan, levels.left, levels.right, levels.part, levels.goals, levels.use_edge, levels.use_node, levels.part_edge,
        levels.part_node, len(levels.plan) - 2, levels.nodes, levels.edges, levels.parts, levels.part_edge.shape[1],
        *_limits(layout, torch.Size((1, *shape))), MODE=mode, TWO=len(layout.sizes) > 1, BINARY=levels.binary,
        PARTS=min(next_power_of_2(levels.parts), 1024), **tile,
    )  # fmt: skip


@functools.cache
def _limits(layout: Layout, shape: torch.Size) -> tuple[int, int]:
    """The largest values of the first and the last size."""
    limits = [layout.limit(i, shape) or 0 for i in range(len(layout.sizes))]
    return limits[0], limits[-1]


@functools.cache
def _tile(edges: int, nodes: int, name: str) -> tuple[ModuleType, dict[str, int]]:
    """The kernels for levels of so many nodes with so many edges each, and how much of a level they take at once.

    A program has few warps, as they wait for each other at every level.
    """
    wide, tall = max(next_power_of_2(edges), 4), max(next_power_of_2(nodes), 8)
    if wide * tall <= ONE_TILE:
        return narrow, {"NODES": tall, name: wide, "num_warps": min(max(wide * tall // 256, 1), 8)}
    return kernels, _chunk(edges, name)


def _chunk(edges: int, name: str) -> dict[str, int]:
    """How much of a level of any width is taken at once."""
    wide = min(max(next_power_of_2(edges), 4), 32)
    return {"NODES": 1024 // wide, name: wide}
