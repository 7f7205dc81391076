"""Replicas of the synthetic study: S seeds, each with its own data, and G settings for each seed.

    scores  s = W_f x + b_f        (encoder, linear)
    logits  z' W_g x + b_g         (decoder, bilinear, two outputs)

The cross-entropy of two outputs depends on their difference alone, so the decoder is evaluated as the difference
z' (W_g[1] - W_g[0]) x + b_g[1] - b_g[0]: the same loss and the same gradients for half the arithmetic.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from pullback_study.tasks.replicas import Parameters, Replicas
from pullback_study.tasks.streams import StreamedCategorical, StreamedGumbel, Streams, key
from pullback_study.tasks.synthetic.data import Data, Split, generate, v_measure


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


class Clusters(Replicas):
    """R = S x G replicas, seed by seed; a step is on the whole training set, and noise depends on the replica alone."""

    model: Model
    curve_loss = "last"

    def prepare(self) -> Model:
        config, seeds = self.config, list(dict.fromkeys(each.seed for each in self.configs))
        self._per_seed = self.replicas // len(seeds)
        if [each.seed for each in self.configs] != [seed for seed in seeds for _ in range(self._per_seed)]:
            raise ValueError(f"a group has the same number of replicas for each seed; got {[c.seed for c in self.configs]}")
        sizes = (config.train_examples, config.validation_examples, config.test_examples)
        drawn = [generate(clusters=config.clusters, seed=seed, features=config.features, sizes=sizes) for seed in seeds]
        self.splits = {name: self._stacked([getattr(data, name) for data in drawn]) for name in Data._fields}
        train = self.splits["train"]
        self._against = -self._spread(train.y).flatten()
        keys = [key("noise", each.seed, each.learning_rate, each.step_size) for each in self.configs]
        self._streams = Streams(keys, config.train_examples * config.clusters, self.clock)
        # Without checks of values: they wait for the device, and a replica that diverges must not stop the others.
        self._structure = StreamedCategorical(self._streams.gumbel, validate=False)
        classes = 1 if config.estimator == "linear" else config.clusters
        model = Model(classes=classes, features=config.features, encoder=self.method.latent)
        self._known = None if self.method.latent else self._given(train, classes)
        return model

    def offered(self) -> dict[str, Any]:
        config, n = self.config, self.config.train_examples
        step_size = self.step_sizes(n, 1, scale=n if config.gamma_scale == "paper" else 1)
        noise = StreamedGumbel(self._streams)
        return {"groups": self.replicas, "step_size": step_size, "steps": config.inner_steps or 1, "noise": noise}

    def losses(self, rows: Tensor, width: int) -> Tensor:
        self._streams.begin_step()
        outputs = self.model.outputs(self.theta, self.splits["train"].x)

        def downstream(z: Tensor) -> Tensor:
            return F.softplus(self._against * outputs.logits(z))

        if self.estimator is None:
            assert self._known is not None
            return downstream(self._known)
        return self.estimator.objective(self._structure, outputs.scores, downstream)

    def scaled(self, gradient: Tensor) -> Tensor:
        if self.config.gamma_scale == "paper":  # the surrogate as it is: not divided by n once more
            gradient[:, : sum(self.model.sizes[:2])] *= self.config.train_examples
        return gradient

    @torch.no_grad()
    def measures(self, examples: Split, theta: Tensor) -> dict[str, Tensor]:
        """Accuracy and V-measure in percent."""
        outputs = self.model.outputs(theta, examples.x)
        if self.estimator is None:
            z = clusters = self._given(examples, self.model.classes)
        else:
            z = self.estimator.predict(self._structure, outputs.scores)
            clusters = self.estimator.predict(self._structure, outputs.scores, argmax=True)
        right = (outputs.logits(z).view(self.replicas, -1) > 0) == (self._spread(examples.y) > 0)
        counts = self._spread(examples.z).mT @ clusters.view(self.replicas, -1, clusters.shape[-1])
        return {"accuracy": 100 * right.double().mean(1), "v_measure": 100 * v_measure(counts)}

    def more(self, replica: int) -> dict[str, Any]:
        calls = self.method.decoder_calls(self.config.inner_steps or 1)
        return {"loss": self.loss[replica].item(), "decoder_calls": calls}

    def _given(self, examples: Split, classes: int) -> Tensor:
        """The z of a model that does not infer it, `[B, K]`: the true clusters, or the one class of a linear model."""
        if classes == 1:
            return examples.x.new_ones(self.replicas * examples.x.shape[1], 1)
        return self._spread(examples.z).flatten(0, 1)

    def _stacked(self, splits: Sequence[Split]) -> Split:
        """Of S seeds: x `[S, n, D]`, the true clusters z `[S, n, K]` as one-hot vectors, y `[S, n]` in {-1, 1}."""
        x, z, y = (torch.stack(values) for values in zip(*splits, strict=True))
        parts = x, F.one_hot(z, self.config.clusters), 2 * y - 1
        return Split(*(values.to(self.device, self.dtype) for values in parts))

    def _spread(self, of_seeds: Tensor) -> Tensor:
        """From `[S, n, ...]` to `[R, n, ...]`: each replica of a seed has its data."""
        return of_seeds.repeat_interleave(self._per_seed, 0)
