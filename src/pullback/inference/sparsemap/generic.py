"""SparseMAP of any structure that has an argmax: the active-set method on dense vectors. See README.md."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from pullback.inference.layout import result_dtype, working
from pullback.inference.sparsemap.dense import Search
from pullback.inference.sparsemap.solution import DenseSet, NotConverged, SparseMAPSolution, not_converged
from pullback.inference.torch_seam.derivatives import keep

if TYPE_CHECKING:
    from pullback.structures.base import Structure


def project(
    structure: Structure,
    scores: Tensor,
    *,
    warm_start: Tensor | SparseMAPSolution | None = None,
    max_iterations: int | None = None,
) -> SparseMAPSolution:
    """The projections of scores `[..., *parts]` onto the convex hull of the structures.

        argmin over mu in conv(Z) of ||mu - s||^2

    The oracle, `structure.argmax`, is called on the whole batch until the last example is solved.

    Args:
        structure: any, with an `argmax`.
        scores: `[..., *parts]`; `-inf` forbids a part.
        warm_start: structures of the shape of the scores, or an earlier solution. They must be structures of Z;
            those that use a part that is forbidden now are ignored.
        max_iterations: how many calls of the oracle are enough, 10 K + 1000 for K parts by default, several times
            what it takes. What has not converged by then is reported.
    """
    s = working(scores)
    batch, parts = s.shape[: s.dim() - structure.event_dims], s.shape[s.dim() - structure.event_dims :]
    limit = 10 * parts.numel() + 1000 if max_iterations is None else max_iterations
    if (s.isnan() | (s == torch.inf)).any():
        raise ValueError("scores contain NaN or +inf; they must be finite, or -inf to forbid a part")
    starts, start_weights = _starts(warm_start, s.shape, len(parts))
    flat = s.detach().reshape(batch.numel(), parts.numel()).double().cpu().numpy()
    searches = [Search(*example) for example in zip(flat, starts, start_weights, strict=True)]
    _solve(structure, s.detach(), searches, limit)
    structures, weights, used = (t.to(s.device) for t in _stack(searches, parts.numel()))
    mu = _Mean.apply(s, structures, weights, used).to(result_dtype(scores))

    def each(name: str) -> Tensor:
        return torch.tensor([getattr(search, name) for search in searches]).to(s.device).reshape(batch)

    gap, calls, converged = each("gap").double(), each("calls").int(), each("converged").bool()
    if not converged.all():
        warnings.warn(not_converged(limit, converged.flatten(), gap), NotConverged, stacklevel=2)
    k = weights.shape[-1]
    active = DenseSet(structures.to(mu).reshape(*batch, k, *parts), weights.reshape(*batch, k))
    return SparseMAPSolution(mu, gap, calls, converged, active)


def _solve(structure: Structure, s: Tensor, searches: list[Search], limit: int) -> None:
    """Call the oracle on s - mu, all examples at once, until each has what it needs."""
    while not all(search.done for search in searches):
        residual = np.stack([search.residual() for search in searches])
        z = structure.argmax(torch.from_numpy(residual).reshape(s.shape).to(s.device))
        found = z.detach().reshape(residual.shape).double().cpu().numpy()
        for b, (search, vertex) in enumerate(zip(searches, found, strict=True)):
            if vertex[search.forbidden].any():
                raise ValueError(
                    f"example {b} of the batch has no feasible structure: the argmax uses a part whose score is -inf"
                )
            if not search.done:
                search.advance(vertex, limit)


def _starts(
    warm_start: Tensor | SparseMAPSolution | None, shape: torch.Size, event_dims: int
) -> tuple[np.ndarray, np.ndarray]:
    """Structures `[B, k, K]` and weights `[B, k]` to start from."""
    batch, parts = shape[: len(shape) - event_dims], shape[len(shape) - event_dims :]
    flat, size = batch.numel(), parts.numel()
    if warm_start is None:
        return np.empty((flat, 0, size)), np.empty((flat, 0))
    z = warm_start if isinstance(warm_start, Tensor) else warm_start.mu
    if z.shape != shape:
        raise ValueError(
            f"warm_start has shape {list(z.shape)} and scores {list(shape)}; "
            f"pass structures of the shape of the scores, or a solution for scores of that shape"
        )
    if isinstance(warm_start, SparseMAPSolution):
        weights = warm_start.weights.reshape(flat, -1)
        structures = warm_start.structures.reshape(flat, weights.shape[-1], size)
    else:
        weights, structures = torch.ones(flat, 1), z.reshape(flat, 1, size)
    return structures.detach().double().cpu().numpy(), weights.double().cpu().numpy()


def _stack(searches: list[Search], size: int) -> tuple[Tensor, Tensor, Tensor]:
    """The active sets as one: structures `[B, k, K]`, weights `[B, k]`, and which of them there are, `[B, k]`."""
    k = max((len(search.weights) for search in searches), default=0)
    structures, weights = np.zeros((len(searches), k, size)), np.zeros((len(searches), k))
    used = np.zeros(weights.shape, bool)
    for b, search in enumerate(searches):
        structures[b, : len(search.weights)] = search.vertices
        weights[b, : len(search.weights)] = search.weights
        used[b, : len(search.weights)] = True
    return torch.from_numpy(structures), torch.from_numpy(weights), torch.from_numpy(used)


class _Mean(torch.autograd.Function):
    """The mean of the active set; its Jacobian in the scores projects onto the directions between its members."""

    @staticmethod
    def forward(ctx: Any, s: Tensor, structures: Tensor, weights: Tensor, used: Tensor) -> Tensor:
        keep(ctx, structures, used)
        return (weights[..., None] * structures).sum(1).reshape(s.shape).to(s.dtype)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None, None]:
        return _Projector.apply(grad, *ctx.saved_tensors), None, None, None

    @staticmethod
    def jvp(ctx: Any, tangent: Tensor, *rest: Any) -> Tensor:
        return _Projector.apply(tangent, *ctx.saved_tensors)


class _Projector(torch.autograd.Function):
    """The orthogonal projection of vectors onto the directions between active structures."""

    @staticmethod
    def forward(ctx: Any, vectors: Tensor, structures: Tensor, used: Tensor) -> Tensor:
        directions = torch.where(used[..., None], structures - structures[:, :1], 0.0).transpose(-1, -2)
        basis, lengths, _ = torch.linalg.svd(directions, full_matrices=False)
        basis = torch.where((lengths > 1e-6)[..., None, :], basis, 0.0)
        somewhere = (used[..., None] & (structures != 0)).any(1)
        flat = torch.where(somewhere, vectors.reshape(somewhere.shape).double(), 0.0)[..., None]
        return (basis @ (basis.transpose(-1, -2) @ flat)).reshape(vectors.shape).to(vectors.dtype)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        raise NotImplementedError(
            "the second derivative of sparsemap is not available: differentiate once (drop create_graph=True)"
        )
