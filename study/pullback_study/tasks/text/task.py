"""Sentiment of sentences (SST) and natural language inference (SNLI), with latent dependency trees.

The paper's text speaks of projective trees for SST only, and its code used non-projective ones for SNLI: so do we, by
default.
"""

from __future__ import annotations

import functools
import pkgutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pullback_study.published import settings
from pullback_study.tasks import Method, Metric, by_name, registered
from pullback_study.tasks.latent import LatentConfig, LatentTask
from pullback_study.tasks.schema import GAMMA_SCALE, option

if TYPE_CHECKING:
    from torch import Tensor

    from pullback.estimators import Estimator
    from pullback.structures import DependencyTree
    from pullback_study.corpora import Corpus
    from pullback_study.tasks.text.problem import TextProblem

METRICS = (
    Metric("validation_accuracy", "Validation accuracy", curve="accuracy"),
    Metric("test_accuracy", "Test accuracy"),
    Metric("validation_depth", "Validation depth", curve="depth", headline=False),
    Metric("test_depth", "Tree depth"),
    Metric("loss", "Loss", curve="loss", headline=False, digits=4),
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
    """Sentences, a latent dependency tree for each, and a label."""

    version: int = 3
    config_type: type = TextConfig
    metrics: tuple[Metric, ...] = METRICS
    # SPIGOT-CE's exact projections are means of hundreds of trees, which take too long in training (docs/results/text.md).
    projections: Mapping[str, str] = field(default_factory=lambda: {"spigot": "exact", "spigot-ce": "local"})
    models: str  # where they are: `module:function`, from the size of the word vectors and whether there are trees
    sides: int  # sentences in an example, each with a tree
    labels: tuple[str, ...]  # the classes, in the order of the logits
    batch_size: int
    weight_decay: float
    averaged_over: int  # how many numbers the loss of the paper's code was a mean of: its step sizes are of that mean
    projective: bool  # whether trees are, by default
    example: tuple[str, ...] = ()  # a sentence whose tree is kept in a run's result, for the claim about it

    def model(self, inputs: int, trees: bool) -> Any:
        """A model with fresh parameters (`models.py`)."""
        return pkgutil.resolve_name(self.models)(inputs, trees)

    def training_data(self, folder: Path) -> str:
        """The name of the training data at hand: the name of its file, without what all of them have in common."""
        from pullback_study.corpora import corpus_file

        name = corpus_file(self.corpus, folder, "train").name.removesuffix(".gz").removesuffix(".jsonl").removesuffix(".txt")
        return self.name if name == "train" else name

    def defaults(self, method: Method) -> dict[str, Any]:
        paper = {"learning_rate": 1e-4, "batch_size": self.batch_size, "weight_decay": self.weight_decay}
        own = {**paper, "projective": self.projective if method.latent else None}
        return {**super().defaults(method), **own, **method.defaults}

    def configure(self, *, estimator: str = "", **fields: Any) -> TextConfig:
        """A config; the names of the data and the vectors are those of the files at hand where they are not given."""
        if not fields.get("data") or not fields.get("vectors"):
            from pullback_study.corpora import choose_vectors

            fields["data"] = fields.get("data") or self.training_data(self.folder)
            fields["vectors"] = fields.get("vectors") or choose_vectors(self.folder)
        return super().configure(estimator=estimator, **fields)

    def sources(self, config: TextConfig) -> dict[str, Path]:
        from pullback_study.corpora import vector_file

        there = self.training_data(self.folder)
        if there != config.data:
            raise ValueError(f"this run is on {config.data!r}, and the training data in {self.folder} is {there!r}")
        return {**super().sources(config), "vectors": vector_file(self.folder, str(config.vectors))}

    @property
    def methods(self) -> Mapping[str, Method]:
        rate, _ = settings(self.name)["baseline"]
        return by_name(Method("baseline", "Baseline", "", defaults={"learning_rate": rate}), *registered(self.name))

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

        return TextProblem(self, config, _corpus(self.corpus, self.folder, str(config.vectors)))


@functools.lru_cache(maxsize=1)
def _corpus(*key: Any) -> Corpus:
    """The last corpus that was read stays in memory: the runs of a sweep share it."""
    from pullback_study.corpora import load

    return load(*key)


SST = TextTask(
    name="sst",
    corpus="sst",
    title="SST",
    about="Sentiment of a sentence, through a latent dependency tree.",
    models="pullback_study.tasks.text.models:Sentiment",
    sides=1,
    labels=("negative", "positive"),
    batch_size=32,
    weight_decay=1e-4,
    averaged_over=16,
    projective=True,
    example=("A", "taut", ",", "intelligent", "psychological", "drama", "."),
)
SNLI = TextTask(
    name="snli",
    corpus="snli",
    title="SNLI",
    about="Whether a sentence follows from another, through two latent dependency trees.",
    models="pullback_study.tasks.text.models:DecomposableAttention",
    sides=2,
    labels=("entailment", "neutral", "contradiction"),
    batch_size=64,
    weight_decay=0.01,
    averaged_over=64,
    projective=False,
)
