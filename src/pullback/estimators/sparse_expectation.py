"""Sparse marginalisation (Correia et al., 2020): the expected loss over the structures of SparseMAP's support."""

from __future__ import annotations

import itertools

import torch
from torch import Tensor

from pullback.estimators.base import Downstream, Estimator, needs_objective
from pullback.estimators.checks import losses_of
from pullback.structures import Structure


class SparseExpectation(Estimator):
    """Sparse marginalisation: the decoder sees each structure of SparseMAP's support, and the gradient is exact.

        SparseMAP(s) = sum over a of w_a(s) z_a,
        objective sum over a of w_a(s) L(z_a),    gradient sum over a of L(z_a) grad w_a(s)

    The weights are differentiated on the solver's active set: w solves min over w of ||sum_a w_a z_a - s||^2 subject
    to sum_a w_a = 1. For a categorical they are sparsemax. For other structures the decomposition of SparseMAP(s) is
    *not unique*, and objective and gradient depend on the one that the solver found. At evaluation z is the argmax.

    `downstream` is called once per structure of the largest support in the batch (for T structures per example: once per
    combination). That number is read back from the device, which synchronises. The decoder needs no gradient for z.

    >>> from pullback import Categorical
    >>> scores = torch.tensor([[1.0, 0.5, -2.0]], requires_grad=True)
    >>> cost = torch.tensor([1.0, 0.0, 4.0])
    >>> losses = SparseExpectation().objective(Categorical(), scores, lambda z: z @ cost)
    >>> losses.sum().backward()
    >>> losses.detach(), scores.grad
    (tensor([0.7500]), tensor([[ 0.5000, -0.5000,  0.0000]]))
    """

    def objective(self, structure: Structure, scores: Tensor, downstream: Downstream) -> Tensor:
        structures, weights = support(structure, scores)
        batch = scores.shape[: scores.dim() - structure.event_dims]
        examples, inside = batch[:1].numel(), batch[1:].numel()  # several structures in one example
        z = structures.reshape(examples, inside, *structures.shape[len(batch) :])
        w = weights.reshape(examples, inside, weights.shape[-1])
        every = torch.arange(inside, device=scores.device)
        # Examples without structures, [B, 0, *parts], have one combination: the empty one, of weight 1.
        combinations = list(itertools.product(range(w.shape[-1]), repeat=inside))
        total: Tensor | None = None
        for slots in torch.tensor(combinations, dtype=torch.long, device=scores.device):
            chosen, weight = z[:, every, slots].reshape(scores.shape), w[:, every, slots].prod(1)
            losses = losses_of(structure, scores, downstream(chosen))
            weight = weight.reshape(losses.shape).to(losses.dtype)
            term = torch.where(weight == 0, weight, weight * losses)  # an unused slot counts for nothing, whatever its loss
            total = term if total is None else total + term
        assert total is not None
        return total

    def __call__(self, structure: Structure, scores: Tensor) -> Tensor:
        raise needs_objective(self, "the decoder sees several structures, and their losses are weighted")

    def noiseless(self, structure: Structure, scores: Tensor) -> Tensor:
        return structure.argmax(scores)


def support(structure: Structure, scores: Tensor) -> tuple[Tensor, Tensor]:
    """The structures of SparseMAP's support, `[..., k, *parts]`, and their weights, `[..., k]` of float64, differentiable.

    An unused slot repeats a structure of the example, with weight 0.
    """
    batch = scores.dim() - structure.event_dims
    if scores.shape[:batch].numel() == 0:
        return scores.detach().unsqueeze(batch), scores.flatten(batch).sum(-1, keepdim=True).double()
    with torch.no_grad():
        solution = structure.sparsemap_solution(scores.detach())
        order = solution.weights.argsort(dim=-1, descending=True, stable=True)
        size = max(1, int((solution.weights > 0).sum(-1).max())) if order.numel() else 1
        order = order[..., :size]
        weights = solution.weights.gather(-1, order).double()
        spread = order.reshape(order.shape + (1,) * structure.event_dims)
        every = solution.structures
        z = every.gather(order.dim() - 1, spread.expand(*order.shape, *every.shape[order.dim() :]))
        z = torch.where((weights > 0).reshape(spread.shape), z, z.narrow(order.dim() - 1, 0, 1))
    return z.to(scores.dtype), _weights(structure, scores, z, weights)


def _weights(structure: Structure, scores: Tensor, z: Tensor, weights: Tensor) -> Tensor:
    """The solver's weights, with the derivative of those of the nearest point to the scores in the structures' affine hull.

    Where structures depend on one another, so that weights are not unique, the smallest change of the weights.
    """
    parts, used = structure.event_dims, (weights > 0).double()
    flat = z.flatten(-parts).double() * used[..., None]
    # A part that no structure of the support uses does not matter, and may hold anything.
    seen = (flat != 0).any(-2)
    s = torch.where(seen, scores.flatten(-parts).double(), 0.0)
    k = used.shape[-1]
    system = flat.new_zeros(*used.shape[:-1], k + 1, k + 1)
    system[..., :k, :k] = flat @ flat.mT
    system[..., :k, k] = system[..., k, :k] = used
    inverse = torch.linalg.pinv(system, hermitian=True)[..., :k, :k]
    return weights + (inverse @ (flat @ (s - s.detach())[..., None]))[..., 0] * used
