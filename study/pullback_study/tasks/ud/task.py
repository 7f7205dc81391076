"""UD-EWT as a task: the part of speech of every word is reconstructed from that of its head."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pullback_study.tasks import Method, Metric
from pullback_study.tasks.latent import LatentConfig, LatentTask
from pullback_study.tasks.schema import option

if TYPE_CHECKING:
    from pullback_study.tasks.ud.problem import TagProblem

GIVEN = ("gold", "left-branching", "right-branching")
"""Rows whose trees are given: the treebank's, or every word's head is the next word, or the one before."""


@dataclass(frozen=True)
class Config(LatentConfig):
    """One run; the model is the one of the epoch with the best validation accuracy."""

    gold_share: float = option(0.0, help="The share of training sentences whose gold trees are shown, from 0 to 1.", least=0)
    longest: int = option(25, help="Words of a sentence, at most; longer ones are left out.", least=1)
    size: int = option(50, help="Of embeddings and states; even.", least=2)
    epochs: int = option(10, help="Passes over the training data.", least=1)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.gold_share > 1:
            raise ValueError(f"gold_share is {self.gold_share:g}; it must be at most 1")
        if self.size % 2:
            raise ValueError(f"size is {self.size}; it must be even: half is for each direction")


@dataclass(frozen=True, kw_only=True)
class TagTask(LatentTask):
    """Projective trees with one root over the words of a sentence."""

    def problem(self, config: Config) -> TagProblem:
        from pullback_study.tasks.ud.problem import TagProblem, read

        splits = [read(path, config.longest) for path in self.sources(config).values()]
        return TagProblem(config, splits[0], splits[1], splits[2])


TASK = TagTask(
    name="ud",
    title="UD-EWT",
    about="Parts of speech of real sentences, through a latent dependency tree that is known.",
    config_type=Config,
    corpus="ewt",
    baselines=tuple(Method(name, name.replace("-", " ").capitalize() + " trees", "Baselines") for name in GIVEN),
    tables_by=("gold_share",),
    metrics=(
        Metric("validation_accuracy", "Validation accuracy", curve="accuracy"),
        Metric("validation_attachment", "Validation attachment", curve="attachment", headline=False),
        Metric("test_accuracy", "Test accuracy"),
        Metric("test_attachment", "Attachment"),
        Metric("loss", "Loss", curve="loss", headline=False, digits=4),
    ),
)
