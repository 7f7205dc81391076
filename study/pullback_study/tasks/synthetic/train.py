"""The synthetic study: clusters with a linear model each, and replicas, S seeds with their own data and G settings for each.

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

from pullback import Downstream, ScoreFunction, STEMarginals
from pullback.parts import MovingAverage
from pullback.structures import Structure, StructureWrapper
from pullback_study.tasks import Method, by_name, registered
from pullback_study.tasks.replicas import Parameters, Replicas
from pullback_study.tasks.streams import StreamedCategorical, StreamedGumbel, Streams, key

_ROUNDING = 1e-12


class Split(NamedTuple):
    """Examples: inputs x `[n, D]`, true clusters z `[n]`, labels y `[n]` in {0, 1}."""

    x: Tensor
    z: Tensor
    y: Tensor


def generate(*, clusters: int, seed: int, features: int = 100, sizes: Sequence[int] = (5000, 1000, 1000)) -> list[Split]:
    """Draw a data set.

        z ~ Uniform{1..K},   x ~ Normal(m_z, 0.1^2 I),   y = [w_z . x > b_z],

    with centers m_z and models w_z ~ Normal(0, I). The threshold b_z is the mean of w_z . x over the cluster's share of
    the pool of training and validation examples, so that the classes balance; the test set has the same centers,
    models and thresholds. `sizes` are those of the training, the validation and the test set.
    """
    generator = torch.Generator().manual_seed(key("data", clusters, seed))

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    centers, models = normal(clusters, features), normal(clusters, features)
    z = torch.randint(clusters, (sum(sizes),), generator=generator)
    x = centers[z] + 0.1 * normal(sum(sizes), features)
    height = (models[z] * x).sum(-1)
    pool = slice(0, sizes[0] + sizes[1])
    totals = torch.zeros(clusters, dtype=torch.float64).index_add_(0, z[pool], height[pool])
    thresholds = totals / z[pool].bincount(minlength=clusters).clamp_min(1)
    y = (height > thresholds[z]).long()
    return [Split(*parts) for parts in zip(*(values.split(list(sizes)) for values in (x, z, y)), strict=True)]


def v_measure(counts: Tensor) -> Tensor:
    """The harmonic mean of homogeneity and completeness, between 0 and 1, from counts `[..., true, predicted]`.

        h = 1 - H(true | predicted) / H(true),   c = 1 - H(predicted | true) / H(predicted),   v = 2 h c / (h + c)

    (Rosenberg and Hirschberg, 2007). h is 1 if there is one true cluster, c is 1 if there is one predicted
    cluster, and v is 0 if both h and c are. Counts with a NaN have none.

    >>> v_measure(torch.tensor([[0, 5], [5, 0]]))   # the same clusters under other names
    tensor(1., dtype=torch.float64)
    """
    p = counts.double()
    p = p / p.sum((-2, -1), keepdim=True)
    joint, true, predicted = _entropy(p.flatten(-2)), _entropy(p.sum(-1)), _entropy(p.sum(-2))
    mutual = true + predicted - joint
    h = torch.where(true <= _ROUNDING, 1.0, mutual / true)
    c = torch.where(predicted <= _ROUNDING, 1.0, mutual / predicted)
    return torch.where(h + c <= _ROUNDING, 0.0, 2 * h * c / (h + c)).clamp(0.0, 1.0)


def _entropy(p: Tensor) -> Tensor:
    return -torch.xlogy(p, p).sum(-1)


class Outputs(NamedTuple):
    """What the two linear maps say of each example of each replica, replica by replica (B = R n)."""

    scores: Tensor  # [B, K], the encoder's; without an encoder there are none (K = 0)
    slopes: Tensor  # [B, K], (W_g[1] - W_g[0]) x: what each class's linear model says for y = 1
    offsets: Tensor  # [B], b_g[1] - b_g[0]

    def logits(self, z: Tensor) -> Tensor:
        """The decoder: its logit for y = 1 less its logit for y = 0, `[B]`, for z `[B, K]`."""
        return (z * self.slopes).sum(-1) + self.offsets


class Model(Parameters):
    """Replicas of one architecture, with K classes and D features; K = 1 makes the decoder a plain linear model.

    The linear model and the model with gold clusters have no encoder.
    """

    def __init__(self, *, classes: int, features: int, encoder: bool) -> None:
        self.classes, self.features = classes, features
        scored = classes if encoder else 0
        encoder_shapes = {"encoder.weight": (scored, features), "encoder.bias": (scored,)}
        super().__init__({**encoder_shapes, "decoder.weight": (2, classes, features), "decoder.bias": (2,)})

    def initial(self, seed: int) -> Tensor:
        """A replica's first parameters, `[P]`: PyTorch's defaults for `Linear(D, K)` and `Bilinear(K, D, 2)`."""
        generator = torch.Generator().manual_seed(key("parameters", self.classes, seed))
        encoder = 1 / math.sqrt(self.features)
        decoder = encoder if self.classes == 1 else 1 / math.sqrt(self.classes)
        bounds = zip(self.sizes, (encoder, encoder, decoder, decoder), strict=True)
        drawn = [(torch.rand(size, generator=generator, dtype=torch.float64), bound) for size, bound in bounds]
        return torch.cat([(2 * part - 1) * bound for part, bound in drawn])

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
        self.splits = dict(zip(("train", "validation", "test"), map(self._stacked, zip(*drawn, strict=True)), strict=True))
        self._against = -self._spread(self.splits["train"].y).flatten()
        keys = [key("noise", each.seed, each.learning_rate, each.step_size) for each in self.configs]
        self._streams = Streams(keys, config.train_examples * config.clusters, self.clock)
        # Without checks of values: they wait for the device, and a replica that diverges must not stop the others.
        self._structure = StreamedCategorical(self._streams.gumbel, validate=False)
        classes = 1 if config.estimator == "linear" else config.clusters
        return Model(classes=classes, features=config.features, encoder=self.method.latent)

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
            return downstream(self._given(self.splits["train"]))
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
            z = clusters = self._given(examples)
        else:
            z = self.estimator.predict(self._structure, outputs.scores)
            clusters = self.estimator.predict(self._structure, outputs.scores, argmax=True)
        right = (outputs.logits(z).view(self.replicas, -1) > 0) == (self._spread(examples.y) > 0)
        counts = self._spread(examples.z).mT @ clusters.view(self.replicas, -1, clusters.shape[-1])
        return {"accuracy": 100 * right.double().mean(1), "v_measure": 100 * v_measure(counts)}

    def more(self, replica: int) -> dict[str, Any]:
        calls = self.method.decoder_calls(self.config.inner_steps or 1)
        return {"loss": self.loss[replica].item(), "decoder_calls": calls}

    def _given(self, examples: Split) -> Tensor:
        """The z of a model that does not infer it, `[B, K]`: the true clusters, or the one class of a linear model."""
        if self.model.classes == 1:
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


class DiagonalStraightThrough(STEMarginals):
    """STE-S with the diagonal of the softmax Jacobian only.

    z = argmax(s),    gradient p * (1 - p) * gamma   where   diag(p) - p p'  is right
    """

    def __call__(self, structure: Structure, scores: Tensor) -> Tensor:
        p = structure.marginals(scores.detach())
        return structure.argmax(scores) + p * (1 - p) * (scores - scores.detach())


class UnnormalisedScoreFunction(ScoreFunction):
    """SFE without the log-partition in log p(z).

    z ~ p(z),    gradient (L(z) - b) * z   where   (L(z) - b) * (z - p)  is right
    """

    def objective(self, structure: Structure, scores: Tensor, downstream: Downstream) -> Tensor:
        return super().objective(_NoMarginals(structure), scores, downstream)


class _NoMarginals(StructureWrapper):
    def marginals(self, scores: Tensor) -> Tensor:
        return torch.zeros_like(scores)


def unnormalised_with_moving_average(groups: int = 1) -> UnnormalisedScoreFunction:
    return UnnormalisedScoreFunction(MovingAverage(factor=0.05, groups=groups))


METHODS = by_name(
    Method("linear", "Linear model", "Baselines", defaults={"learning_rate": 0.001}),
    Method("gold", "Gold cluster labels", "Baselines", defaults={"learning_rate": 0.001}),
    *registered("synthetic", categorical=True),
    Method("ste-s-diagonal", "STE-S, diagonal", "Erratum", DiagonalStraightThrough, defaults={"learning_rate": 0.002}),
    Method("sfe-no-partition", "SFE, no log Z", "Erratum", UnnormalisedScoreFunction, stochastic=True),
    Method("sfe-baseline-no-partition", "SFE b., no log Z", "Erratum", unnormalised_with_moving_average, stochastic=True),
)
"""The rows of the table: baselines, every estimator of the registry, one of our own, and errors of the paper's released code.

The errata show whether an error explains a number. They are not for use.
"""
