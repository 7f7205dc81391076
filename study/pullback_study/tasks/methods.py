"""The rows of a task's tables: baselines, and the estimators of the library's registry."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pullback.estimators import Estimator


@dataclass(frozen=True)
class Method:
    """A row of a task's tables."""

    name: str  # on the command line and in configs
    label: str  # in tables; the paper's name where it has one
    kind: str  # the heading above it: `Baselines`, `Relaxed`, `Argmax`; `Erratum` for what no one should use
    make: Callable[..., Estimator] | None = None  # the estimator's factory; None for a baseline
    aliases: tuple[str, ...] = ()  # other names on the command line
    stochastic: bool = False  # whether training draws noise
    in_paper: bool = False  # whether the paper's tables have this row
    defaults: Mapping[str, Any] = field(default_factory=dict)  # its own fields of a config: learning rate, step size, ...
    decoder_calls: Callable[[int], int] = field(default=lambda steps: 1)  # of a training step, from the inner steps
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
        return inspect.signature(self.make).parameters if self.make is not None else {}

    def build(self, **offered: Any) -> Estimator | None:
        """The estimator, from those of the offered arguments that its factory takes; None for a baseline.

        The argument `projection` may be `local`: inner steps are then projected onto a simpler set.
        """
        if self.make is None:
            return None
        made = self.make(**{name: value for name, value in offered.items() if name in self.accepted})
        return locally_projected(made) if offered.get("projection") == "local" else made


def locally_projected(made: Any) -> Estimator:
    """The same estimator, whose inner steps are projected onto a set that contains the marginal polytope."""
    from pullback.estimators import LocallyProjected, PulledBack

    return PulledBack(made.loss, made.start, LocallyProjected(made.update.step_size), made.steps)


def settings(best: Mapping[str, tuple[float, float | None]]) -> dict[str, dict[str, Any]]:
    """Defaults of methods from their best learning rates and step sizes.

    >>> settings({"marginals": (0.002, None), "spigot": (0.002, 0.1)})
    {'marginals': {'learning_rate': 0.002}, 'spigot': {'learning_rate': 0.002, 'step_size': 0.1}}
    """
    both = {name: {"learning_rate": rate, "step_size": size} for name, (rate, size) in best.items()}
    return {name: {field: value for field, value in own.items() if value is not None} for name, own in both.items()}


def registered(
    defaults: Mapping[str, Mapping[str, Any]], *, categorical: bool = False, in_paper: Callable[[str], bool] | None = None
) -> list[Method]:
    """Every estimator of the library's registry that fits the structure, as a method.

    Args:
        defaults: for each estimator's name, the fields of a config that it decides.
        categorical: whether the structure is categorical: some estimators have another name then, and some need it.
        in_paper: from a name to whether the paper's table has it; by default whether any of its tables has.
    """
    from pullback.estimators import registry
    from pullback.structures import Categorical
    from pullback_study.results.paper.names import name_of

    found = []
    for entry in registry.ENTRIES:
        if entry.only is Categorical and not categorical:
            continue
        name = name_of(entry.name, structured=not categorical)
        kind = name.heading if name.in_paper else _HEADINGS[entry.sees]
        paper = name.in_paper and (in_paper is None or in_paper(entry.name))
        found.append(
            Method(
                entry.name, name.label, kind, entry.make, entry.aliases, entry.stochastic, paper,
                defaults.get(entry.name, {}), entry.downstream.at, entry.reads_back,
            )
        )  # fmt: skip
    return found


_HEADINGS = {"average": "Relaxed", "structure": "Argmax"}
