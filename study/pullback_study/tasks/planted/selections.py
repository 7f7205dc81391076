"""L2X's four synthetic selections of features (Chen et al., 2018) as beds of subsets."""

from __future__ import annotations

import itertools

import torch
from torch import Tensor

from pullback import Subset
from pullback_study.tasks.planted.beds import Bed, Named, Shapes
from pullback_study.tasks.planted.task import Config

_FEATURES = 10
_CHOSEN = {"xor": 2, "orange-skin": 4, "additive": 4, "switch": 5}


class Selection(Bed):
    """Ten features x ~ Normal(0, I), of which k decide the label: P(label = 1) = odds / (1 + odds).

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
