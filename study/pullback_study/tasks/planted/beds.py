"""The beds: for each structure a scorer of its parts, which is planted in the data and learned by the model."""

from __future__ import annotations

import abc
import itertools
import math
from typing import Any

import torch
from torch import Tensor

from pullback import Alignment, BinaryTree, DependencyTree, LinearChain, Segmentation, Structure, Subset
from pullback_study.tasks.planted.task import Config

_FEATURES = 10
_CHOSEN = {"xor": 2, "orange-skin": 4, "additive": 4, "switch": 5}
Named = dict[str, Tensor]
"""Tensors by name: parameters `[R, *shape]` of R replicas, or the inputs `[R, b, ...]` of b examples for each."""
Shapes = dict[str, tuple[tuple[int, ...], float]]
"""Of parameters by name: their shape, and the standard deviation that they start with."""


class Bed(abc.ABC):
    """Inputs with gold structures and labels, and a model that can represent both the scorer and the label.

    Its structures are made without checks of values: they wait for the device, where scores are, and a replica that diverges
    must not stop the others. Examples are drawn on the CPU.
    """

    structure: Structure
    encoder: Shapes  # the parameters of the scorer
    decoder: Shapes  # those of the decoder
    free: Tensor  # which parts are in some structures but not in all, `[*parts]`: recovery counts these alone

    def __init__(self, config: Config, device: str = "cpu") -> None:
        self.config, self.device = config, device

    @abc.abstractmethod
    def scores(self, named: Named, inputs: Named) -> Tensor:
        """Scores of the parts, `[R, b, *parts]`."""

    @abc.abstractmethod
    def logits(self, named: Named, inputs: Named, z: Tensor) -> Tensor:
        """The decoder, `[R, b]`, for z `[R, b, *parts]`."""

    @abc.abstractmethod
    def draw(self, count: int, planted: Named, generator: torch.Generator) -> Named:
        """Examples `[count, ...]`: inputs, `gold` and `seen` (the planted scorer's choice on noisy features), `label`."""

    def plant(self, generator: torch.Generator) -> Named:
        """The hidden parameters, `[1, *shape]`."""
        return {name: torch.randn(1, *shape, generator=generator) for name, (shape, _) in self.encoder.items()}


class Planted(Bed):
    """A bed with a planted scorer; every part also has two values, and the label multiplies their sums.

        z* = argmax over z of <s(x), z>,    q = (sum over the free parts p of z*_p v_p) / sqrt(parts of z*),
        label = [share q_1 q_2 + (1 - share) r > 0],    r ~ Normal(0, 1)

    The values v_p ~ Normal(0, I_2) sum to zero over the free parts of an example, so that the sum over all parts says
    nothing; and any fixed weighting of the parts, whose sums correlate with q by c, predicts a product by c^2 only. The model
    sees x + noise, v and r. Its decoder is a quadratic form: q' B q + l' q + e r + bias.
    """

    parts: tuple[int, ...]  # their shape

    def __init__(self, config: Config, device: str = "cpu") -> None:
        super().__init__(config, device)
        self.decoder = {"square": ((2, 2), 0.5), "linear": ((2,), 0.1), "shared": ((1,), 0.1), "bias": ((1,), 0.0)}
        self.prepare(config.n, config.features)
        self.free = self.structure.allowed(torch.zeros(*self.parts)) & ~self.always()

    @abc.abstractmethod
    def prepare(self, n: int, d: int) -> None:
        """Set the parts, the structure and the encoder, for n words or items of d features."""

    def always(self) -> Tensor:
        """The parts of every structure."""
        return torch.zeros(self.parts, dtype=torch.bool)

    def features(self, count: int, generator: torch.Generator) -> Named:
        """Without noise, `[count, ...]`."""
        return {"x": torch.randn(count, self.config.n, self.config.features, generator=generator)}

    def logits(self, named: Named, inputs: Named, z: Tensor) -> Tensor:
        q = self._sums(z, inputs["values"])
        square = torch.einsum("rbi,rij,rbj->rb", q, named["square"], q)
        linear = (q * named["linear"][:, None]).sum(-1)
        return square + linear + named["shared"] * inputs["shared"] + named["bias"]

    def draw(self, count: int, planted: Named, generator: torch.Generator) -> Named:
        clean = self.features(count, generator)
        noisy = {k: x + self.config.noise * torch.randn(x.shape, generator=generator) for k, x in clean.items()}
        gold, seen = (self._best(planted, inputs) for inputs in (clean, noisy))
        free = self.free[..., None].float()
        values = torch.randn(count, *self.parts, 2, generator=generator) * free
        over = tuple(range(1, values.dim() - 1))
        values -= free * values.sum(over, keepdim=True) / free.sum()
        shared = torch.randn(count, generator=generator)
        product = self._sums(gold[None], values[None])[0].prod(-1)
        label = (self.config.share * product + (1 - self.config.share) * shared > 0).float()
        return {**noisy, "values": values, "shared": shared, "gold": gold, "seen": seen, "label": label}

    def _best(self, planted: Named, inputs: Named) -> Tensor:
        return self.structure.argmax(self.scores(planted, {name: x[None] for name, x in inputs.items()}))[0]

    def _sums(self, z: Tensor, values: Tensor) -> Tensor:
        """From `[R, b, *parts]` and `[R, b, *parts, 2]` to q, `[R, b, 2]`."""
        return torch.einsum("rbp,rbpk->rbk", z.flatten(2), values.flatten(2, -2)) / math.sqrt(self.config.n)


