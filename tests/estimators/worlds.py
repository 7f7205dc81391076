"""What the tests of estimators run over: structures with scores, and a decoder whose gradient is written out.

The worlds have padding full of NaN, forbidden parts, and several structures in one example.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass

import pytest
import torch
from torch import Tensor, nn

import pullback as pb
from pullback.estimators.registry import ENTRIES, Entry


@dataclass(frozen=True)
class World:
    """A structure and a batch of scores for it.

    Attributes:
        name: for the test's id.
        structure: the structure.
        scores: `[B, ..., *parts]`, float64.
        allowed: which parts are neither padding nor forbidden, of the shape of the scores.
    """

    name: str
    structure: pb.Structure
    scores: Tensor
    allowed: Tensor

    def __str__(self) -> str:
        return self.name

    @property
    def size(self) -> int:
        """B."""
        return len(self.scores)

    def leaf(self) -> Tensor:
        return self.scores.clone().requires_grad_()

    def groups(self, values: Tensor) -> Tensor:
        """The sums over each constraint: the classes of each categorical, a word's heads, a position's parts."""
        return values.sum(self.structure.centre_dims)

    def decoder(self, seed: int = 0) -> Decoder:
        return Decoder(self.scores.shape, seed).to(self.scores.device)

    def on(self, device: str) -> World:
        """The same world on another device, sizes included."""
        structure = copy.copy(self.structure)
        for name, value in vars(structure).items():
            if isinstance(value, Tensor):
                setattr(structure, name, value.to(device))
        return World(self.name, structure, self.scores.to(device), self.allowed.to(device))


class Decoder(nn.Module):
    """L(z) = softplus(<a * w, z>) + <c, z>^2 / 2 for each example, with data a and c and parameters w.

    It reads every part, padding included, and remembers each z it was called with.
    """

    def __init__(self, shape: torch.Size, seed: int) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(seed)
        a, c = torch.randn(2, *shape, dtype=torch.float64, generator=generator)
        self.register_buffer("a", a)
        self.register_buffer("c", c)
        self.w = nn.Parameter(1 + 0.1 * torch.randn(shape[1:], dtype=torch.float64, generator=generator))
        self.seen: list[Tensor] = []

    def forward(self, z: Tensor) -> Tensor:
        self.seen.append(z.detach().clone())
        return nn.functional.softplus(_dot(self.a * self.w, z)) + _dot(self.c, z).square() / 2

    def gamma(self, z: Tensor) -> Tensor:
        """The gradient of each example's loss at z, written out."""
        a = (self.a * self.w).detach()
        return _spread(_dot(a, z).sigmoid(), z) * a + _spread(_dot(self.c, z), z) * self.c


def surrogate(estimator: pb.Estimator, world: World, decoder: nn.Module, weights: Tensor | None = None) -> Tensor:
    """The gradient of the scores that an estimator gives for a weighted sum of the losses."""
    scores = world.leaf()
    losses = estimator.objective(world.structure, scores, decoder)
    (losses if weights is None else weights * losses).sum().backward()
    assert scores.grad is not None
    return scores.grad


def _dot(a: Tensor, b: Tensor) -> Tensor:
    return (a * b).flatten(1).sum(1)


def _spread(values: Tensor, like: Tensor) -> Tensor:
    return values.reshape(-1, *[1] * (like.dim() - 1))


def _scores(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(3))


def _categorical() -> World:
    scores = _scores(5, 4)
    return World("categorical", pb.Categorical(), scores, torch.ones(5, 4, dtype=torch.bool))


def _forbidden() -> World:
    scores = _scores(5, 4)
    scores[0, 1] = scores[2, 0] = scores[2, 3] = -torch.inf
    return World("categorical-forbidden", pb.Categorical(), scores, scores > -torch.inf)


def _several() -> World:
    scores = _scores(3, 2, 4)
    return World("several-categoricals", pb.Categorical(), scores, torch.ones(3, 2, 4, dtype=torch.bool))


def _trees(name: str, lengths: Tensor, n: int, **kind: bool) -> World:
    scores = _scores(*lengths.shape, n, n)
    words = torch.arange(n) < lengths[..., None]
    real = words[..., None, :] & words[..., :, None]
    forbidden = torch.zeros_like(real)
    forbidden[..., 0, 1] = True
    scores = torch.where(forbidden, -torch.inf, scores)
    scores = torch.where(real, scores, torch.nan)
    return World(name, pb.DependencyTree(lengths, **kind), scores, real & ~forbidden)


def _chains() -> World:
    lengths, n, tags = torch.tensor([3, 2]), 3, 2
    scores = _scores(2, n, tags, tags)
    real = (torch.arange(n) < lengths[:, None])[..., None, None].expand(scores.shape).clone()
    real[:, 0, 1:] = False
    forbidden = torch.zeros_like(real)
    forbidden[:, 1, 0, 1] = True
    scores = torch.where(real, torch.where(forbidden, -torch.inf, scores), torch.nan)
    return World("chains", pb.LinearChain(lengths), scores, real & ~forbidden)


def _subsets() -> World:
    lengths, scores = torch.tensor([5, 3, 4]), _scores(3, 5)
    real = torch.arange(5) < lengths[:, None]
    forbidden = torch.zeros_like(real)
    forbidden[0, 2] = True
    scores = torch.where(real, torch.where(forbidden, -torch.inf, scores), torch.nan)
    return World("subsets", pb.Subset(2, lengths), scores, real & ~forbidden)


CATEGORICAL = _categorical()
WORLDS = [
    CATEGORICAL,
    _forbidden(),
    _several(),
    _trees("trees", torch.tensor([4, 3, 1]), n=4),
    _trees("two-trees-an-example", torch.tensor([[3, 2], [1, 3]]), n=3),
    _trees("nonprojective-single-root", torch.tensor([4, 2]), n=4, projective=False, multiroot=False),
    _chains(),
    _subsets(),
]
REGISTERED: list[Entry] = list(ENTRIES)
DETERMINISTIC = [entry for entry in ENTRIES if not entry.stochastic]


def supported(entry: Entry, world: World) -> None:
    """Skip the test of an estimator that is not for this kind of structure."""
    if not entry.supports(world.structure):
        pytest.skip(f"{entry.name} is for {entry.only.__name__} only")
