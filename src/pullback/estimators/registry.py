"""The registry of estimators: one place for their names, their options and their costs.

The command line, the tables, the tests and the documentation read it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal

from pullback.estimators.adaptive_imle import AdaptiveIMLE
from pullback.estimators.base import Estimator
from pullback.estimators.baselines import ControlVariate, LeaveOneOut, MovingAverage, Point, SelfCritical
from pullback.estimators.blackbox import Blackbox
from pullback.estimators.config import nearest
from pullback.estimators.entmax import Entmax
from pullback.estimators.gumbel_rao import GumbelRao
from pullback.estimators.imle import IMLE
from pullback.estimators.lpgd import LPGD
from pullback.estimators.perturbed import PerturbAndMAP, PerturbedMarginals, PerturbedSparseMAP
from pullback.estimators.perturbed_argmax import PerturbedArgmax
from pullback.estimators.pulled_back import SPIGOT, SPIGOTCE, SPIGOTEG, STEIdentity
from pullback.estimators.relaxed import Marginals, SparseMAP
from pullback.estimators.sampled import ReinMax, SampledSTE
from pullback.estimators.score_function import ScoreFunction
from pullback.estimators.sparse_expectation import SparseExpectation
from pullback.estimators.standardized import Standardized
from pullback.estimators.straight_through import STEMarginals
from pullback.structures import Categorical, Structure


@dataclass(frozen=True)
class Count:
    """How often something is called in a training step: `fixed + each * k`, k the entry's `repeated` option.

    >>> print(Count(1, each=1)), Count(1, each=1).at(3)
    k + 1
    (None, 4)

    Attributes:
        fixed: calls that do not depend on k.
        each: calls for each k.
        of: the quantity that decides the number instead: "support".
    """

    fixed: int = 0
    each: int = 0
    of: str = ""

    def at(self, k: int) -> int:
        return self.fixed + self.each * k

    def __str__(self) -> str:
        times = "k" if self.each == 1 else f"{self.each}k"
        return self.of or " + ".join([times] * bool(self.each) + [str(self.fixed)] * bool(self.fixed or not self.each))


@dataclass(frozen=True)
class Entry:
    """An estimator with its name on the command line, its options and its costs.

    Attributes:
        name: the name on the command line.
        make: a function from options, by keyword, to the estimator.
        sees: whether the decoder sees averages of structures or structures, in training and at evaluation.
        inference: how often it calls each operation of the structure in a training step, forward and backward;
            Jacobians of these are not counted.
        aliases: other names on the command line.
        stochastic: whether training draws noise.
        downstream: how often it calls the decoder in a training step.
        repeated: the option that k in the counts stands for.
        only: the only structure that it works with, or None.
    """

    name: str
    make: Callable[..., Estimator]
    sees: Literal["average", "structure"]
    inference: Mapping[str, Count]
    aliases: tuple[str, ...] = ()
    stochastic: bool = False
    downstream: Count = field(default=Count(1))
    repeated: str | None = None
    only: type[Structure] | None = None

    @property
    def options(self) -> Mapping[str, inspect.Parameter]:
        """The options that go into a config, by name, with their defaults."""
        parameters = inspect.signature(self.make).parameters
        return MappingProxyType({name: p for name, p in parameters.items() if name not in ("noise", "baseline")})

    @property
    def reads_back(self) -> bool:
        """Whether a training step reads numbers back from the device, so that it cannot be captured in a CUDA graph."""
        return bool(self.downstream.of)

    def supports(self, structure: Structure) -> bool:
        """Whether the estimator works with this kind of structure, provided that the structure has the operations it needs."""
        return self.only is None or isinstance(structure, self.only)


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


def _self_critical() -> ScoreFunction:
    return ScoreFunction(SelfCritical())


def _with_control_variate(samples: int = 4, rate: float = 0.01, point: Point = "samples", groups: int = 1) -> ScoreFunction:
    return ScoreFunction(ControlVariate(samples, rate, point, groups))


def _reinmax_with_control_variate(samples: int = 4) -> ReinMax:
    return ReinMax(samples, point="samples")


def _identity_with_projection(step_size: float = 1.0, center: bool = True, scale: bool = True) -> Standardized:
    return Standardized(STEIdentity(step_size), center, scale)


_ONCE, _TWICE, _K, _ONCE_AND_K = Count(1), Count(2), Count(each=1), Count(1, each=1)

ENTRIES: tuple[Entry, ...] = (
    Entry("marginals", Marginals, "average", {"marginals": _ONCE}, aliases=("softmax",)),
    Entry("sparsemap", SparseMAP, "average", {"sparsemap": _ONCE}, aliases=("sparsemax",)),
    Entry(
        "perturbed-marginals",
        PerturbedMarginals,
        "average",
        {"marginals": _ONCE},
        aliases=("gumbel-softmax",),
        stochastic=True,
    ),
    Entry(
        "perturb-and-map",
        PerturbAndMAP,
        "structure",
        {"argmax": _ONCE, "marginals": _ONCE},
        aliases=("st-gumbel",),
        stochastic=True,
    ),
    Entry(
        "sfe",
        ScoreFunction,
        "structure",
        {"sample": _ONCE, "marginals": _ONCE},
        aliases=("score-function",),
        stochastic=True,
    ),
    Entry(
        "sfe-baseline",
        _with_moving_average,
        "structure",
        {"sample": _ONCE, "marginals": _ONCE},
        aliases=("sfe-moving-average",),
        stochastic=True,
    ),
    Entry(
        "sfe-leave-one-out",
        _with_leave_one_out,
        "structure",
        {"sample": _ONCE, "marginals": _ONCE},
        aliases=("rloo",),
        stochastic=True,
        downstream=_K,
        repeated="samples",
    ),
    Entry(
        "sfe-self-critical",
        _self_critical,
        "structure",
        {"sample": _ONCE, "argmax": _ONCE, "marginals": _ONCE},
        aliases=("scst",),
        stochastic=True,
        downstream=Count(2),
    ),
    Entry(
        "sfe-control-variate",
        _with_control_variate,
        "structure",
        {"sample": _ONCE, "marginals": _ONCE},
        stochastic=True,
        downstream=_K,
        repeated="samples",
    ),
    Entry(
        "ste-s",
        STEMarginals,
        "structure",
        {"argmax": _ONCE, "marginals": _ONCE},
        aliases=("ste-softmax", "ste-marginals"),
    ),
    Entry(
        "ste-i",
        STEIdentity,
        "structure",
        {"argmax": _ONCE},
        aliases=("ste-identity",),
        downstream=_K,
        repeated="steps",
    ),
    Entry(
        "spigot",
        SPIGOT,
        "structure",
        {"argmax": _ONCE, "sparsemap": _K},
        downstream=_K,
        repeated="steps",
    ),
    Entry(
        "spigot-ce",
        SPIGOTCE,
        "structure",
        {"argmax": _ONCE, "marginals": _ONCE, "sparsemap": _K},
        downstream=_ONCE_AND_K,
        repeated="steps",
    ),
    Entry(
        "spigot-eg",
        SPIGOTEG,
        "structure",
        {"argmax": _ONCE, "marginals": _ONCE_AND_K},
        downstream=_ONCE_AND_K,
        repeated="steps",
    ),
    Entry(
        "blackbox",
        Blackbox,
        "structure",
        {"argmax": _TWICE},
        aliases=("dbb",),
    ),
    Entry(
        "identity-projection",
        _identity_with_projection,
        "structure",
        {"argmax": _ONCE},
        aliases=("standardized-ste-i",),
    ),
    Entry(
        "imle",
        IMLE,
        "structure",
        {"argmax": _TWICE},
        aliases=("i-mle",),
        stochastic=True,
        downstream=_K,
        repeated="samples",
    ),
    Entry(
        "adaptive-imle",
        AdaptiveIMLE,
        "structure",
        {"argmax": _TWICE},
        aliases=("aimle",),
        stochastic=True,
        downstream=_K,
        repeated="samples",
    ),
    Entry(
        "lpgd",
        LPGD,
        "structure",
        {"argmax": _ONCE, "sparsemap": _ONCE},
    ),
    Entry(
        "sampled-ste",
        SampledSTE,
        "structure",
        {"sample": _ONCE, "marginals": _ONCE},
        aliases=("simple",),
        stochastic=True,
    ),
    Entry("reinmax", ReinMax, "structure", {"sample": _ONCE, "marginals": _ONCE}, stochastic=True),
    Entry(
        "reinmax-control-variate",
        _reinmax_with_control_variate,
        "structure",
        {"sample": _ONCE, "marginals": _ONCE},
        stochastic=True,
        downstream=_K,
        repeated="samples",
    ),
    Entry(
        "gumbel-rao",
        GumbelRao,
        "structure",
        {"sample": _ONCE, "marginals": _ONCE},
        stochastic=True,
        only=Categorical,
    ),
    Entry(
        "perturbed-argmax",
        PerturbedArgmax,
        "average",
        {"argmax": _ONCE},
        aliases=("dpo",),
        stochastic=True,
    ),
    Entry("perturbed-sparsemap", PerturbedSparseMAP, "average", {"sparsemap": _ONCE}, stochastic=True),
    Entry("sparse-expectation", SparseExpectation, "structure", {"sparsemap": _ONCE}, downstream=Count(of="support")),
    Entry("entmax", Entmax, "average", {"entmax": _ONCE}, only=Categorical),
)
"""All estimators: the paper's in the order of its tables, then the others."""

_BY_NAME = {name: entry for entry in ENTRIES for name in (entry.name, *entry.aliases)}
