"""A trained run as a parser: sentences in, latent trees out."""

from __future__ import annotations

import dataclasses
import pickle
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from pullback.structures import DependencyTree
from pullback_study.corpora import Vectors, find_data, read_vectors, vector_file
from pullback_study.corpora.corpus import UNKNOWN
from pullback_study.runs.store import Stored, read_run
from pullback_study.tasks import find_task
from pullback_study.tasks.text.task import TextTask

_BATCH_SIZE = 64
_REMEDY = "use another run, or delete this one and train it again"


@dataclass(frozen=True)
class Analysis:
    """The output of a model for one sentence.

    Args:
        tokens: its words.
        heads: of each word in the best tree: 0 is the root, 1 the first word.
        mu: the input of the decoder, `[n, n]`, head x modifier with the root on the diagonal: the mean of the
            relaxation for relaxed estimators, the best tree for the others.
        label: the predicted label; empty for one side of a pair, which has none.
    """

    tokens: tuple[str, ...]
    heads: tuple[int, ...]
    mu: np.ndarray
    label: str


class LatentParser:
    """The parser inside a trained model.

    Args:
        task: the task of the run.
        config: the config of the run.
        model: with the parameters of the run; one named `embedding` holds trained word vectors.
        data: the data folder.
        dimension: the size of the word vectors.
    """

    def __init__(self, task: TextTask, config: Any, model: nn.Module, data: Path, dimension: int) -> None:
        self.config = config
        self.task: str = task.name
        self.estimator: str = config.estimator
        self._task, self._model, self._data, self._dimension = task, model.eval(), data, dimension
        self._all: Vectors | None = self._trained() if config.embeddings == "trained" else None

    @torch.no_grad()
    def parse(self, sentences: Sequence[tuple[str, ...]]) -> list[Analysis]:
        """The latent trees of sentences, each a tuple of at least one token."""
        if not all(sentences):
            raise ValueError(f"sentence {[bool(each) for each in sentences].index(False) + 1} has no words")
        found = self._lookup({token for tokens in sentences for token in tokens})
        unknown = found.matrix[UNKNOWN] if self.config.embeddings == "trained" else np.zeros(self._dimension, np.float32)
        table = torch.from_numpy(np.concatenate([unknown[None], found.matrix])).to(next(self._model.parameters()).dtype)
        out: list[Analysis] = []
        for start in range(0, len(sentences), _BATCH_SIZE):
            part = sentences[start : start + _BATCH_SIZE]
            words = torch.zeros(len(part), max(map(len, part)), dtype=torch.long)
            for i, tokens in enumerate(part):
                for j, token in enumerate(tokens):
                    row = found.lookup(token)
                    words[i, j] = 0 if row is None else row + 1
            out += self._analyses(part, table[words])
        return out

    def unknown(self, tokens: Iterable[str]) -> set[str]:
        """The tokens that have no vector: they are all the same word to the model."""
        wanted = set(tokens)
        found = self._lookup(wanted)
        return {token for token in wanted if found.lookup(token) is None}

    def _analyses(self, sentences: Sequence[tuple[str, ...]], vectors: Tensor) -> Iterator[Analysis]:
        model: Any = self._model
        lengths = torch.tensor([len(tokens) for tokens in sentences])
        if self._task.sides == 1:
            encoded = model.encode(vectors, lengths)
            scores = model.scores(encoded)
        else:  # as the premise of a pair: both sides are parsed alike
            encoded = model.encode(vectors[:, None], lengths[:, None])
            scores = model.scores(encoded)[:, 0]
        structure = self._task.structure(lengths, self.config)
        estimator = self._task.estimator(self.config)
        assert isinstance(structure, DependencyTree)
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

    def _trained(self) -> Vectors:
        """The word vectors of the checkpoint, for the words of the corpus."""
        words = self._task.load(self._data, self.config.vectors).vocabulary
        matrix = self._model.get_parameter("embedding").detach().float().numpy()
        return Vectors("trained", words, matrix, len(words))


def load_parser(path: Path, data: Path | None = None) -> LatentParser:
    """The parser of a run.

    Args:
        path: its directory, with `config.json`, `result.json` and `checkpoint.pt`.
        data: the data folder, for the word vectors; None for `$PULLBACK_DATA`.
    """
    run = read_run(path)
    if run.state == "unreadable":
        raise ValueError(f"{path} is not a run that can be read: {run.error}; `pullback runs` lists the runs")
    task = find_task(run.task)
    if not isinstance(task, TextTask):
        raise ValueError(f"{path} is a run of the task {run.task!r}, which has no latent trees of sentences")
    if run.state != "done":
        raise ValueError(f"{path} is not done ({run.state}); `pullback runs` shows how far it is")
    config = _config(run, task)
    if not task.methods[config.estimator].latent:
        raise ValueError(f"{path} is a run of the baseline, which has no latent trees")
    if not isinstance(task.structure(torch.ones(1, dtype=torch.long), config), DependencyTree):
        raise ValueError(f"{path} has another latent structure than dependency trees")
    dimension = _dimension(run)
    model: nn.Module = task.model(dimension, True)
    _load_parameters(model, path, trained=config.embeddings == "trained")
    return LatentParser(task, config, model.to(getattr(torch, config.dtype)), find_data(data), dimension)


def _config(run: Stored, task: TextTask) -> Any:
    known = {each.name for each in dataclasses.fields(task.config_type)}
    try:
        config = task.config_type(**{name: value for name, value in run.config.items() if name in known})
        task.find_method(config.estimator)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{run.path / 'config.json'} is not a config of this version: {error}") from None
    return config


def _dimension(run: Stored) -> int:
    """The size of the word vectors that the run was trained with."""
    about = run.result.get("data")
    inputs = about.get("dimension") if isinstance(about, dict) else None
    if not isinstance(inputs, int) or inputs < 1:
        raise ValueError(f"{run.path / 'result.json'} does not say the dimension of the word vectors; {_REMEDY}")
    return inputs


def _load_parameters(model: nn.Module, run: Path, *, trained: bool) -> None:
    path = run / "checkpoint.pt"
    if not path.exists():
        raise ValueError(f"{run} has no parameters: there is no checkpoint.pt in it; {_REMEDY}")
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
        if trained:
            model.register_parameter("embedding", nn.Parameter(state["embedding"]))
        model.load_state_dict(state)
    except (OSError, EOFError, pickle.UnpicklingError, RuntimeError, ValueError, KeyError, TypeError, AttributeError):
        raise ValueError(f"{path} is damaged, or does not hold the parameters of this model; {_REMEDY}") from None
