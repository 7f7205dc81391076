"""The rows of the synthetic table: two baselines and every estimator of the registry, with the paper's settings."""

from __future__ import annotations

from pullback_study.tasks.methods import Method, registered
from pullback_study.tasks.synthetic.errata import (
    DiagonalStraightThrough,
    UnnormalisedScoreFunction,
    unnormalised_with_moving_average,
)

# Learning rate and step size, from the paper's table of training details; where it lists no rate, the grid decides. STE-I
# has no step size listed: with one inner step and Adam its size does not matter.
_BEST: dict[str, tuple[float, float | None]] = {
    "marginals": (0.002, None),
    "sparsemap": (0.001, None),
    "perturbed-marginals": (0.002, None),
    "perturb-and-map": (0.002, None),
    "ste-s": (0.002, None),
    "ste-i": (0.001, 1.0),
    "spigot": (0.002, 0.1),
    "spigot-ce": (0.001, 0.1),
    "spigot-eg": (0.001, 0.1),
}
_SETTINGS = {
    name: {"learning_rate": rate, **({} if size is None else {"step_size": size})} for name, (rate, size) in _BEST.items()
}
_ERRATA = (
    Method("ste-s-diagonal", "STE-S, diagonal", "Erratum", DiagonalStraightThrough, defaults={"learning_rate": 0.002}),
    Method("sfe-no-partition", "SFE, no log Z", "Erratum", UnnormalisedScoreFunction, stochastic=True),
    Method("sfe-baseline-no-partition", "SFE b., no log Z", "Erratum", unnormalised_with_moving_average, stochastic=True),
)
METHODS: dict[str, Method] = {
    method.name: method
    for method in (
        Method("linear", "Linear model", "Baselines", in_paper=True, defaults={"learning_rate": 0.001}),
        Method("gold", "Gold cluster labels", "Baselines", in_paper=True, defaults={"learning_rate": 0.001}),
        *registered(_SETTINGS, categorical=True),
        *_ERRATA,
    )
}
ROWS = tuple(name for name, method in METHODS.items() if method.in_paper)
ERRATA = tuple(method.name for method in _ERRATA)
