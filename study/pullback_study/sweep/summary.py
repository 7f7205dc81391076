"""What came out of a sweep: configurations in the order of their validation metric, with test metrics over seeds."""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pullback.estimators.config import nearest
from pullback.viz.tables import Table
from pullback_study.runs import Run
from pullback_study.statistics import standard_error
from pullback_study.study import Study

_SHOWN = 10


@dataclasses.dataclass(frozen=True)
class Candidate:
    """One configuration, and the results of its seeds."""

    setting: dict[str, Any]
    results: tuple[dict[str, Any], ...]

    def values(self, metric: str) -> list[float]:
        """A metric for each seed; NaN for a run that diverged."""
        found = [result.get(metric) for result in self.results]
        return [math.nan if value is None else float(value) for value in found]

    def mean(self, metric: str) -> float:
        """The mean over the seeds; minus infinity if one of them diverged."""
        values = self.values(metric)
        return -math.inf if any(math.isnan(value) for value in values) else statistics.fmean(values)


def candidates(study: Study, configs: Sequence[Any], root: Path) -> tuple[list[Candidate], int]:
    """The configurations whose runs are all done, best first, and how many have runs that are not.

    A choice among configurations with different seeds would be unfair, so an incomplete one has no place.
    """
    by_setting: dict[tuple[tuple[str, Any], ...], list[Run]] = defaultdict(list)
    for config in configs:
        setting = {name: value for name, value in dataclasses.asdict(config).items() if name != "seed"}
        by_setting[tuple(setting.items())].append(study.run(config, root))
    complete = []
    for key, runs in by_setting.items():
        results = [_result(run) for run in runs]
        if None not in results:
            complete.append(Candidate(dict(key), tuple(result for result in results if result is not None)))
    complete.sort(key=lambda candidate: candidate.mean(study.validation_metric), reverse=True)
    return complete, len(by_setting) - len(complete)


def check(study: Study, by: Sequence[str]) -> None:
    """Raises `ValueError` if a field to report by is not one of the config."""
    names = [field.name for field in dataclasses.fields(study.config_type) if field.name != "seed"]
    for name in by:
        if name not in names:
            raise ValueError(f"--by {name}: a config has no such field to choose by; {nearest(name, names)}")


def table(study: Study, configs: Sequence[Any], root: Path, by: Sequence[str] = ()) -> Table:
    """The best configurations by mean validation metric, with mean and standard error of the test metrics.

    Args:
        study: of the runs.
        configs: of the sweep.
        root: the folder of the runs.
        by: fields; only the best configuration for each of their values is listed.
    """
    names = [field.name for field in dataclasses.fields(study.config_type)]
    found, incomplete = candidates(study, configs, root)
    total = len(found)
    if by:
        first: dict[tuple[Any, ...], Candidate] = {}
        for candidate in found:
            first.setdefault(tuple(candidate.setting.get(name) for name in by), candidate)
        found = list(first.values())
    shown = [name for name in names if name in by or _varies(name, found)] or names[:1]
    metrics = [study.validation_metric, *study.test_metrics]
    title = "Best configuration for each " + " and ".join(by) if by else "Best configurations"
    out = Table(f"{title}, by {_words(study.validation_metric)}", ["configuration", "seeds", *map(_heading, metrics)])
    for candidate in found[: None if by else _SHOWN]:
        given = {name: candidate.setting.get(name) for name in shown}
        what = ", ".join(_show(name, value) for name, value in given.items() if value is not None)
        out.rows.append([what, str(len(candidate.results)), *(_spread(candidate.values(name)) for name in metrics)])
    if not by and total > _SHOWN:
        out.notes.append(f"{total - _SHOWN} more; `pullback runs --sort -{study.validation_metric}` lists all runs")
    if incomplete:
        out.notes.append(f"{incomplete} configurations are left out: not all of their runs are done")
    return out


def _result(run: Run) -> dict[str, Any] | None:
    try:
        return run.result if run.done else None
    except (OSError, ValueError):
        return None


def _varies(name: str, found: Sequence[Candidate]) -> bool:
    """Whether it has several values, not counting the configurations to which it does not apply."""
    return len({candidate.setting.get(name) for candidate in found} - {None}) > 1


def _words(name: str) -> str:
    return name.replace("_", " ")


def _heading(name: str) -> str:
    """Short, so that a table fits on a terminal."""
    return _words(name).replace("validation", "valid.").replace("v measure", "V-measure")


def _show(name: str, value: Any) -> str:
    """A word speaks for itself; a number needs its name."""
    if isinstance(value, str):
        return value
    return f"{_words(name)} {value:g}" if isinstance(value, float) else f"{_words(name)} {value}"


def _spread(values: Sequence[float]) -> str:
    if any(math.isnan(value) for value in values):
        return "diverged"
    error = standard_error(values)
    return f"{statistics.fmean(values):.2f}" + ("" if math.isnan(error) else f"±{error:.2f}")
