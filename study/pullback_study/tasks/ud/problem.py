"""A model of parts of speech and trees, in the manner of an autoencoder whose code is the tree.

    encoder   a BiLSTM over the tags t_1 ... t_n scores arcs: s(h -> m)
    decoder   p(t_m | z) = softmax(sum over h of z[h, m] W[t_h, side of h]),  side: left of m, right of m, or the root

The loss of a sentence is the mean of -log p(t_m | z) over its words: a good tree has heads that say what their modifiers
are. With gold trees for a share of the sentences, -log p(gold tree) / n is added for these.
"""

from __future__ import annotations

import functools
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from pullback import DependencyTree
from pullback_study.corpora import read_conllu
from pullback_study.tasks.latent.problem import Examples, Problem
from pullback_study.tasks.text.models import ArcScorer, BiLSTM
from pullback_study.tasks.ud.task import Config
from pullback_study.trees.measures import is_projective

TAGS = (
    "ADJ", "ADP", "ADV", "AUX", "CCONJ", "DET", "INTJ", "NOUN", "NUM", "PART", "PRON", "PROPN", "PUNCT",
    "SCONJ", "SYM", "VERB", "X",
)  # fmt: skip
_PUNCT, _PADDING = TAGS.index("PUNCT"), -100
_ONE_ROOT = {"projective": True, "multiroot": False}


@functools.lru_cache(maxsize=6)
def read(path: Path, longest: int) -> Examples:
    """The sentences of a treebank with at most so many words: `tags` and `heads` `[N, n]`, `lengths`, `projective` `[N]`."""
    found = [parse for parse in read_conllu(path) if len(parse.tokens) <= longest]
    if not found:
        raise ValueError(f"{path} has no sentence of at most {longest} words; use a larger number, or another file")
    shape = len(found), max(len(parse.tokens) for parse in found)
    tags, heads = torch.full(shape, _PADDING), torch.full(shape, _PADDING)
    for row, parse in enumerate(found):
        tags[row, : len(parse.tokens)] = torch.tensor([TAGS.index(tag) for tag in parse.tags])
        heads[row, : len(parse.tokens)] = torch.tensor(parse.heads)
    # A tree with several roots is none of this structure: its sentence is parsed, and never shown with its tree.
    single = torch.tensor([is_projective(parse.heads) and parse.heads.count(0) == 1 for parse in found])
    lengths = torch.tensor([len(parse.tokens) for parse in found])
    return Examples({"tags": tags, "heads": heads, "lengths": lengths, "single": single})


class TagModel(nn.Module):
    """Encoder, arc scorer and the decoder's table."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.embedding, self.lstm = nn.Embedding(len(TAGS), size), BiLSTM(size, size)
        self.parser = ArcScorer(size, size)
        self.table = nn.Parameter(torch.zeros(3, len(TAGS), len(TAGS)))  # side of the head, tag of the head, tag


class TagProblem(Problem):
    """Sentences and the model; `shown` marks the training sentences whose gold trees are seen."""

    model: TagModel

    def __init__(self, config: Config, train: Examples, validation: Examples, test: Examples) -> None:
        self._config, self.model = config, TagModel(config.size)
        count = round(config.gold_share * min(len(train), config.train_examples or len(train)))
        chosen = train["single"].nonzero()[:, 0][:count]
        shown = torch.zeros(len(train), dtype=torch.bool).index_fill(0, chosen, True)
        none = [torch.zeros(len(split), dtype=torch.bool) for split in (validation, test)]
        train, validation, test = (
            Examples({**split.tensors, "shown": marks})
            for split, marks in zip((train, validation, test), (shown, *none), strict=True)
        )
        self.splits = train, validation, test

    def gather(self, split: Examples, rows: Tensor, width: int) -> Examples:
        batch = split.take(rows)
        n = int(batch["lengths"].max())
        return Examples({name: each[:, :n] if each.dim() > 1 else each for name, each in batch.tensors.items()})

    def structure(self, batch: Examples) -> DependencyTree:
        return DependencyTree(batch["lengths"], **_ONE_ROOT)

    def scores(self, batch: Examples, encoded: None) -> Tensor:
        vectors = self.model.embedding(batch["tags"].clamp_min(0))
        vectors = vectors.masked_fill((batch["tags"] < 0)[..., None], 0.0)
        return self.model.parser(self.model.lstm(vectors, batch["lengths"]))

    def supervision(self, batch: Examples, structure: DependencyTree, scores: Tensor) -> Tensor | None:
        if not self._config.gold_share:
            return None
        usual = torch.arange(batch["heads"].shape[1], device=scores.device)  # a chain, in place of trees that are not shown
        heads = torch.where(batch["shown"][:, None], batch["heads"], usual)
        found = structure.log_prob(scores, structure.from_heads(heads).to(scores.dtype))
        return -torch.where(batch["shown"], found, 0.0) / batch["lengths"]

    def logits(self, batch: Examples, z: Tensor) -> Tensor:
        """`[B, n, tags]`: linear in z, so that averages of trees have averages of logits."""
        n, tags = z.shape[-1], batch["tags"].clamp_min(0)
        place = torch.arange(n, device=z.device)
        left, right = (z * (sign * (place - place[:, None]) > 0) for sign in (1, -1))  # the head is left, or right, of m
        root = z.diagonal(dim1=-2, dim2=-1)[..., None] * self.model.table[2, 0]
        return left.mT @ self.model.table[0][tags] + right.mT @ self.model.table[1][tags] + root

    def losses(self, batch: Examples, encoded: None, z: Tensor | None) -> Tensor:
        z = self.given(batch) if z is None else z
        each = F.cross_entropy(self.logits(batch, z).mT, batch["tags"], reduction="none", ignore_index=_PADDING)
        return each.sum(-1) / batch["lengths"]

    def measures(self, batch: Examples, encoded: None, z: Tensor | None, best: Tensor | None) -> dict[str, Tensor]:
        """For each word whether its tag is reconstructed, and for each that is no punctuation, whether its head is gold."""
        given, tags = self.given(batch), batch["tags"]
        right = self.logits(batch, given if z is None else z).argmax(-1) == tags
        found = self.structure(batch).heads(given if best is None else best) == batch["heads"]
        return {"accuracy": 100.0 * right[tags >= 0], "attachment": 100.0 * found[(tags >= 0) & (tags != _PUNCT)]}

    def given(self, batch: Examples) -> Tensor:
        """The trees of the rows that have no estimator."""
        place = torch.arange(batch["tags"].shape[1], device=batch["tags"].device).expand_as(batch["tags"])
        last = place == batch["lengths"][:, None] - 1
        left = torch.where(last, 0, place + 2)
        heads = {"gold": batch["heads"], "left-branching": left}.get(self._config.estimator, place)
        anything = DependencyTree(batch["lengths"], projective=False, multiroot=True)  # as some gold trees are
        return anything.from_heads(heads).to(self.model.table.dtype)
