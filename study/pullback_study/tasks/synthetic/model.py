"""The model of the synthetic study, many replicas at a time, with their optimiser and their step as a CUDA graph.

    scores  s = W_f x + b_f        (encoder, linear)
    logits  z' W_g x + b_g         (decoder, bilinear, two outputs)

The cross-entropy of two outputs depends on their difference alone, so the decoder is evaluated as the difference
z' (W_g[1] - W_g[0]) x + b_g[1] - b_g[0]: the same loss and the same gradients for half the arithmetic.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from pullback_study.tasks.synthetic.streams import key

_WARM_UP = 3


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


class Model:
    """Replicas of one architecture; a replica's parameters are a row of one matrix `[R, P]`.

    Args:
        classes: K, the classes of the latent variable; 1 makes the decoder a plain linear model.
        features: D.
        encoder: whether there is one; the linear model and the model with gold clusters have none.
    """

    def __init__(self, *, classes: int, features: int, encoder: bool) -> None:
        self.classes = classes
        self.features = features
        self.encoder = encoder
        scored = classes if encoder else 0
        self.shapes = {
            "encoder.weight": (scored, features),
            "encoder.bias": (scored,),
            "decoder.weight": (2, classes, features),
            "decoder.bias": (2,),
        }

    @property
    def sizes(self) -> list[int]:
        return [math.prod(shape) for shape in self.shapes.values()]

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

    def named(self, parameters: Tensor) -> dict[str, Tensor]:
        """The parameters `[..., P]` by name, as views of their own shapes `[..., *shape]`."""
        parts = parameters.split(self.sizes, -1)
        return {
            name: part.unflatten(-1, shape) if math.prod(shape) else part.reshape(*part.shape[:-1], *shape)
            for (name, shape), part in zip(self.shapes.items(), parts, strict=True)
        }

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


class Adam:
    """Adam as `torch.optim.Adam` (and AdamW without weight decay) has it, on parameters `[R, P]`.

        m <- b1 m + (1 - b1) g,   v <- b2 v + (1 - b2) g^2
        theta <- theta - lr / (1 - b1^t) * m / (sqrt(v / (1 - b2^t)) + eps)

    Everything is a tensor that is updated in place, so that a step can be captured in a CUDA graph.

    Args:
        parameters: `[R, P]`, one replica a row.
        learning_rates: `[R]`.
        step: t - 1, an integer tensor that the owner advances after each update.
    """

    betas, eps = (0.9, 0.999), 1e-8

    def __init__(self, parameters: Tensor, learning_rates: Tensor, step: Tensor) -> None:
        self.parameters = parameters
        self.mean = torch.zeros_like(parameters, requires_grad=False)
        self.square = torch.zeros_like(parameters, requires_grad=False)
        self._rates = learning_rates.double()[:, None]
        self._step = step

    @torch.no_grad()
    def update(self, gradient: Tensor) -> None:
        b1, b2 = self.betas
        t = (self._step + 1).double()
        self.mean.lerp_(gradient, 1 - b1)
        self.square.mul_(b2).addcmul_(gradient, gradient, value=1 - b2)
        rate = (self._rates / (1 - torch.pow(b1, t))).to(gradient.dtype)
        root = (1 - torch.pow(b2, t)).sqrt().to(gradient.dtype)
        self.parameters.sub_(rate * self.mean / (self.square.sqrt() / root + self.eps))


class Graphed:
    """A captured `step`: each call replays its kernels on the same memory.

    `step` takes and returns nothing: it reads and updates tensors in place, always the same ones, never waits for the
    device, and does the same work each time. Capturing runs it a few times first: the caller puts its state back.
    """

    def __init__(self, step: Callable[[], None]) -> None:
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(_WARM_UP):
                step()
        torch.cuda.current_stream().wait_stream(stream)
        self._graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._graph):
            step()

    def __call__(self) -> None:
        self._graph.replay()
