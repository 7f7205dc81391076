"""Each inference on one batch of scores, made at most once."""

from __future__ import annotations

from torch import Tensor

from pullback.structures import Structure


class Inference:
    """A structure and scores without a gradient, with the results that starts and losses share.

    Args:
        structure: the structure.
        scores: `[..., *parts]`.
        argmax: the argmax of the scores, known from the forward pass.
    """

    def __init__(self, structure: Structure, scores: Tensor, argmax: Tensor) -> None:
        self.structure = structure
        self.scores = scores
        self.argmax = argmax
        self._marginals: Tensor | None = None

    def marginals(self) -> Tensor:
        if self._marginals is None:
            self._marginals = self.structure.marginals(self.scores)
        return self._marginals
