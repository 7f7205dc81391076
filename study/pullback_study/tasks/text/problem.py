"""What a run on text learns: sentences with a latent tree each; accuracy, and the depth of the trees."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from pullback.structures import Structure
from pullback_study.corpora import Batch, Corpus, Split, batches, gather
from pullback_study.corpora.corpus import UNKNOWN
from pullback_study.corpora.readers import spellings
from pullback_study.tasks.latent.problem import Problem
from pullback_study.tasks.runtime import WIDTHS
from pullback_study.tasks.text.models import Encoded, depths
from pullback_study.tasks.text.task import TextConfig, TextTask


class TextProblem(Problem):
    """The model and the structure of a task on a corpus, in the setting of a config.

    The model's `embedding` holds the vectors of the words, `[rows, d]`: a parameter if they are trained.
    """

    capturable = True
    model: Any

    def __init__(self, task: TextTask, config: TextConfig, corpus: Corpus) -> None:
        self._task, self._config, self._corpus = task, config, corpus
        self._latent = task.methods[config.estimator].latent
        self.splits = (corpus.train, corpus.dev, corpus.test)
        self.model = task.model(corpus.vectors.shape[1], self._latent)
        names = [name for name, _ in self.model.named_parameters()]
        self.scorer = [name for name in names if name.startswith("parser.") and name != "parser.root"]
        self.gradient_scale = float(task.gamma_divisor(config))
        if config.embeddings == "trained":
            self.model.embedding = nn.Parameter(corpus.vectors.clone())
        else:
            self.model.register_buffer("embedding", corpus.vectors, persistent=False)

    def encode(self, batch: Batch) -> Encoded:
        return self.model.encode(self.model.embedding[batch.words], batch.lengths)

    def scores(self, batch: Batch, encoded: Encoded) -> Tensor:
        return self.model.parser(encoded.states)

    def structure(self, batch: Batch) -> Structure:
        return self._task.structure(batch.lengths, self._config)

    def losses(self, batch: Batch, encoded: Encoded, z: Tensor | None) -> Tensor:
        return nn.functional.cross_entropy(self.model.logits(encoded, z), batch.labels, reduction="none")

    def measures(self, batch: Batch, encoded: Encoded, z: Tensor | None, best: Tensor | None) -> dict[str, Tensor]:
        found = {"accuracy": 100.0 * (self.model.logits(encoded, z).argmax(-1) == batch.labels)}
        if best is not None:
            found["depth"] = depths(self._task.structure(batch.lengths, self._config).heads(best))
        return found

    def batches(self, split: Split, size: int, *, seed: int | None, epoch: int = 0) -> Sequence[tuple[Tensor, int]]:
        multiple = WIDTHS if self.captured and seed is not None else 1
        return batches(split, size, seed=seed, epoch=epoch, multiple=multiple)

    def gather(self, split: Split, rows: Tensor, width: int) -> Batch:
        return gather(split, rows, width)

    @torch.no_grad()
    def results(self) -> dict[str, Any]:
        """Also the best tree of the task's example."""
        about, words = {"vectors": self._config.vectors, "data": self._corpus.description}, self._task.example
        if not self._latent or not words:
            return {"example_heads": None, **about}
        rows = {word: row for row, word in enumerate(self._corpus.vocabulary)}
        known = [next((rows[word] for word in spellings(token) if word in rows), UNKNOWN) for token in words]
        lengths = torch.tensor([len(known)], device=self.model.embedding.device)
        structure = self._task.structure(lengths, self._config)
        scores = self.model.parser(self.model.encode(self.model.embedding[known][None], lengths).states)
        return {"example_heads": structure.heads(structure.argmax(scores))[0].tolist(), **about}