class Tree(Planted):
    """Projective dependency trees with one root: s[h, m] = x_h' W x_m, and u' x_m for the root."""

    def prepare(self, n: int, d: int) -> None:
        self.parts, self.structure = (n, n), DependencyTree(projective=True, multiroot=False, validate=False)
        self.encoder = {"arcs": ((d, d), 1 / d), "root": ((d,), d**-0.5)}

    def scores(self, named: Named, inputs: Named) -> Tensor:
        arcs = _bilinear(inputs["x"], named["arcs"], inputs["x"])
        root = torch.einsum("rbnd,rd->rbn", inputs["x"], named["root"])
        return torch.where(torch.eye(self.config.n, dtype=torch.bool, device=arcs.device), root[:, :, None], arcs)


class Chain(Planted):
    """Three tags: s[i, a, b] = u_b' x_i + t[a, b]."""

    def prepare(self, n: int, d: int) -> None:
        self.parts, self.structure = (n, 3, 3), LinearChain(validate=False)
        self.encoder = {"tags": ((3, d), d**-0.5), "transitions": ((3, 3), 0.5)}

    def scores(self, named: Named, inputs: Named) -> Tensor:
        emissions = torch.einsum("rbnd,rcd->rbnc", inputs["x"], named["tags"])
        after = (torch.arange(self.config.n, device=emissions.device) > 0)[:, None, None]
        return emissions[..., None, :] + after * named["transitions"][:, None, None]


class Segments(Planted):
    """Segments of up to three words with one of two labels: s[i, w, c] = u_c' x_i + v_c' x_{i+w} + l[w, c]."""

    def prepare(self, n: int, d: int) -> None:
        self.parts, self.structure = (n, min(3, n), 2), Segmentation(validate=False)
        self.encoder = {"starts": ((2, d), d**-0.5), "ends": ((2, d), d**-0.5), "lengths": (self.parts[1:], 0.5)}

    def scores(self, named: Named, inputs: Named) -> Tensor:
        n, widths, _ = self.parts
        starts, ends = (torch.einsum("rbnd,rcd->rbnc", inputs["x"], named[name]) for name in ("starts", "ends"))
        first, more = (torch.arange(size, device=ends.device) for size in (n, widths))
        last = (first[:, None] + more).clamp_max(n - 1)
        return starts[..., None, :] + ends[:, :, last] + named["lengths"][:, None, None]


