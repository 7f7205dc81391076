"""The runs on planted structures: settings, seeds and the search, fixed before any run was made."""

from __future__ import annotations

import functools
import itertools
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from pullback_study.results.choice import Chosen, Plan, Protocol, Runs
from pullback_study.tasks import find_task
from pullback_study.tasks.own import FOUR_SAMPLES
from pullback_study.tasks.planted.task import SELECTIONS

TASK = find_task("planted")
METHODS = TASK.methods
ESTIMATORS = tuple(name for name, method in METHODS.items() if method.latent)
BASELINES = tuple(name for name, method in METHODS.items() if not method.latent)
SIZES = {"tree": 6, "chain": 6, "segmentation": 6, "subset": 12, "alignment": 6, "binary-tree": 6}
_ONLY_SCALE = ("ste-i", "identity-projection")  # their step size scales the gradient, which Adam does not see
EXPENSIVE = ("spigot-ce", "sparse-expectation")
"""Not on the trees of 10 words: a step takes 20 to 100 times as long as one of the others."""


@dataclass(frozen=True)
class Setting:
    """A bed: a structure with its knobs; those of a selection are fixed by its definition."""

    structure: str
    n: int = 0
    noise: float = 0.0
    share: float = 1.0

    @property
    def title(self) -> str:
        if self.structure in SELECTIONS:
            return f"selection: {self.structure}"
        knobs = "" if (self.noise, self.share) == (0, 1) else f", noise {self.noise:g}, share {self.share:g}"
        return f"{self.structure}, n = {self.n}{knobs}"

    @property
    def fields(self) -> dict[str, Any]:
        if self.structure in SELECTIONS:
            return {"structure": self.structure, "train_examples": 16384}
        return {"structure": self.structure, "n": self.n, "noise": self.noise, "share": self.share}

    @property
    def rates(self) -> tuple[float, ...]:
        """Learning rates of the search: the same three for every estimator, lower for the networks of the selections."""
        return (0.0003, 0.001, 0.003) if self.structure in SELECTIONS else (0.01, 0.03, 0.1)


BASES = {name: Setting(name, n) for name, n in SIZES.items()} | {name: Setting(name) for name in SELECTIONS}
"""The setting of each structure: no noise, and the label needs the structure."""
NOISES, SHARES, LENGTHS = (0.0, 0.25, 0.5), (1.0, 0.75, 0.5), (6, 10)
GRID = tuple(Setting("tree", n, noise, share) for n, share, noise in itertools.product(LENGTHS, SHARES, NOISES))
"""The full grid of trees; its first setting is the base."""
LONGER = (20, 40)
"""Words of trees that are longer than those of the grid."""
_TIMED = {"steps": 50, "evaluate_every": 50}


FULL = Protocol(
    TASK.name,
    seeds=tuple(range(100, 132)),
    fields=(("steps", 1000), ("evaluate_every", 100)),
    sizes=(0.1, 1.0, 10.0),
    deciding=tuple(range(1000, 1004)),  # none of which is in a result
)
QUICK = replace(FULL.on((100, 101)).having(steps=200, evaluate_every=50), deciding=(1000,))


@functools.cache
def plan(estimator: str, setting: Setting, protocol: Protocol = FULL) -> Plan:
    """A row of a bed: the rate and the step size are chosen by the search's seeds at the structure's base setting."""
    method, rates = METHODS[estimator], setting.rates
    sized = "step_size" in method.accepted and estimator not in _ONLY_SCALE
    found = replace(protocol, searched=tuple(BASES[setting.structure].fields.items()))
    return found.plan(estimator, rates if method.latent else rates[1:2], protocol.sizes if sized else (), **setting.fields)


def search(estimator: str, structure: str, protocol: Protocol = FULL) -> list[Any]:
    """The runs that choose a setting; none for a baseline."""
    return plan(estimator, BASES[structure], protocol).first


@functools.cache
def chosen(runs: Runs, estimator: str, setting: Setting, protocol: Protocol = FULL) -> Chosen:
    """A row of a bed at the setting that the search chose, once every run of the search is done."""
    return plan(estimator, setting, protocol).choose(runs)


def timed(runs: Runs, estimator: str, protocol: Protocol = FULL) -> Chosen:
    """Short runs of 32 seeds on planted trees, which train with nothing beside them: for the time per step alone."""
    row = chosen(runs, estimator, BASES["tree"], protocol)
    return Chosen.of(TASK, [replace(row.config, seed=seed, **_TIMED) for seed in range(2000, 2032)], runs) if row else row


WIDE_ROWS = tuple(name for name in ESTIMATORS if name not in (*EXPENSIVE, *(method.name for method in FOUR_SAMPLES)))
_WIDE = 16  # settings


def calls(estimator: str, samples: int = 1) -> int:
    """Of the decoder in a training step: one per structure that it sees."""
    method = METHODS[estimator]
    own = "samples" in method.accepted and method.kind == "Argmax"
    return max(method.decoder_calls(samples if own else 1), samples if own else 1)


def wide(estimator: str, setting: Setting, protocol: Protocol = FULL) -> Plan:
    """A row whose setting is the best of 16 random ones, by the search's seeds at the structure's base setting (rule 9).

    Drawn log-uniformly and independently: the learning rate from 0.001 to 1; where an estimator has them, its step size from
    0.01 to 100, its temperature from 0.1 to 10, and 1 (or 2), 2, 4 or 8 samples. All estimators have the same draws, and as
    many decoder calls per run, so that more samples are fewer steps.
    """
    stream, accepted, settings = random.Random("wide search"), METHODS[estimator].accepted, []
    least = getattr(accepted.get("samples"), "default", 1)
    for _ in range(_WIDE):
        drawn = {name: float(f"{10 ** stream.uniform(*exponents):.3g}") for name, exponents in _RANGES.items()}
        samples = max(stream.choice((1, 2, 4, 8)), 2 if least > 1 else 1)
        own: dict[str, Any] = {name: value for name, value in (drawn | {"samples": samples}).items() if name in accepted}
        steps = _CALLS * protocol["steps"] // calls(estimator, samples)
        own |= {"learning_rate": drawn["learning_rate"], "steps": steps, "evaluate_every": max(1, steps // 10)}
        settings.append({**setting.fields, **own})
    base = BASES[setting.structure].fields
    return Plan(TASK, estimator, settings, protocol.seeds, protocol.deciding, base)


_CALLS = 4  # of the decoder, for each step of the protocol
_RANGES = {"learning_rate": (-3, 0), "step_size": (-2, 2), "temperature": (-1, 1)}


def runs_on(estimator: str, setting: Setting) -> bool:
    """Whether an estimator is run in a setting."""
    return estimator not in EXPENSIVE or setting.n < max(LENGTHS) or setting in BASES.values()


def settings(structures: Sequence[str] = (), *, grid: bool = True) -> list[Setting]:
    """All beds of these structures, or of all; the base settings first, then the grid of trees."""
    longer = (Setting("tree", n) for n in LONGER)
    every = (*BASES.values(), *GRID[1:], *longer) if grid else tuple(BASES.values())
    return [setting for setting in every if not structures or setting.structure in structures]
