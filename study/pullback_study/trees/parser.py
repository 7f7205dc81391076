"""A trained run as a parser: sentences in, latent trees out; and samples of the test sentences of a task."""

from __future__ import annotations

import dataclasses
import pickle
import random
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from pullback_study.corpora import Vectors, corpus_file, find_data, load, read_vectors, vector_file
from pullback_study.corpora.corpus import UNKNOWN
from pullback_study.corpora.loading import READERS
from pullback_study.runs.store import read_run
from pullback_study.tasks import find_task
from pullback_study.tasks.text.task import TextTask

Tokens = tuple[str, ...]
_BATCH_SIZE = 64
_REMEDY = "use another run, or delete this one and train it again"


class Analysis(NamedTuple):
    """The output of a model for one sentence."""

    tokens: Tokens
    heads: tuple[int, ...]  # of each word in the best tree: 0 is the root, 1 the first word
    mu: np.ndarray  # the input of the decoder, [n, n], head x modifier: a relaxation's mean, else the best tree
    label: str  # the predicted one; empty for one side of a pair, which has none


class LatentParser:
    """The parser inside a trained model; a parameter named `embedding` holds trained word vectors."""

    def __init__(self, task: TextTask, config: Any, model: nn.Module, data: Path, dimension: int) -> None:
        self.config = config
        self.task: str = task.name
        self.estimator: str = config.estimator
        self._task, self._model, self._data, self._dimension = task, model.eval(), data, dimension
        self._all: Vectors | None = None
        if config.embeddings == "trained":
            words = load(task.name, data, config.vectors).vocabulary
            self._all = Vectors("trained", words, model.get_parameter("embedding").detach().float().numpy())

    @torch.no_grad()
    def parse(self, sentences: Sequence[Tokens]) -> list[Analysis]:
        """The latent trees of sentences, each a tuple of at least one token."""
        if not all(sentences):
            raise ValueError(f"sentence {[bool(each) for each in sentences].index(False) + 1} has no words")
        vectors = self._lookup({token for tokens in sentences for token in tokens})
        unknown = vectors.matrix[UNKNOWN] if self.config.embeddings == "trained" else np.zeros(self._dimension, np.float32)
        table = torch.from_numpy(np.concatenate([unknown[None], vectors.matrix])).to(next(self._model.parameters()).dtype)
        order = sorted(range(len(sentences)), key=lambda i: len(sentences[i]))  # so that little is padding
        found: dict[int, Analysis] = {}
        for start in range(0, len(order), _BATCH_SIZE):
            batch = order[start : start + _BATCH_SIZE]
            part = [sentences[i] for i in batch]
            words = torch.zeros(len(part), max(map(len, part)), dtype=torch.long)
            for i, tokens in enumerate(part):
                rows = [vectors.lookup(token) for token in tokens]
                words[i, : len(tokens)] = torch.tensor([0 if row is None else row + 1 for row in rows])
            found.update(zip(batch, self._analyses(part, table[words]), strict=True))
        return [found[i] for i in range(len(sentences))]

    def unknown(self, tokens: Iterable[str]) -> set[str]:
        """The tokens that have no vector: they are all the same word to the model."""
        wanted = set(tokens)
        found = self._lookup(wanted)
        return {token for token in wanted if found.lookup(token) is None}

    def _analyses(self, sentences: Sequence[Tokens], vectors: Tensor) -> Iterator[Analysis]:
        model: Any = self._model
        lengths = torch.tensor([len(tokens) for tokens in sentences])
        if self._task.sides == 1:
            encoded = model.encode(vectors, lengths)
            scores = model.scores(encoded)
        else:  # as the premise of a pair: both sides are parsed alike
            encoded = model.encode(vectors[:, None], lengths[:, None])
            scores = model.scores(encoded)[:, 0]
        structure, estimator = self._task.structure(lengths, self.config), self._task.estimator(self.config)
        assert estimator is not None
        heads, mu = structure.heads(structure.argmax(scores)), estimator.predict(structure, scores)
        labels = [""] * len(sentences)
        if self._task.sides == 1:
            labels = [self._task.labels[i] for i in model.logits(encoded, mu).argmax(-1).tolist()]
        for i, tokens in enumerate(sentences):
            n = len(tokens)
            yield Analysis(tokens, tuple(heads[i, :n].tolist()), mu[i, :n, :n].double().numpy(), labels[i])

    def _lookup(self, tokens: set[str]) -> Vectors:
        """The vectors of the tokens: an `.npz` file is read once as a whole, of a text file only the lines needed."""
        if self._all is not None:
            return self._all
        path = vector_file(self._data, self.config.vectors)
        found = read_vectors(path, None if path.suffix == ".npz" else tokens)
        if found.matrix.shape[1] != self._dimension:
            raise ValueError(
                f"the vectors in {path} have {found.matrix.shape[1]} dimensions, and the run was trained with "
                f"{self._dimension}; pass the data that it was trained with (--data)"
            )
        if path.suffix == ".npz":
            self._all = found
        return found


