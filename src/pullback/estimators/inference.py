"""Each inference on one batch of scores, made at most once."""

from __future__ import annotations

from torch import Tensor

from pullback.structures import Structure


class Inference:
    """A structure and scores without a gradient, with the results that starts and losses share.

    Args:
        structure: the structure.
        scores: `[..., *parts]`.
        z: what the decoder sees in the forward pass.
        is_argmax: whether z is the argmax of the scores.
    """

    def __init__(self, structure: Structure, scores: Tensor, z: Tensor, *, is_argmax: bool = True) -> None:
        self.structure = structure
        self.scores = scores
        self.z = z
        self._argmax = z if is_argmax else None
        self._marginals: Tensor | None = None

    @property
    def argmax(self) -> Tensor:
        """The argmax of the scores."""
        if self._argmax is None:
            self._argmax = self.structure.argmax(self.scores)
        return self._argmax

    def marginals(self) -> Tensor:
        if self._marginals is None:
            self._marginals = self.structure.marginals(self.scores)
        return self._marginals
