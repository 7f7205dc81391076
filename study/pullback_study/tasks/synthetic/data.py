"""Clusters with a linear model each: the data of the synthetic study."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from pullback_study.tasks.synthetic.streams import key


@dataclass(frozen=True)
class Split:
    """Examples: inputs x `[n, D]`, true clusters z `[n]`, labels y `[n]` in {0, 1}."""

    x: Tensor
    z: Tensor
    y: Tensor


@dataclass(frozen=True)
class Data:
    train: Split
    validation: Split
    test: Split


def generate(
    *,
    clusters: int,
    seed: int,
    features: int = 100,
    sizes: tuple[int, int, int] = (5000, 1000, 1000),
    spread: float = 0.1,
) -> Data:
    """Draw a data set.

        z ~ Uniform{1..K},   x ~ Normal(m_z, spread^2 I),   y = [w_z . x > b_z],

    with centers m_z and models w_z ~ Normal(0, I). The threshold b_z is the mean of w_z . x over the cluster's share of
    the pool of training and validation examples, so that the classes balance; the test set has the same centers,
    models and thresholds.

    Args:
        clusters: K.
        seed: of everything that is drawn.
        features: D.
        sizes: of the training, validation and test sets.
        spread: the standard deviation of x around its center, in each direction.
    """
    generator = torch.Generator().manual_seed(key("data", clusters, seed))

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    centers, models = normal(clusters, features), normal(clusters, features)
    z = torch.randint(clusters, (sum(sizes),), generator=generator)
    x = centers[z] + spread * normal(sum(sizes), features)
    height = (models[z] * x).sum(-1)
    pool = slice(0, sizes[0] + sizes[1])
    totals = torch.zeros(clusters, dtype=torch.float64).index_add_(0, z[pool], height[pool])
    thresholds = totals / z[pool].bincount(minlength=clusters).clamp_min(1)
    y = (height > thresholds[z]).long()
    return Data(*(Split(*parts) for parts in zip(x.split(sizes), z.split(sizes), y.split(sizes), strict=True)))
