"""The latent layer: arc scores in, losses or structures out, by whatever estimator it is given."""

from __future__ import annotations

import torch
from torch import Tensor

from pullback.estimators.base import Downstream, Estimator
from pullback.structures import DependencyTree, Structure
from pullback_study.text.timing import Stopwatch, TimedTrees


class LatentTrees:
    """Dependency trees, several roots allowed, and how a gradient gets through them.

    Args:
        estimator: any.
        projective: only trees without crossing arcs.
        stopwatch: adds up the time of inference.
        gradient_scale: what the gradient of the scores is multiplied with: S with the paper's scale of gamma, which
            divides the step size and not the surrogate by the S numbers that the loss is averaged over.
    """

    def __init__(
        self, estimator: Estimator, *, projective: bool, stopwatch: Stopwatch | None = None, gradient_scale: float = 1.0
    ) -> None:
        self.estimator = estimator
        self._projective = projective
        self._stopwatch = stopwatch
        self._gradient_scale = gradient_scale

    def objective(self, scores: Tensor, lengths: Tensor, downstream: Downstream) -> Tensor:
        """The losses of the examples, `[B]`, whose gradient reaches the scores `[B, ..., n, n]` and the decoder."""
        if self._gradient_scale != 1.0 and scores.requires_grad:
            scores.register_hook(lambda gradient: gradient * self._gradient_scale)
        trees = self._trees(lengths)
        timed: Structure = trees if self._stopwatch is None else TimedTrees(trees, self._stopwatch)
        return self.estimator.objective(timed, scores, downstream)

    def predict(self, scores: Tensor, lengths: Tensor) -> Tensor:
        """What the decoder sees at evaluation, without noise: the relaxation of a relaxed method, else the argmax."""
        return self.estimator.predict(self._trees(lengths), scores)

    def heads(self, scores: Tensor, lengths: Tensor) -> Tensor:
        """The best tree as heads, `[..., n]`: 0 is the root, -1 padding; for relaxed methods too."""
        trees = self._trees(lengths)
        return trees.heads(trees.argmax(scores))

    def _trees(self, lengths: Tensor) -> DependencyTree:
        return DependencyTree(lengths, projective=self._projective, multiroot=True)


def losses(logits: Tensor, labels: Tensor) -> Tensor:
    """The cross-entropy of each example, `[B]`."""
    return torch.nn.functional.cross_entropy(logits, labels, reduction="none")
