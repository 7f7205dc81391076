"""From scores and a warm start to a solution: SparseMAP of a family's structures, by the operator."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pullback.inference._torch.derivatives import may_be_differentiated, transforming
from pullback.inference.front import plan
from pullback.inference.front.family import Family
from pullback.inference.front.layout import Flat
from pullback.inference.sparsemap.solution import ActiveSet, PathSet, SparseMAPSolution, VertexSet


def search(
    family: Family,
    flat: Flat,
    options: tuple[Any, ...],
    validate: bool,
    warm_start: Tensor | SparseMAPSolution | None = None,
    max_iterations: int | None = None,
    tolerance: float | None = None,
) -> tuple[Tensor, ...]:
    """The results of the operation for scores `[B, *parts]`: their projections onto the convex hull of the structures, first.

    A warm start, structures of the shape of the caller's scores or an earlier solution, is only a hint: what is no
    structure, or is forbidden now, is ignored. `max_iterations` calls of the oracle are enough for an example, by default
    10 K + 1000 for K parts, but 4000 at most: only nearly equal scores of many parts need more. Examples that have not
    converged by then are reported. A duality gap of `tolerance` is small enough; for the default see `stops`.
    """
    scores = flat.scores
    batch, parts = scores.shape[0], scores.shape[1:]
    limit, enough = stops(parts, flat.dtype, max_iterations, tolerance)
    most, starts = family.most_parts(tuple(parts), *options), None
    if warm_start is not None:
        by_column = family.layout.centre == (-2,)
        starts = start_vertices(warm_start, flat.batch + parts, len(parts), most, by_column)
    if starts is None:
        starts = scores.new_empty((batch, 0, most), dtype=torch.int32), scores.new_empty((batch, 0), dtype=torch.float64)
    elif starts[0].device != scores.device:
        starts = starts[0].to(scores.device), starts[1].to(scores.device)
    differentiated = may_be_differentiated(scores)  # which takes structures that span the face of mu
    given = scores, *flat.sizes, *starts, limit, differentiated, enough
    found: tuple[Tensor, ...] = plan.call(family, "sparsemap", given, options, validate, "", flat.route)
    return found


def solution(flat: Flat, found: tuple[Tensor, ...], most: int) -> SparseMAPSolution:
    """The results of a search as the caller sees them; a structure has at most `most` parts."""
    mu, vertices, weights, counts, gap, calls, converged = found
    mu, batch, parts = flat.restore(mu), flat.batch, flat.scores.shape[1:]
    active: ActiveSet = VertexSet(vertices, weights, counts, batch, parts, mu.dtype)
    if vertices.dtype == torch.int64:  # edges and their flows
        active = PathSet(vertices, weights, counts, batch, parts, mu.dtype, most)
    if len(batch) != 1:
        gap, calls, converged = flat.reshape(gap), flat.reshape(calls), flat.reshape(converged)
    return SparseMAPSolution(mu, gap, calls, converged, active)


def stops(parts: torch.Size, dtype: torch.dtype, max_iterations: int | None, tolerance: float | None) -> tuple[int, float]:
    """When a search ends: how many calls of an argmax are enough for an example, and a duality gap that is small enough.

    By default 10 K + 1000 calls for K parts, 4000 at most, as each takes longer than the one before; and a gap of 0 for
    float64, which is searched until the gap is rounding, and of 1e-12 for all others, whose results are then within 1e-6.
    """
    limit = min(10 * parts.numel() + 1000, 4000) if max_iterations is None else max_iterations
    if tolerance is None:
        return limit, 0.0 if dtype == torch.float64 else 1e-12
    return limit, float(tolerance)


def start_vertices(
    warm_start: Tensor | SparseMAPSolution | None,
    shape: torch.Size,
    event_dims: int,
    most: int | None = None,
    by_column: bool = False,
) -> tuple[Tensor, Tensor] | None:
    """The structures of a warm start: lists of parts `[B, k, L]`, int32, and weights `[B, k]`, float64.

    `shape` is that of the scores, of which the last `event_dims` dimensions are parts; `most` is L, if it is known. With
    `by_column` the parts of a matrix are listed column by column, as oracles of trees do: arc m is that of word m.
    """
    if warm_start is None:
        return None
    z = warm_start if isinstance(warm_start, Tensor) else warm_start.mu
    if z.shape != shape:
        raise ValueError(
            f"warm_start has shape {list(z.shape)} and scores {list(shape)}; "
            f"pass structures of the shape of the scores, or a solution for scores of that shape"
        )
    batch, parts = shape[: len(shape) - event_dims], shape[len(shape) - event_dims :]
    if isinstance(warm_start, SparseMAPSolution):
        active = warm_start.active_set
        active = active.paths if isinstance(active, PathSet) else active
        if isinstance(active, VertexSet) and most in (None, active.vertices.shape[-1]):
            return active.trimmed
        z, weights = active.structures, active.weights.reshape(batch.numel(), -1)
    else:
        weights = z.new_ones((batch.numel(), 1), dtype=torch.float64)
    z = z.detach().reshape(batch.numel(), weights.shape[1], parts.numel())
    if most is None:
        most = int((z != 0).sum(-1).max()) if z.numel() else 0
    return listed(z, most, parts[-1] if by_column else 1), weights


def listed(z: Tensor, most: int, columns: int = 1) -> Tensor:
    """Lists of parts `[..., most]`, int32, of structures `[..., parts]` of zeros and ones; what is no structure has no parts.

    They are listed column by column of a matrix with `columns` columns.
    """
    if z.is_cpu and not transforming() and not torch.compiler.is_compiling() and plan.serving("cpu") == "cpu":
        from pullback.inference.sparsemap.solve import list_parts  # compiled

        z = z if z.dtype in (torch.float32, torch.float64) else z.double()
        *batch, parts = z.shape
        found, count = np.empty((*batch, most), np.int32), math.prod(batch)
        list_parts(z.contiguous().numpy().reshape(count, parts), columns, found.reshape(count, most))
        return torch.from_numpy(found)
    columns = max(columns, 1)
    z = z.unflatten(-1, (-1, columns)).mT.flatten(-2)
    ones = z == 1
    place = ones.cumsum(-1)
    right = ((z == 0) | ones).all(-1, keepdim=True) & (place[..., -1:] <= most)
    place = torch.where(ones & right, place - 1, most)
    lists = torch.full((*z.shape[:-1], most + 1), -1, dtype=torch.int32, device=z.device)
    own = torch.arange(z.shape[-1], dtype=torch.int32, device=z.device).reshape(-1, columns).mT.flatten()
    return lists.scatter_(-1, place, own.expand(z.shape))[..., :most].contiguous()
