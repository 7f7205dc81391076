"""The rows of the synthetic table: two baselines and every estimator of the registry, with the paper's settings."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor

from pullback.estimators import Estimator
from pullback.estimators.config import nearest
from pullback.estimators.registry import ENTRIES, Entry
from pullback_study.results.paper.names import name_of
from pullback_study.synthetic.errata import (
    DiagonalStraightThrough,
    UnnormalisedScoreFunction,
    unnormalised_with_moving_average,
)


@dataclass(frozen=True)
class Parts:
    """What a group of replicas offers to its estimator.

    Args:
        groups: R; the batch is R equal consecutive groups, the replicas.
        step_size: `[B, 1]`, each replica's own, on the gradient of one example's loss.
        steps: the number of inner steps.
        noise: from scores to Gumbel noise of their shape, from each replica's own stream.
    """

    groups: int
    step_size: Tensor
    steps: int
    noise: Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class Method:
    """A row.

    Args:
        name: on the command line and in configs.
        row: in the paper's table.
        kind: the heading in the table: `Baselines`, `Relaxed` or `Argmax`; `Erratum` for what no one should use.
        make: the estimator's factory, which takes any of the fields of `Parts` by name; None for the models without a
            latent variable to learn.
        learning_rate: the paper's best; None where it lists none, and the grid decides.
        step_size: the paper's best, for pulled-back estimators. STE-I has none listed: with one inner step and
            Adam its size does not matter.
        in_paper: whether the paper's table has this row.
        reads_back: whether a step reads numbers back from the device, so that it is not captured in a CUDA graph.
    """

    name: str
    row: str
    kind: str
    make: Callable[..., Estimator] | None
    learning_rate: float | None
    step_size: float | None = None
    aliases: tuple[str, ...] = ()
    stochastic: bool = False
    in_paper: bool = True
    reads_back: bool = False

    @functools.cached_property
    def pulled_back(self) -> bool:
        """Whether it makes inner steps, whose number and size a config sets; others have the registry's settings."""
        return self.make is not None and "steps" in inspect.signature(self.make).parameters

    def build(self, parts: Parts) -> Estimator | None:
        if self.make is None:
            return None
        accepted = set(inspect.signature(self.make).parameters) - (set() if self.pulled_back else {"step_size"})
        return self.make(**{name: value for name, value in vars(parts).items() if name in accepted})


_BEST = {
    "marginals": (0.002, None),
    "sparsemap": (0.001, None),
    "perturbed-marginals": (0.002, None),
    "perturb-and-map": (0.002, None),
    "ste-s": (0.002, None),
    "ste-i": (0.001, 1.0),
    "spigot": (0.002, 0.1),
    "spigot-ce": (0.001, 0.1),
    "spigot-eg": (0.001, 0.1),
}  # learning rate and step size, from the paper's table of training details


def _from(entry: Entry) -> Method:
    rate, size = _BEST.get(entry.name, (None, None))
    label, heading, in_paper = name_of(entry.name, structured=False)
    return Method(
        entry.name, label, heading, entry.make, rate, size,
        aliases=entry.aliases, stochastic=entry.stochastic, in_paper=in_paper,
        reads_back=entry.reads_back,
    )  # fmt: skip


METHODS: dict[str, Method] = {
    method.name: method
    for method in (
        Method("linear", "Linear model", "Baselines", None, 0.001),
        Method("gold", "Gold cluster labels", "Baselines", None, 0.001),
        *map(_from, ENTRIES),
        *(
            Method(name, row, "Erratum", make, rate, stochastic="SFE" in row, in_paper=False)
            for name, row, make, rate in (
                ("ste-s-diagonal", "STE-S, diagonal", DiagonalStraightThrough, 0.002),
                ("sfe-no-partition", "SFE, no log Z", UnnormalisedScoreFunction, None),
                ("sfe-baseline-no-partition", "SFE b., no log Z", unnormalised_with_moving_average, None),
            )
        ),
    )
}
ROWS = tuple(name for name, method in METHODS.items() if method.in_paper)
ERRATA = tuple(name for name, method in METHODS.items() if method.kind == "Erratum")
_NAMES = {name: method for method in METHODS.values() for name in (method.name, *method.aliases)}


def find_method(name: str) -> Method:
    """The method of that name, or of one of its aliases.

    >>> find_method("softmax").name
    'marginals'
    >>> find_method("spigot-cd")
    Traceback (most recent call last):
    ValueError: there is no estimator 'spigot-cd'; did you mean 'spigot-ce'?
    """
    if name not in _NAMES:
        raise ValueError(f"there is no estimator {name!r}; {nearest(name, list(_NAMES))}")
    return _NAMES[name]
