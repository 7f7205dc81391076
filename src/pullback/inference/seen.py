"""What is known of a tensor of scores, so that a chain of operations flattens and checks it once.

Only a weak reference to the scores is kept: neither they nor the graph behind them live longer for it.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence

import torch
from torch import Tensor

from pullback.inference.layout import Flat
from pullback.inference.offload import capturing
from pullback.inference.torch_seam.derivatives import transforming

_FULL = (torch.float32, torch.float64)


def can_be_remembered(scores: Tensor, sizes: Sequence[Tensor | None]) -> bool:
    """Not what has no version, is converted (a copy would not see it change), is seen by a transform, or belongs to a CUDA
    graph that is being captured.
    """
    if scores.dtype not in _FULL or scores.is_inference() or transforming() or capturing(scores):
        return False
    for size in sizes:
        if size is not None and (size.dtype != torch.long or size.device != scores.device or size.is_inference()):
            return False
    return True


class Seen:
    """Scores that were flattened, as long as neither they nor the sizes change.

    A version tells of changes that PyTorch makes, but not of those that NumPy makes to memory that it shares: sizes that were
    copied are compared with what they were.

    Attributes:
        checked: whether their values were found good, and need not be looked at again.
    """

    def __init__(self, scores: Tensor, sizes: Sequence[Tensor | None], flat: Flat) -> None:
        self.checked = False
        self._scores, self._version = weakref.ref(scores), scores._version
        self._sizes, self._versions = tuple(sizes), [-1 if size is None else size._version for size in sizes]
        self._copied = [
            (size, size.clone())
            for size in sizes
            if size is not None and size.is_cpu and (size.shape != flat.batch or not size.is_contiguous())
        ]
        self._known = flat.layout, flat.sizes, flat.batch, flat.dtype

    def is_about(self, scores: Tensor, sizes: Sequence[Tensor | None]) -> bool:
        """Whether these are the scores and sizes that were seen, unchanged."""
        if scores is None or self._scores() is not scores or self._version != scores._version or capturing(scores):
            return False
        for size, known, version in zip(sizes, self._sizes, self._versions, strict=True):
            if size is not known or (size is not None and size._version != version):
                return False
        return not self._copied or all(torch.equal(size, values) for size, values in self._copied)

    def flat(self, scores: Tensor) -> Flat:
        """The scores as one batch."""
        layout, sizes, batch, dtype = self._known
        s = scores if len(batch) == 1 else scores.reshape(batch.numel(), *scores.shape[len(batch) :])
        flat = Flat(layout, s, sizes, batch, dtype)
        flat.seen = self
        return flat
