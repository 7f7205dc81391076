"""What a task is to everything else: the rows of its tables, metrics, and configs that a trainer trains in groups."""

from __future__ import annotations

import dataclasses
import math
import pkgutil
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from pullback_study.tasks.methods import OWN, Method, by_name, own_method, registered
from pullback_study.tasks.schema import check_known, options

if TYPE_CHECKING:
    from torch import Tensor

    from pullback_study.runs.run import Run


@dataclass(frozen=True)
class Metric:
    """A number in the results of a task's runs, and how it is shown."""

    name: str  # in `result.json`, for example `test_accuracy`
    label: str  # in tables
    curve: str | None = None  # its name in the rows of learning curves, for a metric of the validation data
    headline: bool = True  # whether short tables show it
    digits: int = 2  # after the decimal point

    def show(self, value: float | None) -> str:
        """The number as text; empty if there is none.

        >>> Metric("test_accuracy", "Test accuracy").show(91.2345)
        '91.23'
        """
        return "" if value is None or math.isnan(value) else f"{value:.{self.digits}f}"


class Trainer(Protocol):
    """Trains the runs of one group together, from step 0 to `steps`.

    `advance` trains up to a step, and returns early, between two steps, when `stop()` is true. `state` is all that training
    depends on, and the evaluations so far, in tensors and plain values alone, so that a checkpoint is data and not code: a
    trainer of the same group that is restored from it ends with the same numbers. The others give for each run its
    evaluations so far, rows with a `step`; its final numbers, once, at the last step; and its named parameters.
    """

    step: int
    steps: int
    epochs: int = 0  # that have ended; stays 0 where a step is all of the data, and only time calls for a checkpoint

    def advance(self, until: int, stop: Callable[[], bool]) -> None: ...
    def state(self) -> dict[str, Any]: ...
    def restore(self, state: dict[str, Any]) -> None: ...
    def history(self) -> list[list[dict[str, Any]]]: ...
    def results(self) -> list[dict[str, Any]]: ...
    def parameters(self) -> list[dict[str, Tensor]]: ...


