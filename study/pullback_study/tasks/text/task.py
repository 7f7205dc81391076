"""A task on sentences: its corpus, its models and the paper's settings that all rows share."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pullback_study.tasks.latent import LatentConfig, LatentTask
from pullback_study.tasks.methods import Method, registered, settings
from pullback_study.tasks.schema import GAMMA_SCALE, option
from pullback_study.tasks.task import Metric

if TYPE_CHECKING:
    from torch import Tensor

    from pullback.estimators import Estimator
    from pullback.structures import DependencyTree
    from pullback_study.corpora import Corpus
    from pullback_study.tasks.text.models import TextModel
    from pullback_study.tasks.text.problem import TextProblem

METRICS = (
    Metric("validation_accuracy", "Validation accuracy", curve="accuracy"),
    Metric("test_accuracy", "Test accuracy"),
    Metric("validation_depth", "Validation depth", curve="depth", percent=False, higher_is_better=None, headline=False),
    Metric("test_depth", "Tree depth", percent=False, higher_is_better=None),
    Metric("loss", "Loss", curve="loss", percent=False, higher_is_better=False, headline=False, digits=4),
)


@dataclass(frozen=True)
class TextConfig(LatentConfig):
    """One run; the model is the one of the epoch with the best validation accuracy."""

    gamma_scale: str | None = option(None, **GAMMA_SCALE)
    projection: str | None = option(
        None,
        help="The set that inner steps are projected onto. `exact`: the marginal polytope, by SparseMAP; `local`: a simpler "
        "set that contains it.",
        shown="exact for SPIGOT, local for SPIGOT-CE",
        choices=("exact", "local"),
    )
    projective: bool | None = option(
        None, help="Use trees without, or with, crossing arcs.", shown="the task's", flags="--projective/--non-projective"
    )
    data: str | None = option(None, help="The training data: a part is another one than the whole.", hidden=True)
    vectors: str | None = option(
        None,
        help="Word vectors: a name in `vectors/`, or a file.",
        shown="the best in `vectors/`: glove.840B.300d, else googlenews_mapped.300d, else the widest",
    )
    embeddings: str = option(
        "fixed", help="Whether the word vectors stay fixed or are trained too.", choices=("fixed", "trained")
    )
    epochs: int = option(40, help="Passes over the training data.", least=1)
    batch_size: int | None = option(None, help="Examples per batch.", shown="the paper's", least=1)  # type: ignore[assignment]
    weight_decay: float | None = option(None, help="The weight decay of AdamW.", shown="the paper's", least=0)  # type: ignore[assignment]


@dataclass(frozen=True, kw_only=True)
class TextTask(LatentTask):
    """Sentences, a latent dependency tree for each, and a label. Its name is that of its corpus."""

    version: int = 3
    config_type: type = TextConfig
    metrics: tuple[Metric, ...] = METRICS
    # SPIGOT-CE's exact projections are means of hundreds of trees, which take too long in training (docs/results/text.md).
    projections: Mapping[str, str] = field(default_factory=lambda: {"spigot": "exact", "spigot-ce": "local"})
    models: str  # where they are: `module:function`, from the size of the word vectors and whether there are trees
    sides: int  # sentences in an example, each with a tree
    labels: tuple[str, ...]  # the classes, in the order of the logits
    best: Mapping[str, tuple[float, float | None]]  # learning rate and step size of each row of the paper's table
    batch_size: int
    weight_decay: float
    averaged_over: int  # how many numbers the loss of the paper's code was a mean of: its step sizes are of that mean
    projective: bool  # whether trees are, by default
    example: tuple[str, ...] = ()  # a sentence whose tree is kept in a run's result, for the claim about it

    @property
    def methods(self) -> Mapping[str, Method]:
        return _methods(tuple(self.best.items()))

    @property
    def folder(self) -> Path:
        """Of the data; raises `ValueError` if there is none."""
        from pullback_study.corpora import find_data

        return find_data(self.data)

    def model(self, inputs: int, trees: bool) -> TextModel:
        """A model with fresh parameters."""
        from pullback_study.tasks import load_attribute

        return load_attribute(self.models)(inputs, trees)

    def training_data(self, folder: Path) -> str:
        """The name of the training data at hand: the name of its file, without what all of them have in common."""
        from pullback_study.corpora import corpus_file

        name = corpus_file(self.name, folder, "train").name.removesuffix(".gz").removesuffix(".jsonl").removesuffix(".txt")
        return self.name if name == "train" else name

    def defaults(self, method: Method) -> dict[str, Any]:
        found = {
            "learning_rate": 1e-4,
            "batch_size": self.batch_size,
            "weight_decay": self.weight_decay,
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

    def applies(self, method: Method) -> dict[str, bool]:
        return super().applies(method) | {"projective": method.latent}

    def sources(self, config: TextConfig) -> dict[str, Path]:
        from pullback_study.corpora import corpus_file, vector_file

        there = self.training_data(self.folder)
        if there != config.data:
            raise ValueError(f"this run is on {config.data!r}, and the training data in {self.folder} is {there!r}")
        files = {split: corpus_file(self.name, self.folder, split) for split in ("train", "dev", "test")}
        return {**files, "vectors": vector_file(self.folder, str(config.vectors))}

    def structure(self, lengths: Tensor, config: TextConfig) -> DependencyTree:
        """Dependency trees, several roots allowed."""
        from pullback.structures import DependencyTree

        return DependencyTree(lengths, projective=bool(config.projective), multiroot=True)

    def gamma_divisor(self, config: TextConfig) -> int:
        """S: with the paper's scale an inner step is eta / S on one example's gradient, and the surrogate not divided by S."""
        return self.averaged_over if config.gamma_scale == "paper" else 1

    def estimator(self, config: TextConfig) -> Estimator | None:
        size = None if config.step_size is None else config.step_size / self.gamma_divisor(config)
        method = self.methods[config.estimator]
        return method.build(step_size=size, steps=config.inner_steps, projection=config.projection)

    def problem(self, config: TextConfig) -> TextProblem:
        from pullback_study.tasks.text.problem import TextProblem

        return TextProblem(self, config, _corpus(self, self.folder, str(config.vectors)))


@functools.cache
def _methods(best: tuple[tuple[str, tuple[float, float | None]], ...]) -> Mapping[str, Method]:
    """A baseline and the registry's estimators; those with settings of the paper are its rows."""
    own = settings(dict(best))
    baseline = Method("baseline", "Baseline", "", in_paper=True, defaults=own["baseline"])
    return {method.name: method for method in (baseline, *registered(own, in_paper=lambda name: name in own))}


_loaded: dict[tuple[str, Path, str], Corpus] = {}


def _corpus(task: TextTask, folder: Path, vectors: str) -> Corpus:
    """The last corpus that was read stays in memory: the runs of a sweep share it."""
    from pullback_study.corpora import load

    key = (task.name, folder, vectors)
    if key not in _loaded:
        _loaded.clear()
        _loaded[key] = load(*key)
    return _loaded[key]
