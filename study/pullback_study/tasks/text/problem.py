"""What a run on text learns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from pullback.structures import DependencyTree, Structure
from pullback_study.corpora import Batch, Corpus, Split, batches
from pullback_study.corpora.batches import gather
from pullback_study.corpora.corpus import UNKNOWN
from pullback_study.corpora.vectors import spellings
from pullback_study.tasks.latent.captured import WIDTHS
from pullback_study.tasks.latent.problem import Problem
from pullback_study.tasks.text.config import TextConfig
from pullback_study.tasks.text.depth import depths
from pullback_study.tasks.text.model import Encoded

if TYPE_CHECKING:
    from pullback_study.tasks.text.task import TextTask


class TextProblem(Problem):
    """Sentences with a latent tree each; accuracy, and the depth of the trees.

    Args:
        task: its model and structure.
        config: the run's.
        corpus: its data.
    """

    capturable = True

    def __init__(self, task: TextTask, config: TextConfig, corpus: Corpus) -> None:
        self._task, self._config = task, config
        self._vocabulary, self._description = corpus.vocabulary, corpus.description
        self._latent = task.methods[config.estimator].latent
        self.splits = (corpus.train, corpus.dev, corpus.test)
        self.model = task.model(corpus.vectors.shape[1], self._latent)
        self.gradient_scale = float(task.gamma_divisor(config))
        self._fixed = corpus.vectors
        if config.embeddings == "trained":
            self.model.register_parameter("embedding", nn.Parameter(corpus.vectors.clone()))

    @property
    def vectors(self) -> Tensor:
        """Of the words, `[rows, d]`."""
        return self.model.embedding if self._config.embeddings == "trained" else self._fixed  # type: ignore[return-value]

    def encode(self, batch: Batch) -> Encoded:
        return self.model.encode(self.vectors[batch.words], batch.lengths)  # type: ignore[operator]

    def scores(self, batch: Batch, encoded: Encoded) -> Tensor:
        return self.model.scores(encoded)  # type: ignore[operator]

    def structure(self, batch: Batch) -> Structure:
        return self._task.structure(batch.lengths, self._config)

    def losses(self, batch: Batch, encoded: Encoded, z: Tensor | None) -> Tensor:
        return nn.functional.cross_entropy(self.model.logits(encoded, z), batch.labels, reduction="none")  # type: ignore[operator]

    def measures(self, batch: Batch, encoded: Encoded, z: Tensor | None, best: Tensor | None) -> dict[str, Tensor]:
        right = self.model.logits(encoded, z).argmax(-1) == batch.labels  # type: ignore[operator]
        found = {"accuracy": 100.0 * right}
        if best is not None:
            found["depth"] = depths(self._heads(batch.lengths, best))
        return found

    def batches(self, split: Split, size: int, *, seed: int | None, epoch: int = 0) -> Sequence[tuple[Tensor, int]]:
        multiple = WIDTHS if self.captured and seed is not None else 1
        made = batches(split, size, seed=seed, epoch=epoch, multiple=multiple)
        return [made.examples(number) for number in range(len(made))]

    def gather(self, split: Split, rows: Tensor, width: int) -> Batch:
        return gather(split, rows, width)

    def results(self) -> dict[str, Any]:
        return {"example_heads": self._example(), "vectors": self._config.vectors, "data": self._description}

    def to(self, device: torch.device, dtype: torch.dtype) -> None:
        self.model.to(device, dtype)
        self.splits = tuple(split.to(device) for split in self.splits)  # type: ignore[assignment]
        self._fixed = self._fixed.to(device, dtype)

    def shorten(self, examples: int) -> None:
        train, dev, test = self.splits
        self.splits = (first(train, examples), dev, test)

    def _heads(self, lengths: Tensor, trees: Tensor) -> Tensor:
        structure = self._task.structure(lengths, self._config)
        assert isinstance(structure, DependencyTree)
        return structure.heads(trees)

    @torch.no_grad()
    def _example(self) -> list[int] | None:
        """The best tree of the task's example."""
        if not self._latent or not self._task.example:
            return None
        rows = {word: row for row, word in enumerate(self._vocabulary)}
        words = self._task.example
        known = [next((rows[word] for word in spellings(token) if word in rows), UNKNOWN) for token in words]
        lengths = torch.tensor([len(known)], device=self._fixed.device)
        encoded = self.model.encode(self.vectors[known][None], lengths)  # type: ignore[operator]
        best = self._task.structure(lengths, self._config).argmax(self.model.scores(encoded))  # type: ignore[operator]
        return self._heads(lengths, best)[0].tolist()


def first(split: Split, examples: int) -> Split:
    """The first examples of a split."""
    examples = min(examples, len(split))
    offsets = split.offsets[: examples * split.sides + 1]
    words = int(offsets[-1])
    gold = None if split.gold is None else split.gold[:words]
    return Split(split.words[:words], offsets, split.labels[:examples], split.sides, split.dropped, gold)
