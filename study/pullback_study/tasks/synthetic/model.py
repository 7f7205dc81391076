"""The model of the synthetic study, many replicas at a time.

    scores  s = W_f x + b_f        (encoder, linear)
    logits  z' W_g x + b_g         (decoder, bilinear, two outputs)

The cross-entropy of two outputs depends on their difference alone, so the decoder is evaluated as the difference
z' (W_g[1] - W_g[0]) x + b_g[1] - b_g[0]: the same loss and the same gradients for half the arithmetic.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from pullback_study.tasks.replicas import Parameters
from pullback_study.tasks.streams import key


class Examples(NamedTuple):
    """The examples of S seeds: x `[S, n, D]`, the true clusters z `[S, n, K]` as one-hot vectors, y `[S, n]`."""

    x: Tensor
    z: Tensor
    y: Tensor


class Outputs(NamedTuple):
    """What the two linear maps say of each example of each replica, replica by replica (B = R n).

    scores: `[B, K]`, the encoder's; without an encoder there are none (K = 0).
    slopes: `[B, K]`, (W_g[1] - W_g[0]) x: what each class's linear model says for y = 1.
    offsets: `[B]`, b_g[1] - b_g[0].
    """

    scores: Tensor
    slopes: Tensor
    offsets: Tensor

    def logits(self, z: Tensor) -> Tensor:
        """The decoder: its logit for y = 1 less its logit for y = 0, `[B]`, for z `[B, K]`."""
        return (z * self.slopes).sum(-1) + self.offsets


class Model(Parameters):
    """Replicas of one architecture.

    Args:
        classes: K, the classes of the latent variable; 1 makes the decoder a plain linear model.
        features: D.
        encoder: whether there is one; the linear model and the model with gold clusters have none.
    """

    def __init__(self, *, classes: int, features: int, encoder: bool) -> None:
        self.classes, self.features = classes, features
        scored = classes if encoder else 0
        super().__init__(
            {
                "encoder.weight": (scored, features),
                "encoder.bias": (scored,),
                "decoder.weight": (2, classes, features),
                "decoder.bias": (2,),
            }
        )

    def initial(self, seed: int) -> Tensor:
        """A replica's first parameters, `[P]`: PyTorch's defaults for `Linear(D, K)` and `Bilinear(K, D, 2)`."""
        generator = torch.Generator().manual_seed(key("parameters", self.classes, seed))
        encoder, decoder = 1 / math.sqrt(self.features), 1 / math.sqrt(self.classes)
        if self.classes == 1:
            decoder = encoder
        parts = [
            (2 * torch.rand(size, generator=generator, dtype=torch.float64) - 1) * bound
            for size, bound in zip(self.sizes, (encoder, encoder, decoder, decoder), strict=True)
        ]
        return torch.cat(parts)

    def outputs(self, parameters: Tensor, x: Tensor) -> Outputs:
        """Both linear maps of all replicas of a seed as one wide product with its inputs.

        Parameters are `[S * G, P]`, G replicas of each of S seeds, and x `[S, n, D]`.
        """
        named = self.named(parameters)
        seeds, n, _ = x.shape
        weights = torch.cat([named["encoder.weight"], named["decoder.weight"].diff(dim=1).squeeze(1)], 1)
        replicas, rows = weights.shape[0] // seeds, weights.shape[1]
        wide = x @ weights.view(seeds, replicas * rows, -1).mT
        apart = wide.view(seeds, n, replicas, rows).transpose(1, 2).reshape(seeds * replicas, n, rows)
        scores, slopes = apart.split([rows - self.classes, self.classes], -1)
        scores = scores + named["encoder.bias"][:, None]
        offsets = named["decoder.bias"].diff(dim=1).expand(-1, n)
        return Outputs(scores.flatten(0, 1), slopes.flatten(0, 1), offsets.flatten())