@dataclass(frozen=True, kw_only=True)
class Task:
    """Data, a model, a structure between its two halves, metrics and defaults."""

    name: str  # on the command line, in sweep files and in run directories
    title: str  # in tables
    about: str = ""  # one line for `--help`
    version: int = 1  # goes up when a fix changes results, or a default changes, so that old results are never reused
    config_type: type  # a frozen dataclass of `schema.option` fields, among them `estimator` and `seed`
    trained_by: str = ""  # its trainer, `module:class`, imported when it is needed
    metrics: tuple[Metric, ...]  # in the order of the columns of tables
    selected_by: str = "validation_accuracy"  # settings are chosen by its mean over the seeds, the higher the better
    tables_by: tuple[str, ...] = ()  # fields of the config whose values make separate tables
    baselines: tuple[Method, ...] = ()  # rows without an estimator, above the others
    four_samples: bool = False  # whether there are rows of the study's own with as many samples as the control variate
    projections: Mapping[str, str] = field(default_factory=dict)  # what inner steps are projected onto, where there is a choice
    corpus: str = ""  # whose files it is trained on; empty for data that it generates
    data: Path | None = field(default=None, compare=False)  # the folder of the corpora; None for `$PULLBACK_DATA`

    @property
    def methods(self) -> Mapping[str, Method]:
        """The rows of the task's tables by name: baselines, and estimators that fit its structure."""
        return by_name(*self.baselines, *registered(self.name, four_samples=self.four_samples))

    def trainer(self, configs: Sequence[Any], device: str) -> Trainer:
        """A trainer for one group, at step 0."""
        return pkgutil.resolve_name(self.trained_by)(self, configs, device)

    def defaults(self, method: Method) -> dict[str, Any]:
        """The fields of a config that the method, or the data at hand, decide; None for those that do not apply to it."""
        usual = getattr(method.accepted.get("step_size"), "default", None)
        return {
            "learning_rate": 0.001,
            "step_size": (float(usual) if isinstance(usual, int | float) else 1.0) if "step_size" in method.accepted else None,
            "inner_steps": 1 if "steps" in method.accepted else None,
            "gamma_scale": "paper" if method.pulled_back else None,
            "projection": self.projections.get(method.name),
            **method.defaults,
        }

    def partition(self, configs: Sequence[Any]) -> list[list[Any]]:
        """The groups in which these configs train, in a fixed order. Each config is in exactly one."""
        return [[config] for config in configs]

    def label(self, configs: Sequence[Any]) -> str:
        """A few words for a group, for people: its method, and what its runs have in common."""
        first, names = configs[0], (*self.tables_by, "learning_rate", "inner_steps", "seed")
        shared = [name for name in names if len({getattr(each, name) for each in configs}) == 1]
        told = {name: getattr(first, name) for name in shared if (name, getattr(first, name)) != ("inner_steps", 1)}
        words = [f"{name.replace('_', ' ')} {value}" for name, value in told.items() if value is not None]
        return ", ".join([self.title, self.methods[first.estimator].label, *words])

    def sources(self, config: Any) -> dict[str, Path]:
        """The files that a run of this config is trained on; raises `ValueError` if one is missing."""
        from pullback_study.corpora.files import SPLITS, corpus_file

        return {split: corpus_file(self.corpus, self.folder, split) for split in SPLITS} if self.corpus else {}

    @property
    def folder(self) -> Path:
        """Of the corpora; raises `ValueError` if there is none."""
        from pullback_study.corpora import find_data

        return find_data(self.data)

    def configure(self, *, estimator: str = "", **fields: Any) -> Any:
        """A config, with the task's and the method's defaults for whatever is not given, or None."""
        known, method = options(self.config_type), self.find_method(estimator)
        for name in fields:
            check_known(f"a config of {self.name} has no field {name!r}", name, known)
        own = {name: value for name, value in self.defaults(method).items() if name in known}
        given = {name: value for name, value in fields.items() if value is not None}
        config = self.config_type(**{"estimator": method.name, **own, **given})
        for name in (name for name, value in own.items() if value is None and name in given):
            raise ValueError(f"{name} is {getattr(config, name)!r}; {method.name} has none: leave it out")
        return config

    def find_method(self, name: str) -> Method:
        """The method of that name, or of one of its aliases."""
        names = {known: method for method in self.methods.values() for known in (method.name, *method.aliases)}
        if not name:
            raise ValueError(f"estimator is missing; `pullback estimators {self.name}` lists them")
        if name not in names and name in OWN:
            own_method(name)  # says why it cannot be loaded
        check_known(f"there is no estimator {name!r}", name, names)
        return names[name]

    def run(self, config: Any, folder: Path) -> Run:
        """The run of a config, and its directory in a folder of runs."""
        from pullback_study.runs.run import Run

        return Run(folder, self.name, self.version, config)


@dataclass(frozen=True, kw_only=True)
class ReplicaTask(Task):
    """A task whose runs train together as replicas of one model."""

    varied: tuple[str, ...] = ("seed", "learning_rate", "step_size")  # the fields in which the runs of a group may differ
    most: int = 16  # runs in a group

    def common(self, config: Any) -> Any:
        """What the runs of a group have in common: the varied fields as they are by default."""
        usual = {each.name: each.default for each in dataclasses.fields(config)}
        return dataclasses.replace(config, **{name: usual[name] for name in self.varied})

    def order(self, config: Any) -> tuple[float, ...]:
        return tuple(getattr(config, name) or 0.0 for name in self.varied)

    def partition(self, configs: Sequence[Any]) -> list[list[Any]]:
        groups: dict[Any, list[Any]] = defaultdict(list)
        for config in configs:
            groups[self.common(config)].append(config)
        ordered = [sorted(group, key=self.order) for group in groups.values()]
        return [group[i : i + self.most] for group in ordered for i in range(0, len(group), self.most)]
