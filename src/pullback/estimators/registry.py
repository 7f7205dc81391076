"""The registry of estimators: one place for their names, the paper's names, their options and their costs.

The command line, the tables, the tests and the documentation read it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal

from pullback.estimators.base import Estimator
from pullback.estimators.baselines import LeaveOneOut, MovingAverage
from pullback.estimators.config import nearest
from pullback.estimators.named import SPIGOT, SPIGOTCE, SPIGOTEG, STEIdentity
from pullback.estimators.perturbed import PerturbAndMAP, PerturbedMarginals
from pullback.estimators.relaxed import Marginals, SparseMAP
from pullback.estimators.score_function import ScoreFunction
from pullback.estimators.straight_through import STEMarginals


@dataclass(frozen=True)
class Count:
    """How often something is called in a training step: `fixed + each * k`, k the entry's `repeated` option.

    >>> print(Count(1, each=1)), Count(1, each=1).at(3)
    k + 1
    (None, 4)
    """

    fixed: int = 0
    each: int = 0

    def at(self, k: int) -> int:
        return self.fixed + self.each * k

    def __str__(self) -> str:
        times = "k" if self.each == 1 else f"{self.each}k"
        return " + ".join([times] * bool(self.each) + [str(self.fixed)] * bool(self.fixed or not self.each))


@dataclass(frozen=True)
class Entry:
    """An estimator as people name it.

    Attributes:
        name: on the command line.
        make: from options, by keyword, to the estimator.
        categorical: the paper's name when the latent variable is categorical.
        structured: the paper's name when it is structured.
        row: under which heading the paper's tables list it: what the decoder sees in training.
        aliases: other names on the command line.
        stochastic: whether training draws noise (the paper's *).
        in_paper: whether the paper studies it.
        downstream: how often it calls the decoder in a training step.
        inference: how often it calls each operation of the structure in a training step, forward and backward;
            Jacobians of these are not counted.
        repeated: the option that k in the counts stands for.
    """

    name: str
    make: Callable[..., Estimator]
    categorical: str
    structured: str
    row: Literal["Relaxed", "Argmax"]
    inference: Mapping[str, Count]
    aliases: tuple[str, ...] = ()
    stochastic: bool = False
    in_paper: bool = True
    downstream: Count = field(default=Count(1))
    repeated: str | None = None

    @property
    def options(self) -> Mapping[str, inspect.Parameter]:
        """The options that go into a config, by name, with their defaults."""
        parameters = inspect.signature(self.make).parameters
        return MappingProxyType({name: p for name, p in parameters.items() if name not in ("noise", "baseline")})


def create(name: str, **options: Any) -> Estimator:
    """The estimator of that name on the command line, or one of its aliases.

    >>> create("spigot-ce", step_size=0.1)
    SPIGOTCE(step_size=0.1, steps=1)
    >>> create("softmax")
    Marginals()
    >>> create("spigot-c")
    Traceback (most recent call last):
    ValueError: there is no estimator 'spigot-c'; did you mean 'spigot-ce'?
    """
    entry = lookup(name)
    for option in options:
        if option not in entry.options:
            known = list(entry.options)
            hint = nearest(option, known) if known else "it has none"
            raise ValueError(f"estimator {entry.name!r} has no option {option!r}; {hint}")
    return entry.make(**options)


def lookup(name: str) -> Entry:
    """The entry of that name, or of one of its aliases."""
    if name not in _BY_NAME:
        raise ValueError(f"there is no estimator {name!r}; {nearest(name, list(_BY_NAME))}")
    return _BY_NAME[name]


def _with_moving_average(factor: float = 0.05, groups: int = 1) -> ScoreFunction:
    return ScoreFunction(MovingAverage(factor, groups))


def _with_leave_one_out(samples: int = 2) -> ScoreFunction:
    return ScoreFunction(LeaveOneOut(samples))


_ONCE, _K, _ONCE_AND_K = Count(1), Count(each=1), Count(1, each=1)

ENTRIES: tuple[Entry, ...] = (
    Entry("marginals", Marginals, "Softmax", "Marginals", "Relaxed", {"marginals": _ONCE}, aliases=("softmax",)),
    Entry("sparsemap", SparseMAP, "Sparsemax", "SparseMAP", "Relaxed", {"sparsemap": _ONCE}, aliases=("sparsemax",)),
    Entry(
        "perturbed-marginals", PerturbedMarginals, "Gumbel-Softmax", "Perturbed marginals", "Relaxed",
        {"marginals": _ONCE}, aliases=("gumbel-softmax",), stochastic=True,
    ),
    Entry(
        "perturb-and-map", PerturbAndMAP, "ST-Gumbel", "Perturb-and-MAP", "Argmax",
        {"argmax": _ONCE, "marginals": _ONCE}, aliases=("st-gumbel",), stochastic=True,
    ),
    Entry(
        "sfe", ScoreFunction, "SFE", "SFE", "Argmax",
        {"sample": _ONCE, "marginals": _ONCE}, aliases=("score-function",), stochastic=True,
    ),
    Entry(
        "sfe-baseline", _with_moving_average, "SFE w/ baseline", "SFE w/ baseline", "Argmax",
        {"sample": _ONCE, "marginals": _ONCE}, aliases=("sfe-moving-average",), stochastic=True,
    ),
    Entry(
        "sfe-leave-one-out", _with_leave_one_out, "SFE leave-one-out", "SFE leave-one-out", "Argmax",
        {"sample": _K, "marginals": _ONCE}, stochastic=True, in_paper=False, downstream=_K, repeated="samples",
    ),
    Entry(
        "ste-s", STEMarginals, "STE-S", "STE-S", "Argmax",
        {"argmax": _ONCE, "marginals": _ONCE}, aliases=("ste-softmax", "ste-marginals"),
    ),
    Entry(
        "ste-i", STEIdentity, "STE-I", "STE-I", "Argmax",
        {"argmax": _ONCE}, aliases=("ste-identity",), downstream=_K, repeated="steps",
    ),
    Entry(
        "spigot", SPIGOT, "SPIGOT", "SPIGOT", "Argmax",
        {"argmax": _ONCE, "sparsemap": _K}, downstream=_K, repeated="steps",
    ),
    Entry(
        "spigot-ce", SPIGOTCE, "SPIGOT-CE", "SPIGOT-CE", "Argmax",
        {"argmax": _ONCE, "marginals": _ONCE, "sparsemap": _K}, downstream=_ONCE_AND_K, repeated="steps",
    ),
    Entry(
        "spigot-eg", SPIGOTEG, "SPIGOT-EG", "SPIGOT-EG", "Argmax",
        {"argmax": _ONCE, "marginals": _ONCE_AND_K}, downstream=_ONCE_AND_K, repeated="steps",
    ),
)
"""All estimators, in the order of the paper's tables."""

_BY_NAME = {name: entry for entry in ENTRIES for name in (entry.name, *entry.aliases)}
