"""SparseMAP of a family's structures: from scores and a warm start to a solution, by the operator."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from pullback.inference._torch.derivatives import may_be_differentiated
from pullback.inference.front.family import Family
from pullback.inference.front.layout import Flat
from pullback.inference.front.plan import call
from pullback.inference.sparsemap.solution import (
    ActiveSet,
    PathSet,
    SparseMAPSolution,
    VertexSet,
    start_vertices,
    stops,
)


def project(
    family: Family,
    flat: Flat,
    options: tuple[Any, ...],
    *,
    warm_start: Tensor | SparseMAPSolution | None = None,
    max_iterations: int | None = None,
    tolerance: float | None = None,
) -> SparseMAPSolution:
    """The projections of scores `[B, *parts]` onto the convex hull of the structures.

    A warm start, structures of the shape of the caller's scores or an earlier solution, is only a hint: what is no
    structure, or is forbidden now, is ignored. `max_iterations` calls of the oracle are enough for an example, by default
    10 K + 1000 for K parts, but 4000 at most: only nearly equal scores of many parts need more. Examples that have not
    converged by then are reported. A duality gap of `tolerance` is small enough; for the default see `stops`.
    """
    scores, batch, parts = flat.scores, flat.batch, flat.scores.shape[1:]
    limit, enough = stops(parts, flat.dtype, max_iterations, tolerance)
    most = family.most_parts(tuple(parts), options[:-1])
    starts = None
    if warm_start is not None:
        starts = start_vertices(warm_start, batch + parts, len(parts), most, by_column=family.layout.centre == (-2,))
    if starts is None:
        none = scores.shape[0], 0
        starts = scores.new_empty((*none, most), dtype=torch.int32), scores.new_empty(none, dtype=torch.float64)
    elif starts[0].device != scores.device:
        starts = starts[0].to(scores.device), starts[1].to(scores.device)
    differentiated = may_be_differentiated(scores)  # which takes structures that span the face of mu
    given = scores, *flat.sizes, *starts, limit, differentiated, enough
    mu, vertices, weights, counts, gap, calls, converged = call(family, "sparsemap", given, options[:-1], options[-1])
    mu = flat.restore(mu)
    active: ActiveSet = VertexSet(vertices, weights, counts, batch, parts, mu.dtype)
    if vertices.dtype == torch.int64:  # edges and their flows
        active = PathSet(vertices, weights, counts, batch, parts, mu.dtype, most)
    if len(batch) != 1:
        gap, calls, converged = flat.reshape(gap), flat.reshape(calls), flat.reshape(converged)
    return SparseMAPSolution(mu, gap, calls, converged, active)
