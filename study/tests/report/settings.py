"""Random settings of the explorer, and what the library says about them."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

import pullback as pb
from pullback.estimators.pulled_back import PulledBack

LOSSES = {name: getattr(pb.losses, name)() for name in ("Perceptron", "CrossEntropy", "SparseMAPLoss")}
STARTS = {"FromArgmax": pb.parts.FromArgmax(), "FromMarginals": pb.parts.FromMarginals(), "FromZero": pb.parts.FromZero()}
UPDATES = {"Unconstrained": pb.parts.Unconstrained, "Projected": pb.parts.Projected, "Mirror": pb.parts.Mirror}
RECIPES = [
    {"loss": loss, "start": start, "update": update}
    for loss in LOSSES for start in STARTS for update in UPDATES
    if update != "Mirror" or start == "FromMarginals"
]  # fmt: skip


def random_settings(count: int, seed: int) -> list[dict[str, Any]]:
    """Scores of all sizes, both losses, step sizes from .01 to 5, up to ten steps; some with ties."""
    generator = torch.Generator().manual_seed(seed)

    def normal(scale: float) -> list[float]:
        return (scale * torch.randn(3, generator=generator, dtype=torch.float64)).tolist()

    found = []
    for i in range(count):
        uniform = torch.rand(4, generator=generator, dtype=torch.float64).tolist()
        scores = normal([0.3, 1.0, 6.0][i % 3])
        if i % 10 == 9:
            scores = [1.0, 1.0, -0.5]
        linear = {"kind": "linear", "gradient": normal(1.0)}
        loss = linear if i % 2 else {"kind": "quadratic", "target": normal(0.7)}
        found.append({
            "scores": scores, "loss": loss, "stepSize": 10 ** (-2 + 2.7 * uniform[0]), "steps": 1 + int(10 * uniform[1]),
            "recipe": RECIPES[i % len(RECIPES)],
        })  # fmt: skip
    return found


def in_library(name: str, settings: dict[str, Any]) -> dict[str, Any]:
    """What the decoder sees, the surrogate gradient, how often the decoder is called, and some of the path of mu."""
    seen: list[Tensor] = []

    def downstream(z: Tensor) -> Tensor:
        seen.append(z.detach())
        loss = settings["loss"]
        if loss["kind"] == "linear":
            return z @ torch.tensor(loss["gradient"], dtype=z.dtype)
        return (z - torch.tensor(loss["target"], dtype=z.dtype)).square().sum(-1) / 2

    def gradient(estimator: pb.Estimator) -> Tensor:
        seen.clear()
        scores = torch.tensor([settings["scores"]], dtype=torch.float64, requires_grad=True)
        estimator.objective(pb.Categorical(), scores, downstream).sum().backward()
        assert scores.grad is not None
        return scores.grad[0]

    estimator = _estimator(name, settings)
    found = {"gradient": gradient(estimator).tolist(), "calls": len(seen)}
    first = isinstance(estimator, PulledBack) and estimator.start.is_forward
    found["forward"] = seen[0 if first else -1][0].tolist()
    if isinstance(estimator, PulledBack):
        # Against a label that stays at zero the gradient is the prediction itself.
        prediction = gradient(PulledBack(estimator.loss, pb.parts.FromZero(), pb.parts.Unconstrained(1e-300)))
        some = {1, 1 + estimator.steps // 2, estimator.steps}
        found["path"] = {k: (prediction - gradient(_with_steps(estimator, k))).tolist() for k in some}
    return found


def _with_steps(estimator: PulledBack, steps: int) -> PulledBack:
    return PulledBack(estimator.loss, estimator.start, estimator.update, steps)


def _estimator(name: str, settings: dict[str, Any]) -> pb.Estimator:
    size, steps = settings["stepSize"], settings["steps"]
    if name == "own":
        recipe = settings["recipe"]
        return PulledBack(LOSSES[recipe["loss"]], STARTS[recipe["start"]], UPDATES[recipe["update"]](size), steps)
    if name in ("ste-i", "spigot", "spigot-ce", "spigot-eg"):
        from pullback.estimators.registry import create

        return create(name, step_size=size, steps=steps)
    return {"marginals": pb.Marginals(), "sparsemap": pb.SparseMAP(), "ste-s": pb.STEMarginals()}[name]
