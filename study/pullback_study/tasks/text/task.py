"""A task on sentences: its corpus, its models and the paper's settings that all rows share."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pullback_study.tasks.latent.task import LatentTask
from pullback_study.tasks.methods import Method
from pullback_study.tasks.task import Metric
from pullback_study.tasks.text.config import TextConfig
from pullback_study.tasks.text.methods import PROJECTIONS, text_methods

if TYPE_CHECKING:
    from torch import Tensor

    from pullback.estimators import Estimator
    from pullback.structures import Structure
    from pullback_study.corpora import Corpus
    from pullback_study.tasks.text.model import TextModel
    from pullback_study.tasks.text.problem import TextProblem

METRICS = (
    Metric("validation_accuracy", "Validation accuracy", curve="accuracy"),
    Metric("test_accuracy", "Test accuracy"),
    Metric("validation_depth", "Validation depth", curve="depth", percent=False, higher_is_better=None, headline=False),
    Metric("test_depth", "Tree depth", percent=False, higher_is_better=None),
    Metric("loss", "Loss", curve="loss", percent=False, higher_is_better=False, headline=False, digits=4),
)


@dataclass(frozen=True, kw_only=True)
class TextTask(LatentTask):
    """Sentences, a latent dependency tree for each, and a label.

    Args:
        sides: sentences in an example, each with a tree.
        labels: the classes, in the order of the logits.
        model: from the size of the word vectors and whether there are trees to a model with fresh parameters.
        load: from the data's folder and the vectors' name to the corpus.
        file: from the data's folder and a split's name to the split's file.
        best: for each row of the paper's table, the learning rate and the step size that the paper found best.
        batch_size: examples.
        weight_decay: AdamW's.
        averaged_over: how many numbers the loss of the paper's code was averaged over: its step sizes are of that mean.
        projective: whether trees are, by default.
        learning_rates: the paper's grid.
        step_sizes: the paper's grid.
        example: a sentence whose tree is kept in a run's result, for the claim about it.
    """

    version: int = 3
    config_type: type = TextConfig
    metrics: tuple[Metric, ...] = METRICS
    sides: int
    labels: tuple[str, ...]
    model: Callable[[int, bool], TextModel]
    load: Callable[[Path, str], Corpus]
    file: Callable[[Path, str], Path]
    best: Mapping[str, tuple[float, float | None]]
    batch_size: int
    weight_decay: float
    averaged_over: int
    projective: bool
    learning_rates: tuple[float, ...]
    step_sizes: tuple[float, ...]
    example: tuple[str, ...] = ()

    @property
    def methods(self) -> Mapping[str, Method]:
        return _methods(tuple(self.best.items()))

    @property
    def folder(self) -> Path:
        """Of the data; raises `ValueError` if there is none."""
        from pullback_study.corpora import find_data

        return find_data(self.data)

    def training_data(self, folder: Path) -> str:
        """The name of the training data at hand: the name of its file, without what all of them have in common."""
        name = self.file(folder, "train").name.removesuffix(".gz").removesuffix(".jsonl").removesuffix(".txt")
        return self.name if name == "train" else name

    def defaults(self, method: Method) -> dict[str, Any]:
        found = {
            "learning_rate": 1e-4,
            "batch_size": self.batch_size,
            "weight_decay": self.weight_decay,
            "gamma_scale": "paper" if method.pulled_back else None,
            "projection": PROJECTIONS.get(method.name),
            "projective": self.projective if method.latent else None,
        }
        return {**super().defaults(method), **found, **method.defaults}

    def configure(self, *, estimator: str = "", **fields: Any) -> TextConfig:
        """A config; the names of the data and the vectors are those of the files at hand where they are not given."""
        if fields.get("data") is None:
            fields["data"] = self.training_data(self.folder)
        if fields.get("vectors") is None:
            from pullback_study.corpora import choose_vectors

            fields["vectors"] = choose_vectors(self.folder)
        return super().configure(estimator=estimator, **fields)

    def validate(self, config: TextConfig, method: Method) -> None:
        super().validate(config, method)
        applies = {
            "gamma_scale": (method.pulled_back, "makes no inner steps"),
            "projection": (method.name in PROJECTIONS, "projects nothing"),
            "projective": (method.latent, "has no trees"),
        }
        for name, (does, why) in applies.items():
            if (value := getattr(config, name)) is not None and not does:
                raise ValueError(f"{name} is {value!r}; {method.name} {why}: leave it out")

    def sources(self, config: TextConfig) -> dict[str, Path]:
        from pullback_study.corpora import vector_file
        from pullback_study.corpora.layout import SPLITS

        there = self.training_data(self.folder)
        if there != config.data:
            raise ValueError(f"this run is on {config.data!r}, and the training data in {self.folder} is {there!r}")
        files = {split: self.file(self.folder, split) for split in SPLITS}
        return {**files, "vectors": vector_file(self.folder, str(config.vectors))}

    def structure(self, lengths: Tensor, config: TextConfig) -> Structure:
        """Dependency trees, several roots allowed."""
        from pullback.structures import DependencyTree

        return DependencyTree(lengths, projective=bool(config.projective), multiroot=True)

    def gamma_divisor(self, config: TextConfig) -> int:
        """S: with the paper's scale an inner step is eta / S on one example's gradient, and the surrogate not divided by S."""
        return self.averaged_over if config.gamma_scale == "paper" else 1

    def estimator(self, config: TextConfig) -> Estimator | None:
        from pullback.estimators import LocallyProjected, PulledBack

        size = None if config.step_size is None else config.step_size / self.gamma_divisor(config)
        made = self.methods[config.estimator].build(step_size=size, steps=config.inner_steps)
        if config.projection != "local":
            return made
        assert isinstance(made, PulledBack)
        return PulledBack(made.loss, made.start, LocallyProjected(made.update.step_size), made.steps)

    def problem(self, config: TextConfig) -> TextProblem:
        from pullback_study.tasks.text.problem import TextProblem

        return TextProblem(self, config, _corpus(self, self.folder, str(config.vectors)))

    def label(self, configs: Sequence[TextConfig]) -> str:
        (config,) = configs
        inner = f", {config.inner_steps} inner steps" if (config.inner_steps or 1) > 1 else ""
        row = self.methods[config.estimator].label
        return f"{self.title}, {row}, rate {config.learning_rate:g}{inner}, seed {config.seed}"


@functools.cache
def _methods(best: tuple[tuple[str, tuple[float, float | None]], ...]) -> Mapping[str, Method]:
    return text_methods(dict(best))


_loaded: dict[tuple[str, Path, str], Corpus] = {}


def _corpus(task: TextTask, folder: Path, vectors: str) -> Corpus:
    """The last corpus that was read stays in memory: the runs of a sweep share it."""
    key = (task.name, folder, vectors)
    if key not in _loaded:
        _loaded.clear()
        _loaded[key] = task.load(folder, vectors)
    return _loaded[key]
