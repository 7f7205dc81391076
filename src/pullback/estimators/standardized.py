"""Scores of a standard place and size, for any estimator (Sahoo et al., 2023, for the identity)."""

from __future__ import annotations

import torch
from torch import Tensor

from pullback.estimators.base import Downstream, Estimator
from pullback.estimators.checks import event_dims, switch
from pullback.estimators.masks import counted
from pullback.estimators.stateful import Stateful
from pullback.structures import Structure


class Standardized(Stateful, Estimator):
    """Any estimator on standardised scores: without the directions in which all structures score the same, and of norm 1.

        x = s - mean(s),    objective of the estimator on x / norm(x),    gradient through the standardisation

    The mean is over groups of allowed parts in which every structure has the same number of ones: all parts of a
    categorical or a subset, each column of a dependency tree (the heads of a word), each position of a chain, each row of a
    matching. Other structures are only scaled. The norm is over the allowed parts of one structure. Neither changes the argmax.
    All-zero scores stay zero. `STEIdentity` inside is *identity with projection*.

    Large finite masks act like -inf: a score of at most -1e8 (in float16, the smallest number) that is ten times as far from
    zero as the largest score above that in its structure counts in neither the mean nor the norm, stays as it is, and has no
    gradient. The argmax is then unchanged if a structure without masks exists.

    Args:
        estimator: the estimator to wrap.
        center: subtract the mean.
        scale: divide by the norm.

    >>> from pullback import Categorical, STEIdentity
    >>> scores = torch.tensor([[2.0, 1.0, 0.0]], requires_grad=True)
    >>> cost = torch.tensor([1.0, 0.0, 1.0])
    >>> estimator = Standardized(STEIdentity(), scale=False)
    >>> estimator.objective(Categorical(), scores, lambda z: z @ cost).sum().backward()
    >>> scores.grad
    tensor([[ 0.3333, -0.6667,  0.3333]])
    """

    def __init__(self, estimator: Estimator, center: bool = True, scale: bool = True) -> None:
        super().__init__()
        if not isinstance(estimator, Estimator):
            raise TypeError(f"Standardized: estimator is {estimator!r}; it must be an estimator, like STEIdentity()")
        self.estimator = estimator
        self.center = switch(self, "center", center)
        self.scale = switch(self, "scale", scale)

    def objective(self, structure: Structure, scores: Tensor, downstream: Downstream) -> Tensor:
        return self.estimator.objective(structure, self.standardize(structure, scores), downstream)

    def __call__(self, structure: Structure, scores: Tensor) -> Tensor:
        return self.estimator(structure, self.standardize(structure, scores))

    def noiseless(self, structure: Structure, scores: Tensor) -> Tensor:
        return self.estimator.noiseless(structure, self.standardize(structure, scores))

    def standardize(self, structure: Structure, scores: Tensor) -> Tensor:
        """The standardised scores, of the shape of the scores.

        Parts that are not allowed, and large finite masks, are unchanged, without a gradient.
        """
        allowed = counted(structure, scores)
        wide = scores.to(torch.promote_types(scores.dtype, torch.float32))
        x = torch.where(allowed, wide, 0.0)
        dims, largest = event_dims(structure), _largest(structure, x)
        if self.center and structure.centre_dims:
            count = allowed.sum(structure.centre_dims, keepdim=True).clamp_min(1)
            x = torch.where(allowed, x - x.sum(structure.centre_dims, keepdim=True) / count, 0.0)
        if self.scale:
            left = _largest(structure, x)
            zero = left <= 8 * torch.finfo(x.dtype).eps * largest  # what centring leaves of equal scores is rounding
            # By the largest first: squares may overflow.
            x = torch.where(zero, x - x.detach(), x / torch.where(zero, 1.0, left))
            x = x / torch.where(zero, 1.0, x.square().sum(dims, keepdim=True)).sqrt()
        return torch.where(allowed, x, wide.detach()).to(scores.dtype)


def _largest(structure: Structure, x: Tensor) -> Tensor:
    """The largest absolute value of each structure's parts, `[..., 1]`."""
    dims = event_dims(structure)
    return x.detach().abs().amax(dims, keepdim=True) if x.numel() else x.detach().sum(dims, keepdim=True)
