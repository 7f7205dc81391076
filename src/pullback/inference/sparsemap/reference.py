"""SparseMAP of dependency trees: the plain active-set method over the reference argmax, slow, obviously right."""

from __future__ import annotations

import importlib
import warnings

import numpy as np
import torch
from torch import Tensor

from pullback.inference import checks
from pullback.inference.sparsemap.dense import Search
from pullback.inference.sparsemap.operation import active_set_capacity
from pullback.inference.sparsemap.solution import NotConverged, not_converged
from pullback.inference.trees import TREES, from_heads, to_heads


def sparsemap(
    scores: Tensor,
    lengths: Tensor,
    start_heads: Tensor,
    start_weights: Tensor,
    max_iterations: int,
    complete: bool,
    projective: bool,
    multiroot: bool,
    validate: bool,
) -> tuple[Tensor, ...]:
    """A warm start changes the work and not the answer, so it is ignored here; active sets are always completed."""
    batch, n = scores.shape[0], scores.shape[-1]
    oracle = importlib.import_module(f"pullback.inference.{'eisner' if projective else 'chu_liu_edmonds'}.reference")
    oracle.argmax(scores, lengths, multiroot=multiroot, validate=validate)
    ok = TREES.layout.status(scores, (lengths,)) == checks.OK
    mu = torch.zeros_like(scores)
    heads = torch.full((batch, active_set_capacity(n), n), -1, dtype=torch.int16)
    weights = torch.zeros(heads.shape[:2], dtype=torch.float64)
    sizes, calls = torch.zeros(batch, dtype=torch.int32), torch.zeros(batch, dtype=torch.int32)
    gap, converged = torch.zeros(batch, dtype=torch.float64), torch.ones(batch, dtype=torch.bool)
    sizes[lengths == 0], weights[lengths == 0, 0] = 1, 1.0
    for b in torch.nonzero(ok & (lengths > 0)).flatten().tolist():
        length = int(lengths[b])
        s = scores[b, :length, :length].double()
        search = Search(s.flatten().numpy(), np.empty((0, s.numel())), np.empty(0))
        while not search.done:
            residual = torch.from_numpy(search.residual()).reshape(1, length, length)
            z = oracle.argmax(residual, lengths[b : b + 1], multiroot=multiroot, validate=False)
            if not z.nan_to_num().any():
                break  # no feasible tree, and nobody wants to know
            search.advance(z.flatten().numpy(), max_iterations)
        k = len(search.weights)
        mu[b, :length, :length] = torch.from_numpy(search.mean).reshape(length, length)
        heads[b, :k, :length] = to_heads(torch.from_numpy(search.vertices).reshape(k, length, length)).short()
        weights[b, :k] = torch.from_numpy(search.weights)
        sizes[b], gap[b], calls[b], converged[b] = k, search.gap, search.calls, search.converged
    if not converged.all():
        warnings.warn(not_converged(max_iterations, converged, gap), NotConverged, stacklevel=2)
    return mu, heads, weights, sizes, gap, calls, converged


def sparsemap_vjp(
    heads: Tensor, sizes: Tensor, lengths: Tensor, direction: Tensor, validate: bool
) -> Tensor:
    """The projection onto the directions between the active trees, by least squares."""
    result = torch.zeros_like(direction)
    for b, (size, length) in enumerate(zip(sizes.tolist(), lengths.tolist(), strict=True)):
        trees = from_heads(heads[b, :size, :length].long(), torch.float64).flatten(1)
        directions = (trees[1:] - trees[:1]).T
        if directions.numel() > 0:
            used = trees.any(0)
            v = torch.where(used, direction[b, :length, :length].double().flatten(), 0.0)
            steps = torch.linalg.lstsq(directions, v[:, None], driver="gelsd").solution
            result[b, :length, :length] = (directions @ steps).reshape(length, length)
    return result
