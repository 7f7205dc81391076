"""A trained run as a parser: sentences in, latent trees out; and samples of the test sentences of a task."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from pullback_study.corpora import Vectors, corpus_file, find_data, load, read_vectors, vector_file
from pullback_study.corpora.corpus import READERS, UNKNOWN
from pullback_study.runs.store import read_run
from pullback_study.tasks import known_task
from pullback_study.tasks.schema import options
from pullback_study.tasks.text.task import TextTask

Tokens = tuple[str, ...]
_BATCH_SIZE = 64


class Analysis(NamedTuple):
    """The output of a model for one sentence."""

    tokens: Tokens
    heads: tuple[int, ...]  # of each word in the best tree: 0 is the root, 1 the first word
    mu: np.ndarray  # the input of the decoder, [n, n], head x modifier: a relaxation's mean, else the best tree
    label: str  # the predicted one; empty for one side of a pair, which has none


class LatentParser:
    """The parser inside a trained model; a parameter named `embedding` holds trained word vectors."""

    def __init__(self, task: TextTask, config: Any, model: Any, data: Path, dimension: int) -> None:
        self.task, self.config, self.estimator = task.name, config, config.estimator
        self._task, self._model, self._data, self._dimension = task, model.eval(), data, dimension
        self.unknown: set[str] = set()  # tokens of the last `parse` without a vector: they are all the same word to the model

    @torch.no_grad()
    def parse(self, sentences: Sequence[Tokens]) -> list[Analysis]:
        """The latent trees of sentences, each a tuple of at least one token."""
        if not all(sentences):
            raise ValueError(f"sentence {[bool(each) for each in sentences].index(False) + 1} has no words")
        tokens = {token for each in sentences for token in each}
        vectors = self._vectors(tokens)
        rows = {token: -1 if (row := vectors.lookup(token)) is None else row for token in tokens}
        self.unknown = {token for token, row in rows.items() if row < 0}
        unknown = vectors.matrix[UNKNOWN] if self.config.embeddings == "trained" else np.zeros(self._dimension, np.float32)
        table = torch.from_numpy(np.concatenate([unknown[None], vectors.matrix])).to(next(self._model.parameters()).dtype)
        order = sorted(range(len(sentences)), key=lambda i: len(sentences[i]))  # so that little is padding
        found: dict[int, Analysis] = {}
        for start in range(0, len(order), _BATCH_SIZE):
            batch = order[start : start + _BATCH_SIZE]
            part = [sentences[i] for i in batch]
            words = [torch.tensor([rows[token] + 1 for token in each]) for each in part]
            padded = nn.utils.rnn.pad_sequence(words, batch_first=True)
            found.update(zip(batch, self._analyses(part, table[padded]), strict=True))
        return [found[i] for i in range(len(sentences))]

    def _analyses(self, sentences: Sequence[Tokens], vectors: Tensor) -> list[Analysis]:
        lengths, labels = torch.tensor([len(tokens) for tokens in sentences]), [""] * len(sentences)
        alone = self._task.sides == 1  # else as the premise of a pair: both sides are parsed alike
        encoded = self._model.encode(*(each if alone else each[:, None] for each in (vectors, lengths)))
        scores = self._model.parser(encoded.states).view(len(sentences), *[vectors.shape[1]] * 2)
        structure, estimator = self._task.structure(lengths, self.config), self._task.estimator(self.config)
        assert estimator is not None
        heads, mu = structure.heads(structure.argmax(scores)), estimator.predict(structure, scores)
        if alone:
            labels = [self._task.labels[i] for i in self._model.logits(encoded, mu).argmax(-1).tolist()]
        return [
            Analysis(tokens, tuple(heads[i, :n].tolist()), mu[i, :n, :n].double().numpy(), labels[i])
            for i, tokens in enumerate(sentences)
            for n in [len(tokens)]
        ]

    def _vectors(self, tokens: set[str]) -> Vectors:
        """Those that the model was trained with, or has learned: at least the vectors of the tokens."""
        if self.config.embeddings == "trained":
            words = load(self.task, self._data, self.config.vectors).vocabulary
            return Vectors("trained", words, self._model.get_parameter("embedding").detach().float().numpy())
        path = vector_file(self._data, self.config.vectors)
        found = read_vectors(path, tokens)
        if found.matrix.shape[1] != self._dimension:
            raise ValueError(
                f"the vectors in {path} have {found.matrix.shape[1]} dimensions, and the run was trained with "
                f"{self._dimension}; pass the data that it was trained with (--data)"
            )
        return found


def load_parser(path: Path, data: Path | None = None) -> LatentParser:
    """The parser of the run in a directory, with the word vectors of a data folder, by default `$PULLBACK_DATA`."""
    run = read_run(path)
    if run.state != "done":
        raise ValueError(f"{path} is not a run that is done ({run.error or run.state}); `pullback runs` lists the runs")
    task, name = known_task(run.task), str(run.config.get("estimator"))
    if not isinstance(task, TextTask) or name not in task.methods or not task.methods[name].latent:
        raise ValueError(f"{path} is a run of {run.task}, {name}, which has no latent trees of sentences")
    try:
        config: Any = task.config_type(**{name: run.config[name] for name in options(task.config_type)})
        dimension = run.result["data"]["dimension"]
        model, state = task.model(dimension, True), torch.load(path / "checkpoint.pt", map_location="cpu", weights_only=True)
        if config.embeddings == "trained":
            model.register_parameter("embedding", nn.Parameter(state["embedding"]))
        model.load_state_dict(state)
    except Exception as error:  # damaged in one of many ways
        why = str(error).partition("\n")[0]
        raise ValueError(
            f"{path} does not hold config, result and parameters of a model of this version ({why}); use another run, or "
            "delete this one and train it again"
        ) from None
    return LatentParser(task, config, model.to(getattr(torch, config.dtype)), find_data(data), dimension)


def task_sentences(task: str, data: Path) -> list[Tokens]:
    """The sentences of the test set in order, each once; for pairs both sides.

    Examples that the task leaves out (neutral ones of SST, SNLI's without a label) are left out.
    """
    examples = READERS[task](corpus_file(task, data, "test"), Counter(), 10**6)
    return list(dict.fromkeys(tokens for example in examples for tokens in example.sentences if tokens))


def sample(sentences: list[Tokens], size: int, seed: int, first: tuple[Tokens, ...] = ()) -> list[Tokens]:
    """Random sentences in the order of the set, after those of `first` that it contains."""
    start = [tokens for tokens in first if tokens in set(sentences)][:size]
    rest = [tokens for tokens in sentences if tokens not in start]
    drawn = random.Random(seed).sample(range(len(rest)), min(size - len(start), len(rest)))
    return start + [rest[i] for i in sorted(drawn)]
