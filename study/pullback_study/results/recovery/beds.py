"""Beds: for each estimator its recovery, accuracy and time, from the runs that are there; who wins, and who is tied.

The rules, committed before the runs:

1. Planted beds: the learning rate and the step size of an estimator are those with the best mean validation accuracy over the
   search's seeds (1000 to 1003) at the structure's base setting; results are from seeds 100 to 131 after the last step.
2. Other tasks: of all runs, those with the settings (apart from estimator, seed, learning rate, step size, the scale of
   gamma and how SPIGOT-CE projects) that most runs have, where runs of an estimator with the same seed count once; of an
   estimator, the configuration with the most seeds, then the best mean validation metric.
3. The best on a bed has the highest mean; another estimator is tied with it if the 95% bootstrap interval of their difference
   (paired over the seeds that both have) contains 0, or if the means differ by less than 1 point. With fewer than 5 seeds
   in common nothing is decided, and the two are tied.
4. A rank is an estimator's place by the mean; its interval comes from resampling the seeds of every cell.
5. An estimator is recommended if it is best or tied on every bed that it ran on, and it ran on all; if there is none, the one
   with the best mean rank, together with those that rule 6 cannot tell apart from it.
6. Two estimators are told apart over all beds if the 95% intervals of their mean ranks do not overlap.

Added on 2026-11-19, before any run that they rank; the page of lost runs follows the rules above alone:

7. Intervals of ranks and means over beds resample the beds, and then the seeds of every cell. Cells of one seed have no rank,
   and win on no bed.
8. Beds whose labels do not identify the structure are shown and count neither for ranks nor for recommendations: subsets (the
   other half of the items has the sums of the chosen ones, up to a sign that the label does not see), the selections (their
   labels are drawn, and a bag of parts is as accurate as the gold selection), and ListOps where every token may be a head (a
   closing bracket relays what hangs on it).
9. A wide search (`plans.wide`) gives every estimator as many settings, drawn at random, and as many calls of the decoder.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from pullback_study.results.cells import Cell, Summary, bootstrap, deviation, number
from pullback_study.results.choice import Protocol, Runs
from pullback_study.results.configurations import grouped
from pullback_study.results.recovery.plans import BASES, ESTIMATORS, FULL, TASK, Setting, chosen
from pullback_study.runs.store import Stored
from pullback_study.tasks import Task, all_tasks
from pullback_study.tasks.planted.task import SELECTIONS

RECOVERY = ("test_recovery", "test_attachment", "test_v_measure")
"""Measures of recovery, one of which a task with gold structures has."""
_SEARCHED = ("estimator", "seed", "learning_rate", "step_size", "inner_steps", "gamma_scale", "projection")
_MARGIN, _SEEDS = 1.0, 5
MEAN = Summary("mean ± standard deviation", np.mean, deviation, lambda values: bootstrap(values, np.mean))  # type: ignore[arg-type]


@dataclass(frozen=True)
class Bed:
    """One test bed."""

    title: str
    measure: str  # of recovery; empty where there is no gold structure
    rows: Mapping[str, Sequence[Stored]] = field(default_factory=dict)  # by estimator
    identified: bool = True  # whether its labels identify the structure

    def cells(self, measure: str) -> dict[str, Cell]:
        return {name: Cell.of(rows, measure, MEAN, digits=1) for name, rows in self.rows.items()}

    @property
    def recovery(self) -> dict[str, Cell]:
        return self.cells(self.measure) if self.measure else {}

    @property
    def accuracy(self) -> dict[str, Cell]:
        return self.cells("test_accuracy")

    def milliseconds(self, estimator: str) -> str:
        """Per step of the whole group of runs that trained together, the median, and where; empty if the runs do not say."""
        found = []
        for run in self.rows[estimator]:
            if "step_ms" in run.result:
                found.append(number(run, "step_ms"))
            elif run.config.get("steps") and "seconds_of_group" in run.result:
                found.append(1000 * number(run, "seconds_of_group") / run.config["steps"])
        where = {"GPU" if "NVIDIA" in str(run.result.get("device")) else "CPU" for run in self.rows[estimator]}
        return f"{np.median(found):.2f} ({', '.join(sorted(where))})" if found else ""


def planted(runs: Runs, setting: Setting, protocol: Protocol = FULL, names: Iterable[str] = ESTIMATORS) -> Bed:
    """The bed of a setting, with the runs that are done."""
    found = {name: chosen(runs, name, setting, protocol).done for name in names}
    rows = {name: done for name, done in found.items() if done}
    return Bed(setting.title, RECOVERY[0], rows, setting.structure not in (*SELECTIONS, "subset"))


def of_task(runs: Runs, task: Task) -> list[Bed]:
    """The beds of another task, by rule 2; one for each value of the fields that make separate tables."""
    found = defaultdict(list)
    latent = {method.name for method in task.methods.values() if method.latent and method.kind != "Erratum"}
    for run in runs.of(task.name):
        if run.config.get("estimator") in latent and run.config.get("inner_steps") in (None, 1):
            found[tuple(run.config.get(each) for each in task.tables_by)].append(run)
    beds, measure = [], next((each for each in RECOVERY if each in {metric.name for metric in task.metrics}), "")
    for part, stored in sorted(found.items(), key=repr):
        where = ", ".join(f"{value} {each}" for each, value in zip(task.tables_by, part, strict=True))
        title = f"{task.title}{', ' * bool(where)}{where}"
        beds.append(Bed(title, measure, _by_rule(stored, task.selected_by), stored[0].config.get("heads") != "all"))
    return beds


def _by_rule(stored: Sequence[Stored], validation: str) -> dict[str, Sequence[Stored]]:
    def rest(run: Stored) -> str:
        return json.dumps({name: run.config.get(name) for name in sorted(run.config.keys() - set(_SEARCHED))}, default=str)

    once = dict.fromkeys((rest(run), run.config["estimator"], run.seed) for run in stored)
    usual = Counter(setting for setting, *_ in once).most_common(1)[0][0]
    same = [run for run in stored if rest(run) == usual]
    best: dict[str, Sequence[Stored]] = {run.config["estimator"]: () for run in same}
    for group in grouped(same, validation):  # the best first
        name = group[0].config["estimator"]
        best[name] = max(best[name], group, key=len)
    return best


def all_beds(runs: Runs, protocol: Protocol = FULL) -> list[Bed]:
    """Every bed: the other tasks first; those without runs are left out."""
    beds = [bed for task in all_tasks() if task.name != TASK.name for bed in of_task(runs, task)]
    beds += [planted(runs, setting, protocol) for setting in BASES.values()]
    return [bed for bed in beds if bed.rows]


def missing(runs: Runs, protocol: Protocol = FULL) -> list[str]:
    """The titles of beds without runs."""
    tasks = [task.name for task in all_tasks() if task.name != TASK.name and not of_task(runs, task)]
    return [*tasks, *(setting.title for setting in BASES.values() if not planted(runs, setting, protocol).rows)]


def best_and_tied(cells: Mapping[str, Cell]) -> list[str]:
    """The best by rules 3 and 7 and those tied with it, the best first; empty without numbers."""
    means = {name: cell.value for name, cell in cells.items() if cell.finite and cell.count > 1}
    if not means:
        return []
    order = sorted(means, key=lambda name: -means[name])
    return [order[0], *(name for name in order[1:] if _tied(cells[order[0]], cells[name]))]


def _tied(best: Cell, other: Cell) -> bool:
    paired = differences(best, other)
    return len(paired) < _SEEDS or bootstrap(paired, np.mean).low <= 0 or best.value - other.value < _MARGIN


def differences(first: Cell, other: Cell) -> list[float]:
    """On the seeds that both have; a run that diverged counts as 0."""
    mine, its = (dict(zip(cell.seeds, np.nan_to_num(cell.values), strict=True)) for cell in (first, other))
    return [mine[seed] - its[seed] for seed in mine if seed in its]