class Items(Planted):
    """A third of the items, rounded up: s[i] = u' x_i."""

    def prepare(self, n: int, d: int) -> None:
        self.parts, self.structure = (n,), Subset(torch.tensor(-(-n // 3), device=self.device), validate=False)
        self.encoder = {"items": ((d,), d**-0.5)}

    def scores(self, named: Named, inputs: Named) -> Tensor:
        return torch.einsum("rbnd,rd->rbn", inputs["x"], named["items"])


class Paths(Planted):
    """Monotone alignments of two sequences of equal length: s[i, j] = x_i' W y_j."""

    def prepare(self, n: int, d: int) -> None:
        self.parts, self.structure = (n, n), Alignment(validate=False)
        self.encoder = {"cells": ((d, d), 1 / d)}

    def always(self) -> Tensor:
        corners = super().always()
        corners[0, 0] = corners[-1, -1] = True
        return corners

    def features(self, count: int, generator: torch.Generator) -> Named:
        return super().features(count, generator) | {"y": super().features(count, generator)["x"]}

    def scores(self, named: Named, inputs: Named) -> Tensor:
        return _bilinear(inputs["x"], named["cells"], inputs["y"])


class Brackets(Planted):
    """Binary trees: s[i, j] = x_i' W x_j for the span of words i to j."""

    def prepare(self, n: int, d: int) -> None:
        self.parts, self.structure = (n, n), BinaryTree(validate=False)
        self.encoder = {"spans": ((d, d), 1 / d)}

    def always(self) -> Tensor:
        spans = torch.eye(self.config.n, dtype=torch.bool)
        spans[0, -1] = True
        return spans

    def scores(self, named: Named, inputs: Named) -> Tensor:
        return _bilinear(inputs["x"], named["spans"], inputs["x"])


def _bilinear(x: Tensor, weights: Tensor, y: Tensor) -> Tensor:
    """x_i' W y_j, `[R, b, n, m]`."""
    return (x @ weights[:, None]) @ y.mT


class Selection(Bed):
    """L2X's synthetic selections (Chen et al., 2018).

    Ten features x ~ Normal(0, I), of which k decide the label: P(label = 1) = odds / (1 + odds).

        xor          odds = exp(x1 x2)
        orange-skin  odds = exp(x1^2 + x2^2 + x3^2 + x4^2 - 4)
        additive     odds = exp(-100 sin(0.2 x1) + |x2| + x3 + exp(-x4) - 2.4)
        switch       x10 ~ Normal(+-3, 1); above 0 orange-skin of features 1 to 4, otherwise additive of features 5 to 8

    The selector is a network with two hidden layers of 100, the predictor one of 200 on the features that z keeps. The label is
    drawn, so that no model reaches 100% accuracy; and a predictor that sees all features needs no selection. These beds are
    about recovery alone.
    """

    def __init__(self, config: Config, device: str = "cpu") -> None:
        super().__init__(config, device)
        self.structure = Subset(torch.tensor(_CHOSEN[config.structure], device=device), validate=False)
        self.free = torch.ones(_FEATURES, dtype=torch.bool)
        self.encoder = _layers("selector", (_FEATURES, 100, 100, _FEATURES))
        self.decoder = _layers("predictor", (_FEATURES, 200, 200, 1))

    def scores(self, named: Named, inputs: Named) -> Tensor:
        return _network("selector", named, inputs["x"])

    def logits(self, named: Named, inputs: Named, z: Tensor) -> Tensor:
        return _network("predictor", named, inputs["x"] * z)[..., 0]

    def draw(self, count: int, planted: Named, generator: torch.Generator) -> Named:
        x = torch.randn(count, _FEATURES, generator=generator)
        if self.config.structure == "switch":
            x[:, 9] += 6.0 * torch.randint(2, (count,), generator=generator) - 3.0
        gold = torch.zeros(count, _FEATURES)
        if self.config.structure == "xor":
            log_odds, gold[:, :2] = x[:, 0] * x[:, 1], 1.0
        elif self.config.structure == "orange-skin":
            log_odds, gold[:, :4] = _orange_skin(x[:, :4]), 1.0
        elif self.config.structure == "additive":
            log_odds, gold[:, :4] = _additive(x[:, :4]), 1.0
        else:
            first = x[:, 9] > 0
            log_odds = torch.where(first, _orange_skin(x[:, :4]), _additive(x[:, 4:8]))
            gold[:, :4], gold[:, 4:8], gold[:, 9] = first[:, None].float(), 1.0 - first[:, None].float(), 1.0
        label = (torch.rand(count, generator=generator) < torch.sigmoid(log_odds)).float()
        return {"x": x, "gold": gold, "seen": gold, "label": label, "best": ((log_odds > 0) == (label > 0)).float()}


def _orange_skin(x: Tensor) -> Tensor:
    return x.square().sum(-1) - 4


def _additive(x: Tensor) -> Tensor:
    return -100 * torch.sin(0.2 * x[:, 0]) + x[:, 1].abs() + x[:, 2] + torch.exp(-x[:, 3]) - 2.4


def _layers(name: str, sizes: tuple[int, ...]) -> Shapes:
    found: Shapes = {}
    for i, (fan_in, fan_out) in enumerate(itertools.pairwise(sizes)):
        found |= {f"{name}.{i}.weight": ((fan_in, fan_out), fan_in**-0.5), f"{name}.{i}.bias": ((fan_out,), 0.0)}
    return found


def _network(name: str, named: Named, x: Tensor) -> Tensor:
    for i in range(3):
        x = torch.baddbmm(named[f"{name}.{i}.bias"][:, None], x if i == 0 else x.relu(), named[f"{name}.{i}.weight"])
    return x


def find_bed(config: Config, device: str = "cpu") -> Bed:
    beds: dict[str, Any] = {
        "tree": Tree, "chain": Chain, "segmentation": Segments, "subset": Items, "alignment": Paths, "binary-tree": Brackets,
    }  # fmt: skip
    return beds.get(config.structure, Selection)(config, device)
