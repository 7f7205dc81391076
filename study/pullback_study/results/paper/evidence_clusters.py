"""What the rules on synthetic clusters look at: our runs, or the numbers that the paper published."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from pullback_study.results.choice import Chosen, Protocol, Runs
from pullback_study.results.paper import reported
from pullback_study.results.paper.clusters import MANY, MEASURES, METHODS, ROWS, inner_steps, steps_plan, table_plan

from pullback_study.results.paper.verdicts import (  # isort: skip
    Finding, PaperRow, Published, Values, best_of, level, minus, near_best, paired,
)  # fmt: skip

LATENT = tuple(name for name in ROWS if METHODS[name].kind != "Baselines")
_WORDS = {"test_accuracy": "accuracy", "test_v_measure": "V-measure"}
_RUNS = 4  # behind each of the paper's numbers, which are medians with a standard error


@dataclass(frozen=True)
class Clusters:
    """Rows with k clusters: at the paper's settings, or with `grid` at searched ones."""

    runs: Runs
    protocol: Protocol = MANY
    grid: bool = False
    margins: ClassVar[Mapping[str, float]] = {"test_accuracy": 3.0, "test_v_measure": 5.0}
    """How much larger than in the paper a shortfall may be, for each measure."""

    def row(self, clusters: int, estimator: str) -> Any:
        return table_plan(estimator, clusters, grid=self.grid, protocol=self.protocol).choose(self.runs)

    def rows(self, clusters: int, *estimators: str) -> list[Any]:
        """Several rows on the same seeds."""
        return paired(*(self.row(clusters, name) for name in estimators))

    def gap(self, clusters: int, first: str, second: str, measure: str) -> Values:
        """The difference of two rows, seed by seed."""
        return minus(*(row.values(measure) for row in self.rows(clusters, first, second)))

    def steps(self, estimator: str) -> dict[int, Chosen]:
        """For each number of inner steps, the runs with the best step size; none while one is missing."""
        found = {k: steps_plan(estimator, k, self.protocol).choose(self.runs) for k in inner_steps(self.protocol)}
        there = paired(*found.values())
        return dict(zip(found, there, strict=True)) if all(row.done for row in there) else {}

    def choosing(self, measure: str) -> str:
        """The measure that picks the best row."""
        return measure.replace("test", "validation")

    def near_best(self, name: str, clusters: int, measure: str) -> Finding:
        """The shortfall from the latent variable row with the highest mean of the measure, against the paper's own."""
        rows = self.rows(clusters, *LATENT)
        mine, best = rows[LATENT.index(name)], best_of(rows, self.choosing(measure))
        paper = {each: level(published(each, clusters).values(measure)) for each in LATENT}
        margin = self.margins[measure] + (max(paper.values()) - paper[name])
        return near_best(mine, best, measure, f"{_WORDS[measure]}, {clusters} clusters", round(margin, 2))


class Paper(Clusters):
    """The paper's table in the place of runs: no seeds, no curves and nothing on the validation set."""

    def row(self, clusters: int, estimator: str) -> PaperRow:
        return published(estimator, clusters)

    def steps(self, estimator: str) -> dict[int, Chosen]:
        return {}

    def choosing(self, measure: str) -> str:
        return measure


def published(estimator: str, clusters: int) -> PaperRow:
    """A row of the paper's table."""
    method, found = METHODS[estimator], {}
    for measure in MEASURES:
        if cell := reported("synthetic", method.label, f"{clusters} clusters", measure):
            found[f"test_{measure}"] = Published(cell.value, cell.spread, _RUNS)
    return PaperRow(method, found)
