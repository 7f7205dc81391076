"""Methods, the rows of a task's tables: baselines, the library's estimators, the study's own, and the user's."""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pullback_study.listed import VariableError, listed, load
from pullback_study.published import settings

if TYPE_CHECKING:
    from pullback.estimators import Estimator

NAMES = {
    "marginals": ("Softmax", "Marginals", "Relaxed"),
    "sparsemap": ("Sparsemax", "SparseMAP", "Relaxed"),
    "perturbed-marginals": ("Gumbel-Softmax", "Perturbed marginals", "Relaxed"),
    "perturb-and-map": ("ST-Gumbel", "Perturb-and-MAP", "Argmax"),
    "sfe": ("SFE", "SFE", "Argmax"),
    "sfe-baseline": ("SFE w/ baseline", "SFE w/ baseline", "Argmax"),
    "ste-s": ("STE-S", "STE-S", "Argmax"),
    "ste-i": ("STE-I", "STE-I", "Argmax"),
    "spigot": ("SPIGOT", "SPIGOT", "Argmax"),
    "spigot-ce": ("SPIGOT-CE", "SPIGOT-CE", "Argmax"),
    "spigot-eg": ("SPIGOT-EG", "SPIGOT-EG", "Argmax"),
}
"""The paper's, by estimator: for a categorical and for a structured latent variable, and the heading above its row."""
OWN = listed("PULLBACK_ESTIMATORS")
"""By name, where each estimator of one's own is found: module and attribute, a `Method`."""


def _once(steps: int) -> int:
    return 1


@dataclass(frozen=True)
class Method:
    """A row of a task's tables."""

    name: str  # on the command line and in configs
    label: str  # in tables; the paper's name where it has one
    kind: str  # the heading above it: `Baselines`, `Relaxed`, `Argmax`; `Erratum` for what no one should use
    make: Callable[..., Estimator] | None = None  # the estimator's factory; None for a baseline
    aliases: tuple[str, ...] = ()  # other names on the command line
    stochastic: bool = False  # whether training draws noise
    defaults: Mapping[str, Any] = field(default_factory=dict)  # its own fields of a config: learning rate, step size, ...
    decoder_calls: Callable[[int], int] = field(default=_once)  # of a training step, from the inner steps
    reads_back: bool = False  # whether a step reads numbers back from the device, so that no CUDA graph can hold it

    @property
    def latent(self) -> bool:
        return self.make is not None

    @property
    def pulled_back(self) -> bool:
        """Whether it makes inner steps of a size: then step_size, inner_steps and gamma_scale apply."""
        return {"step_size", "steps"} <= self.accepted.keys()

    @property
    def accepted(self) -> Mapping[str, inspect.Parameter]:
        """The arguments of the factory."""
        return _parameters(self.make) if self.make is not None else {}

    def build(self, **offered: Any) -> Estimator | None:
        """The estimator, from those of the offered arguments that its factory takes; None for a baseline.

        The argument `projection` may be `local`: inner steps are then projected onto a set that contains the marginal polytope.
        """
        if self.make is None:
            return None
        made: Any = self.make(**{name: value for name, value in offered.items() if name in self.accepted})
        if offered.get("projection") != "local":
            return made
        from pullback import PulledBack
        from pullback.parts import LocallyProjected

        return PulledBack(made.loss, made.start, LocallyProjected(made.update.step_size), made.steps)


@functools.cache
def _parameters(make: Callable[..., Estimator]) -> Mapping[str, inspect.Parameter]:
    return inspect.signature(make).parameters


def own_method(name: str) -> Method:
    """The estimator of that name in `OWN`; raises `ValueError` if it cannot be loaded."""
    return load("estimator", name, OWN[name], Method)


def by_name(*methods: Method) -> dict[str, Method]:
    return {method.name: method for method in methods}


@functools.cache
def registered(task: str = "", *, categorical: bool = False, four_samples: bool = False) -> tuple[Method, ...]:
    """Every estimator of the library's registry that fits the structure, the study's own, and the user's, as methods.

    Those with settings in the paper for the task have them as defaults. For a categorical structure some estimators have
    another name, and there are more. `four_samples`: also those of the study that have as many samples as the control variate.
    """
    from pullback.estimators import registry
    from pullback.structures import Categorical
    from pullback_study.tasks.own import BLENDED, FOUR_SAMPLES

    found, best = [], settings(task)
    for entry in registry.ENTRIES:
        *labels, heading = NAMES.get(entry.name, (entry.name, entry.name, ""))
        kind = heading or {"average": "Relaxed", "structure": "Argmax"}[entry.sees]
        own = zip(("learning_rate", "step_size"), best.get(entry.name, ()), strict=False)
        about = entry.make, entry.aliases, entry.stochastic, {name: value for name, value in own if value}
        if categorical or entry.only is not Categorical:
            found.append(Method(entry.name, labels[not categorical], kind, *about, entry.downstream.at, entry.reads_back))
    found += [BLENDED, *(FOUR_SAMPLES if four_samples else ())]
    if both := sorted(OWN.keys() & {name for method in found for name in (method.name, *method.aliases)}):
        raise VariableError(f"PULLBACK_ESTIMATORS names an estimator {both[0]!r}, which is built in; give yours another name")
    for name in OWN:
        with contextlib.suppress(ValueError):  # those that cannot be loaded stop only the commands that name them
            found.append(own_method(name))
    return tuple(found)
