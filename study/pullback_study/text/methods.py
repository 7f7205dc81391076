"""The rows of the table of text results: the baseline and the registry's estimators, with the paper's best settings."""

from __future__ import annotations

from dataclasses import dataclass

from pullback.estimators import Estimator, LocallyProjected, PulledBack
from pullback.estimators.config import nearest
from pullback.estimators.registry import ENTRIES, Entry
from pullback.structures import DependencyTree
from pullback_study.results.paper.names import name_of

BASELINE = "baseline"


@dataclass(frozen=True)
class Method:
    """A row.

    Args:
        name: on the command line and in configs.
        row: in the paper's table.
        kind: its heading in the table: empty for the baseline, `Relaxed` or `Argmax`.
        entry: of the registry; None for the baseline.
        settings: for each task, the learning rate and the step size that the paper found best, where it lists them.
    """

    name: str
    row: str
    kind: str
    entry: Entry | None
    settings: dict[str, tuple[float, float | None]]

    @property
    def latent(self) -> bool:
        return self.entry is not None

    @property
    def pulled_back(self) -> bool:
        return self.entry is not None and "steps" in self.entry.options

    @property
    def stochastic(self) -> bool:
        return self.entry is not None and self.entry.stochastic

    @property
    def projects(self) -> bool:
        return self.projection is not None

    @property
    def projection(self) -> str | None:
        """What inner steps are projected onto by default, if they are.

        SPIGOT-CE's exact projections are means of hundreds of trees, which take too long in training (docs/results/text.md).
        """
        return {"spigot": "exact", "spigot-ce": "local"}.get(self.name)

    def build(
        self, *, step_size: float | None, inner_steps: int | None, projection: str | None = None
    ) -> Estimator | None:
        """The estimator, with the step size on the gradient of one example's loss; None for the baseline."""
        if self.entry is None:
            return None
        if not self.pulled_back:
            return self.entry.make()
        made = self.entry.make(step_size=step_size, steps=inner_steps)
        if projection != "local":
            return made
        assert isinstance(made, PulledBack)
        return PulledBack(made.loss, made.start, LocallyProjected(made.update.step_size), made.steps)


# Learning rate and step size for SST and SNLI, from the paper's table of training details. It lists no step size
# for STE-I: with one inner step the size only scales the parser's gradient, and 1 leaves it as it is.
_BEST = {
    BASELINE: ((2e-5, None), (1e-4, None)),
    "marginals": ((1e-4, None), (1e-4, None)),
    "sparsemap": ((5e-5, None), (3e-4, None)),
    "perturb-and-map": ((5e-5, None), (1e-4, None)),
    "ste-s": ((5e-5, None), (3e-4, None)),
    "ste-i": ((1e-4, 1.0), (1e-4, 1.0)),
    "spigot": ((1e-4, 0.1), (3e-4, 1.0)),
    "spigot-ce": ((5e-5, 0.1), (1e-4, 0.1)),
    "spigot-eg": ((5e-5, 0.1), (1e-4, 0.001)),
}


def _settings(name: str) -> dict[str, tuple[float, float | None]]:
    return dict(zip(("sst", "snli"), _BEST[name], strict=True)) if name in _BEST else {}


METHODS: dict[str, Method] = {BASELINE: Method(BASELINE, "Baseline", "", None, _settings(BASELINE))} | {
    entry.name: Method(entry.name, *name_of(entry.name, structured=True)[:2], entry, _settings(entry.name))
    for entry in ENTRIES
    if entry.supports(DependencyTree())
}
ROWS = tuple(name for name in METHODS if name in _BEST)
"""The paper's nine rows, in its order."""
_NAMES = {alias: entry.name for entry in ENTRIES for alias in (entry.name, *entry.aliases)} | {BASELINE: BASELINE}


def find_method(name: str) -> Method:
    """The method of that name, or of one of its aliases.

    >>> find_method("spigot-ce").settings["sst"]
    (5e-05, 0.1)
    >>> find_method("spiggot")
    Traceback (most recent call last):
    ValueError: there is no estimator 'spiggot'; did you mean 'spigot'?
    """
    if name not in _NAMES:
        raise ValueError(f"there is no estimator {name!r}; {nearest(name, list(_NAMES))}")
    return METHODS[_NAMES[name]]