def load_parser(path: Path, data: Path | None = None) -> LatentParser:
    """The parser of a run.

    Args:
        path: its directory, with `config.json`, `result.json` and `checkpoint.pt`.
        data: the data folder, for the word vectors; None for `$PULLBACK_DATA`.
    """
    run = read_run(path)
    if run.state == "unreadable":
        raise ValueError(f"{path} is not a run that can be read: {run.error}; `pullback runs` lists the runs")
    task = _text_task(run.task, f"{path} is a run of the task {run.task!r}, which has no latent trees of sentences")
    if run.state != "done":
        raise ValueError(f"{path} is not done ({run.state}); `pullback runs` shows how far it is")
    known = {each.name for each in dataclasses.fields(task.config_type)}
    try:
        config: Any = task.config_type(**{name: value for name, value in run.config.items() if name in known})
        method = task.find_method(config.estimator)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{path / 'config.json'} is not a config of this version: {error}") from None
    if not method.latent:
        raise ValueError(f"{path} is a run of the baseline, which has no latent trees")
    about = run.result.get("data")
    dimension = about.get("dimension") if isinstance(about, dict) else None
    if not isinstance(dimension, int) or dimension < 1:
        raise ValueError(f"{path / 'result.json'} does not say the dimension of the word vectors; {_REMEDY}")
    model: nn.Module = task.model(dimension, True)
    _load_parameters(model, path / "checkpoint.pt", trained=config.embeddings == "trained")
    return LatentParser(task, config, model.to(getattr(torch, config.dtype)), find_data(data), dimension)


def _load_parameters(model: nn.Module, path: Path, *, trained: bool) -> None:
    if not path.exists():
        raise ValueError(f"{path.parent} has no parameters: there is no checkpoint.pt in it; {_REMEDY}")
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
        if trained:
            model.register_parameter("embedding", nn.Parameter(state["embedding"]))
        model.load_state_dict(state)
    except (OSError, EOFError, pickle.UnpicklingError, RuntimeError, ValueError, KeyError, TypeError, AttributeError):
        raise ValueError(f"{path} is damaged, or does not hold the parameters of this model; {_REMEDY}") from None


def task_sentences(task: str, data: Path) -> list[Tokens]:
    """The sentences of the test set in order, each once; for pairs both sides.

    Examples that the task leaves out (neutral ones of SST, SNLI's without a label) are left out.
    """
    _text_task(task, f"there are no test sentences for the task {task!r}")
    examples = READERS[task](corpus_file(task, data, "test"), Counter(), 10**6)
    return list(dict.fromkeys(tokens for example in examples for tokens in example.sentences if tokens))


def sample(sentences: list[Tokens], size: int, seed: int, first: tuple[Tokens, ...] = ()) -> list[Tokens]:
    """Random sentences in the order of the set, after those of `first` that it contains.

    >>> sample([("a",), ("b",), ("c",)], 2, seed=0, first=(("c",), ("d",)))
    [('c',), ('b',)]
    """
    if size < 1:
        raise ValueError(f"the sample has {size} sentences; it needs at least 1")
    there = set(sentences)
    start = [tokens for tokens in first if tokens in there][:size]
    rest = [tokens for tokens in sentences if tokens not in set(start)]
    drawn = random.Random(seed).sample(range(len(rest)), min(size - len(start), len(rest)))
    return start + [rest[i] for i in sorted(drawn)]


def _text_task(name: str, otherwise: str) -> TextTask:
    task = find_task(name)
    if not isinstance(task, TextTask):
        raise ValueError(otherwise)
    return task
