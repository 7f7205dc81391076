"""Replicas of one model; the parameters of each are a row of one matrix."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from pullback_study.tasks.planted.beds import Bed, Named, Shapes
from pullback_study.tasks.synthetic.streams import key


class Parameters:
    """Encoder, decoder and, for a bag of parts, one weight per part, in a matrix `[R, P]`.

    Args:
        bed: whose encoder and decoder.
        encoder: whether there is one; baselines have none.
        bag: whether the decoder sees a learned weight for each part, the same for all examples, in place of a structure.
    """

    def __init__(self, bed: Bed, *, encoder: bool, bag: bool) -> None:
        weights: Shapes = {"bag": (tuple(bed.free.shape), 0.1)} if bag else {}
        self._shapes: Shapes = {**(bed.encoder() if encoder else {}), **bed.decoder(), **weights}
        self._sizes = [math.prod(shape) for shape, _ in self._shapes.values()]

    def initial(self, seed: int) -> Tensor:
        """The first parameters of a replica, `[P]`; those of encoder and decoder do not depend on each other."""
        parts = []
        for (name, (_, spread)), size in zip(self._shapes.items(), self._sizes, strict=True):
            generator = torch.Generator().manual_seed(key("parameters", name, seed))
            parts.append(spread * torch.randn(size, generator=generator, dtype=torch.float64))
        return torch.cat(parts)

    def named(self, rows: Tensor) -> Named:
        """The parameters `[..., P]` by name, `[..., *shape]`."""
        parts = rows.split(self._sizes, -1)
        return {
            name: part.unflatten(-1, shape) for (name, (shape, _)), part in zip(self._shapes.items(), parts, strict=True)
        }
