"""Clusters with a linear model each: the data of the synthetic study, and how well predicted clusters match the true ones."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from pullback_study.tasks.streams import key

_ROUNDING = 1e-12


class Split(NamedTuple):
    """Examples: inputs x `[n, D]`, true clusters z `[n]`, labels y `[n]` in {0, 1}."""

    x: Tensor
    z: Tensor
    y: Tensor


class Data(NamedTuple):
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
    models and thresholds. `sizes` are those of the three sets.
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


def v_measure(counts: Tensor) -> Tensor:
    """The harmonic mean of homogeneity and completeness, between 0 and 1, from counts `[..., true, predicted]`.

        h = 1 - H(true | predicted) / H(true),   c = 1 - H(predicted | true) / H(predicted),   v = 2 h c / (h + c)

    (Rosenberg and Hirschberg, 2007). h is 1 if there is one true cluster, c is 1 if there is one predicted
    cluster, and v is 0 if both h and c are.

    >>> v_measure(torch.tensor([[0, 5], [5, 0]]))   # the same clusters under other names
    tensor(1., dtype=torch.float64)
    """
    p = counts.double()
    p = p / p.sum((-2, -1), keepdim=True)
    joint, true, predicted = _entropy(p.flatten(-2)), _entropy(p.sum(-1)), _entropy(p.sum(-2))
    mutual = true + predicted - joint
    h = torch.where(true > _ROUNDING, mutual / true, 1.0)
    c = torch.where(predicted > _ROUNDING, mutual / predicted, 1.0)
    return torch.where(h + c > _ROUNDING, 2 * h * c / (h + c), 0.0).clamp(0.0, 1.0)


def _entropy(p: Tensor) -> Tensor:
    return -torch.xlogy(p, p).sum(-1)
