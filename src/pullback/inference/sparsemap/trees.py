"""SparseMAP of dependency trees: from scores and a warm start to a solution, by the operator."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from pullback.inference.layout import Flat
from pullback.inference.sparsemap.solution import SparseMAPSolution
from pullback.inference.torch_seam.derivatives import may_be_differentiated
from pullback.inference.trees import TREES, from_heads, to_heads


@dataclass(frozen=True)
class TreeSet:
    """An active set of trees as heads: dense only when someone asks.

    Args:
        heads: `[B, capacity, n]`, int16: a word's own index is the root, -1 padding.
        all_weights: `[B, capacity]`, float64.
        sizes: `[B]`: how many of them are in use; the rest was never written.
        batch: the leading dimensions of the scores.
        dtype: of the structures.
    """

    heads: Tensor
    all_weights: Tensor
    sizes: Tensor
    batch: torch.Size
    dtype: torch.dtype

    @property
    def structures(self) -> Tensor:
        heads, _ = self.trimmed()
        return from_heads(heads.long(), self.dtype).reshape(*self.batch, *heads.shape[1:], heads.shape[-1])

    @property
    def weights(self) -> Tensor:
        _, weights = self.trimmed()
        return weights.reshape(*self.batch, weights.shape[-1])

    def trimmed(self) -> tuple[Tensor, Tensor]:
        """Heads `[B, k, n]` and weights `[B, k]` for the largest active set, -1 and 0 where they are not used."""
        k = int(self.sizes.max()) if len(self.sizes) else 0
        used = torch.arange(k, device=self.sizes.device) < self.sizes[:, None]
        heads = torch.where(used[..., None], self.heads[:, :k], -1)
        return heads, torch.where(used, self.all_weights[:, :k], 0.0)


def project(
    flat: Flat,
    options: tuple[bool, bool, bool],
    *,
    warm_start: Tensor | SparseMAPSolution | None = None,
    max_iterations: int | None = None,
) -> SparseMAPSolution:
    """The projections of scores `[B, n, n]` onto the convex hull of the trees.

    Args:
        flat: the scores.
        options: projective, multiroot, validate.
        warm_start: trees of the shape of the caller's scores, or an earlier solution. Only a hint: what is no
            tree, or is forbidden now, is ignored.
        max_iterations: how many calls of the oracle are enough for a sentence, 10 n^2 + 1000 by default,
            several times what it takes. A sentence that has not converged by then is reported.
    """
    scores, n, batch = flat.scores, flat.scores.shape[-1], flat.batch
    limit = 10 * n * n + 1000 if max_iterations is None else max_iterations
    heads, weights = _start(warm_start, scores, batch)
    differentiated = may_be_differentiated(scores)  # which takes trees that span the face of mu
    mu, active, all_weights, sizes, gap, calls, converged = TREES.sparsemap(
        scores, *flat.sizes, heads, weights, limit, differentiated, *options
    )
    mu = flat.restore(mu)
    trees = TreeSet(active, all_weights, sizes, batch, mu.dtype)
    return SparseMAPSolution(mu, gap.reshape(batch), calls.reshape(batch), converged.reshape(batch), trees)


def _start(warm_start: Tensor | SparseMAPSolution | None, scores: Tensor, batch: torch.Size) -> tuple[Tensor, Tensor]:
    """The trees to start from: heads `[B, k, n]`, int16, and weights `[B, k]`."""
    flat, n = scores.shape[0], scores.shape[-1]
    if warm_start is None:
        heads = scores.new_empty((flat, 0, n), dtype=torch.int16)
        return heads, scores.new_empty((flat, 0), dtype=torch.float64)
    z = warm_start if isinstance(warm_start, Tensor) else warm_start.mu
    if z.shape != (*batch, n, n):
        raise ValueError(
            f"warm_start has shape {list(z.shape)} and scores {[*batch, n, n]}; "
            f"pass trees of the shape of the scores, or a solution for scores of that shape"
        )
    if isinstance(warm_start, SparseMAPSolution):
        heads, weights = _active_trees(warm_start, n)
    else:
        heads = to_heads(z.detach().reshape(flat, 1, n, n))
        weights = scores.new_ones((flat, 1), dtype=torch.float64)
    return heads.to(scores.device, torch.int16), weights.to(scores.device)


def _active_trees(solution: SparseMAPSolution, n: int) -> tuple[Tensor, Tensor]:
    if isinstance(solution.active_set, TreeSet):
        return solution.active_set.trimmed()
    structures, weights = solution.structures, solution.weights
    return to_heads(structures.reshape(-1, weights.shape[-1], n, n)), weights.reshape(-1, weights.shape[-1])
