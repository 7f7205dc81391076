"""The model of a bed, for many replicas at a time."""

from __future__ import annotations

import torch
from torch import Tensor

from pullback_study.tasks.planted.beds import Bed, Shapes
from pullback_study.tasks.replicas import Parameters
from pullback_study.tasks.streams import key


class Model(Parameters):
    """Encoder, decoder and, for a bag of parts, one weight per part.

    Args:
        bed: whose encoder and decoder.
        encoder: whether there is one; baselines have none.
        bag: whether the decoder sees a learned weight for each part, the same for all examples, in place of a structure.
    """

    def __init__(self, bed: Bed, *, encoder: bool, bag: bool) -> None:
        weights: Shapes = {"bag": (tuple(bed.free.shape), 0.1)} if bag else {}
        every: Shapes = {**(bed.encoder() if encoder else {}), **bed.decoder(), **weights}
        super().__init__({name: shape for name, (shape, _) in every.items()})
        self._spreads = [spread for _, spread in every.values()]

    def initial(self, seed: int) -> Tensor:
        """Those of encoder and decoder do not depend on each other."""
        parts = []
        for name, size, spread in zip(self.shapes, self.sizes, self._spreads, strict=True):
            generator = torch.Generator().manual_seed(key("parameters", name, seed))
            parts.append(spread * torch.randn(size, generator=generator, dtype=torch.float64))
        return torch.cat(parts)
