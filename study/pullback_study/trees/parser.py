"""A trained run as a parser: sentences in, latent trees out."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pullback_study.corpora import Vectors, find_data, read_vectors, vector_file
from pullback_study.text.config import Config
from pullback_study.text.latent import LatentTrees
from pullback_study.text.methods import find_method
from pullback_study.text.model import TextModel
from pullback_study.text.tasks import find_task
from pullback_study.text.trainer import latent_trees

_BATCH_SIZE = 64
_REMEDY = "take another run, or delete this one and train it again"


@dataclass(frozen=True)
class Analysis:
    """What a model makes of a sentence.

    Args:
        tokens: its words.
        heads: of each word in the best tree: 0 is the root, 1 the first word.
        mu: what the decoder sees, `[n, n]`, head x modifier with the root on the diagonal: the mean of the
            relaxation for relaxed estimators, the best tree for the others.
        label: the model's answer; empty for one side of a pair, which has none.
    """

    tokens: tuple[str, ...]
    heads: tuple[int, ...]
    mu: np.ndarray
    label: str


class LatentParser:
    """The parser inside a trained model.

    Args:
        run: its directory.
        config: of its run.
        model: trained.
        latent: how its trees are found.
        vectors: the file of the word vectors it was trained with.
        dimension: of these vectors.
    """

    def __init__(
        self, run: Path, config: Config, model: TextModel, latent: LatentTrees, vectors: Path, dimension: int
    ) -> None:
        self.config = config
        self.task = config.task
        self.estimator = config.estimator
        self.relaxed = find_method(config.estimator).kind == "Relaxed"
        self._model = model.eval()
        self._latent = latent
        self._run, self._path, self._dimension = run, vectors, dimension
        self._all: Vectors | None = None

    @torch.no_grad()
    def parse(self, sentences: Sequence[tuple[str, ...]]) -> list[Analysis]:
        """The latent trees of sentences, each a tuple of at least one token."""
        if not all(sentences):
            raise ValueError(f"sentence {[bool(each) for each in sentences].index(False) + 1} has no words")
        found = self._lookup({token for tokens in sentences for token in tokens})
        rows = np.concatenate([np.zeros((1, found.matrix.shape[1]), np.float32), found.matrix])  # row 0: no vector
        table = torch.from_numpy(rows).to(next(self._model.parameters()).dtype)
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

    def _analyses(self, sentences: Sequence[tuple[str, ...]], vectors: Tensor) -> Iterator[Analysis]:
        task = find_task(self.task)
        lengths = torch.tensor([len(tokens) for tokens in sentences])
        if task.sides == 1:
            encoded = self._model.encode(vectors, lengths)
            scores = self._model.scores(encoded)
        else:  # as the premise of a pair: both sides are parsed alike
            encoded = self._model.encode(vectors[:, None], lengths[:, None])
            scores = self._model.scores(encoded)[:, 0]
        heads, mu = self._latent.heads(scores, lengths), self._latent.predict(scores, lengths)
        labels = [""] * len(sentences)
        if task.sides == 1:
            labels = [task.labels[i] for i in self._model.logits(encoded, mu).argmax(-1).tolist()]
        for i, tokens in enumerate(sentences):
            n = len(tokens)
            yield Analysis(tokens, tuple(heads[i, :n].tolist()), mu[i, :n, :n].double().numpy(), labels[i])

    def unknown(self, tokens: Iterable[str]) -> set[str]:
        """Those of the tokens that have no vector: they are all the same word to the model."""
        wanted = set(tokens)
        found = self._lookup(wanted)
        return {token for token in wanted if found.lookup(token) is None}

    def _lookup(self, tokens: set[str]) -> Vectors:
        """The vectors of the tokens: those of an `.npz` file are read once, and of a text file only what is needed."""
        if self._all is not None:
            return self._all
        found = read_vectors(self._path, None if self._path.suffix == ".npz" else tokens)
        if found.matrix.shape[1] != self._dimension:
            raise ValueError(
                f"the vectors in {self._path} have {found.matrix.shape[1]} dimensions, and {self._run} was trained with "
                f"{self._dimension}; pass the data that it was trained with (--data)"
            )
        if self._path.suffix == ".npz":
            self._all = found
        return found


def load_parser(run: Path, data: Path | None = None) -> LatentParser:
    """The parser of a run.

    Args:
        run: its directory, with `config.json`, `result.json` and `checkpoint.pt`.
        data: the folder of the data, for the word vectors; None for `$PULLBACK_DATA`.
    """
    if not (run / "config.json").exists():
        raise ValueError(f"{run} is no run: there is no config.json in it; `pullback runs` lists them")
    config = _config(run)
    latent = latent_trees(config)
    if latent is None:
        raise ValueError(f"{run} is a run of the baseline, which has no latent trees")
    if not (run / "result.json").exists():
        raise ValueError(f"{run} is not done yet; `pullback runs` shows how far it is")
    inputs = _dimension(run)
    model = find_task(config.task).model(inputs, True).to(getattr(torch, config.dtype))
    _load_parameters(model, run)
    return LatentParser(run, config, model, latent, vector_file(find_data(data), config.vectors), inputs)


def _config(run: Path) -> Config:
    identity = _read_json(run / "config.json")
    if identity.get("study") != "text":
        raise ValueError(f"{run} is a run of the study {identity.get('study')!r}; only sst and snli have latent trees")
    try:
        return Config(**identity["config"])
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{run / 'config.json'} is not a config of this version of pullback: {error}") from None


def _dimension(run: Path) -> int:
    """Of the word vectors that the run was trained with."""
    path = run / "result.json"
    about = _read_json(path).get("data")
    inputs = about.get("dimension") if isinstance(about, dict) else None
    if not isinstance(inputs, int) or inputs < 1:
        raise ValueError(f"{path} does not say the dimension of the word vectors; {_REMEDY}")
    return inputs


def _load_parameters(model: TextModel, run: Path) -> None:
    path = run / "checkpoint.pt"
    if not path.exists():
        raise ValueError(f"{run} has no parameters: there is no checkpoint.pt in it; {_REMEDY}")
    try:
        model.load_state_dict(torch.load(path, map_location="cpu", weights_only=True))
    except (OSError, EOFError, pickle.UnpicklingError, RuntimeError, ValueError, KeyError, TypeError, AttributeError):
        raise ValueError(f"{path} is damaged, or does not hold the parameters of this model; {_REMEDY}") from None


def _read_json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise ValueError(f"{path} cannot be read ({error}); {_REMEDY}") from None
    if not isinstance(content, dict):
        raise ValueError(f"{path} holds no JSON object; {_REMEDY}")
    return content
