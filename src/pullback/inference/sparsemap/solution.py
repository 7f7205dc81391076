"""The result of a SparseMAP solver: the projection and its certificate."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

Argmax = Callable[[Tensor, Tensor], Tensor]
"""From scores `[b, *parts]` and the numbers of these examples in the batch to their best structures."""
Starts = tuple[Tensor, Tensor]
"""Structures to start from, as lists of parts `[B, k, width]`, and their weights `[B, k]`."""


class NotConverged(RuntimeWarning):
    """SparseMAP reached its iteration limit: the result is an average of structures, but not the projection."""


def not_converged(limit: int, converged: Tensor, gap: Tensor) -> str:
    """Returns the warning about a batch of which some examples did not converge."""
    return (
        f"SparseMAP stopped at {limit} iterations before {int((~converged).sum())} of {len(converged)} examples had "
        f"converged (largest duality gap {float(gap.max()):.1e}); raise max_iterations"
    )


def warn(converged: Tensor, gap: Tensor, limit: int) -> None:
    """Warn of a batch of which some did not converge."""
    warnings.warn(not_converged(limit, converged, gap), NotConverged, stacklevel=3)


class ActiveSet(Protocol):
    """The structures whose weighted mean the projection is."""

    @property
    def structures(self) -> Tensor: ...

    @property
    def weights(self) -> Tensor: ...


@dataclass(frozen=True, repr=False)
class SparseMAPSolution:
    """A projection onto the marginal polytope, with a certificate of optimality.

    Attributes:
        mu: the projection, `[..., *parts]`, differentiable in the scores.
        gap: the duality gap `max over z of <s - mu, z - mu>`, `[...]`, float64: the squared distance to the
            exact projection is at most this.
        oracle_calls: the number of argmax calls per example, `[...]`.
        converged: whether the gap is within the tolerance, or rounding, `[...]`; False where an iteration limit was reached.
        active_set: the `structures` and `weights` of the average, which may be computed when they are read.
    """

    mu: Tensor
    gap: Tensor
    oracle_calls: Tensor
    converged: Tensor
    active_set: ActiveSet

    @property
    def structures(self) -> Tensor:
        """The active set, `[..., k, *parts]`: mu is their weighted mean. Unused slots are zero."""
        return self.active_set.structures

    @property
    def weights(self) -> Tensor:
        """`[..., k]`, float64, positive for the active structures and zero for unused slots."""
        return self.active_set.weights

    def __repr__(self) -> str:
        where = f", device={self.mu.device.type!r}" if self.mu.device.type != "cpu" else ""
        numbers = ""
        if not where and self.gap.numel() > 0:
            numbers = f", gap<={float(self.gap.max()):.1e}, converged={int(self.converged.sum())}/{self.converged.numel()}"
        return f"SparseMAPSolution(mu={list(self.mu.shape)}{numbers}{where})"


@dataclass(frozen=True, repr=False)
class VertexSet:
    """An active set as lists of parts, which is dense only when it is read.

    Args:
        vertices: `[B, k, L]`, int32: the flat indices of each structure's parts, padded with -1.
        all_weights: `[B, k]`, float64.
        counts: `[B]`: how many structures are in use; the others may hold anything.
        batch, parts, dtype: the leading and the last dimensions of the scores; of the structures.
    """

    vertices: Tensor
    all_weights: Tensor
    counts: Tensor
    batch: torch.Size
    parts: torch.Size
    dtype: torch.dtype

    @property
    def structures(self) -> Tensor:
        vertices, _ = self.trimmed
        return dense(vertices, self.parts.numel(), self.dtype).reshape(*self.batch, vertices.shape[1], *self.parts)

    @property
    def weights(self) -> Tensor:
        _, weights = self.trimmed
        return weights.reshape(*self.batch, weights.shape[1])

    @functools.cached_property
    def trimmed(self) -> tuple[Tensor, Tensor]:
        """Vertices `[B, k, L]` and weights `[B, k]` for the largest active set, -1 and 0 where they are not used."""
        size, counts = self.batch.numel(), self.counts.flatten()
        vertices = self.vertices.reshape(size, *self.vertices.shape[-2:])
        weights = self.all_weights.reshape(size, self.all_weights.shape[-1])
        k = int(counts.max()) if len(counts) else 0
        used = torch.arange(k, device=counts.device) < counts[:, None]
        return torch.where(used[..., None], vertices[:, :k], -1), torch.where(used, weights[:, :k], 0.0)


@dataclass(frozen=True, repr=False)
class PathSet:
    """An active set as a flow, which is decomposed into paths, and dense, only when it is read.

    Args:
        edges: `[B, k, 3]`, int64: the part, the tail and the head of each edge with a flow; tails ascend.
        flows: `[B, k]`, float64.
        counts, batch, parts, dtype: as in a `VertexSet`, of edges instead of structures.
        longest: how many parts a structure has at most.
    """

    edges: Tensor
    flows: Tensor
    counts: Tensor
    batch: torch.Size
    parts: torch.Size
    dtype: torch.dtype
    longest: int

    @property
    def structures(self) -> Tensor:
        return self.paths.structures

    @property
    def weights(self) -> Tensor:
        return self.paths.weights

    @functools.cached_property
    def paths(self) -> VertexSet:
        """The decomposition."""
        from pullback.inference.sparsemap.paths import decompose  # compiled

        found = decompose(self.edges, self.flows, self.counts, self.longest)
        return VertexSet(*found, self.batch, self.parts, self.dtype)


def dense(vertices: Tensor, parts: int, dtype: torch.dtype) -> Tensor:
    """Structures `[..., parts]` of zeros and ones from lists of their parts `[..., L]`."""
    z = torch.zeros(*vertices.shape[:-1], parts + 1, dtype=dtype, device=vertices.device)
    return z.scatter_(-1, torch.where(vertices < 0, parts, vertices).long(), 1.0)[..., :parts]
