"""SST and SNLI ready for a model: word numbers in flat tensors, a vector for each word, and batches of sentences.

A preprocessed corpus is one file in the cache, named by a hash of its sources and options, and written atomically. If several
processes need the same corpus, one makes it and the others wait. If the folder cannot be written, the corpus is read again
each time; a damaged file is made again.

Batches hold sentences of similar length, in an order that depends on (seed, epoch) and on the split alone. In every epoch
the examples are shuffled and cut into pools; a pool is sorted by length and cut into batches, and all batches are shuffled.
Pools keep padding small, and batches different from one epoch to the next.
"""

from __future__ import annotations

import contextlib
import fcntl
import io
import warnings
from array import array
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pullback_study.corpora import readers

from pullback_study.corpora.files import (  # isort: skip
    ROWS, SPLITS, CorpusError, cache_folder, choose_vectors, corpus_file, remembered_sha256, vector_file,
)  # fmt: skip
from pullback_study.corpora.readers import Vectors, read_vectors
from pullback_study.runs import content_hash, write_atomically

PADDING, UNKNOWN = 0, 1  # rows of the vectors; both are zero
POOL = 50  # batches
FORMAT = 6  # increase it when preprocessing or the layout of cached files changes, so that old files are not used
Reader = Callable[[Path, "Counter[str]", int], Iterator[readers.Example]]  # counts the examples that it drops, by rule
READERS: dict[str, Reader] = {"sst": readers.read_sst, "snli": readers.read_snli}


@dataclass(frozen=True, eq=False)
class Split:
    """One part of a corpus: N examples of one or two sentences each.

    Sentence k, side k % sides of example k // sides, is `words[offsets[k] : offsets[k + 1]]`.
    """

    words: Tensor  # rows of the corpus's vectors, all sentences one after the other, int32 [total tokens]
    offsets: Tensor  # int64 [N * sides + 1]
    labels: Tensor  # int64 [N]
    sides: int  # sentences per example: 1 for SST, 2 for SNLI (premise, hypothesis)
    dropped: dict[str, int] = field(default_factory=dict)  # how many examples of the file are left out, by rule

    def __len__(self) -> int:
        return self.labels.shape[0]

    @cached_property
    def lengths(self) -> Tensor:
        """The number of words of every sentence, int64 `[N, sides]`; always in the CPU's memory."""
        return self.offsets.cpu().diff().view(-1, self.sides)

    def to(self, device: torch.device | str, dtype: torch.dtype | None = None) -> Split:
        """The same split in a device's memory, where `batches` then gathers; it has no numbers of a floating-point type."""
        return replace(self, **{name: getattr(self, name).to(device) for name in ("words", "offsets", "labels")})

    def first(self, examples: int) -> Split:
        """The first examples."""
        offsets = self.offsets[: min(examples, len(self)) * self.sides + 1]
        return replace(self, words=self.words[: int(offsets[-1])], offsets=offsets, labels=self.labels[:examples])


@dataclass(frozen=True, eq=False)
class Corpus:
    """Three splits and the vectors of the words that occur in them."""

    train: Split
    dev: Split
    test: Split
    vectors: Tensor  # float32 [rows, d]; row 0 is padding and row 1 the unknown word, both zero
    vocabulary: list[str]  # the word of each row, as the vector file spells it
    description: dict[str, Any]  # files and checksums, counts, vectors and coverage


@dataclass(frozen=True, eq=False)
class Batch:
    """B examples, padded to n words per sentence, int64; `[B, 2, n]` and `[B, 2]` for examples with two sides."""

    words: Tensor  # rows of the corpus's vectors, 0 on padding, [B, n]
    lengths: Tensor  # [B]
    labels: Tensor  # [B]


def batches(split: Split, size: int, *, seed: int | None, epoch: int = 0, multiple: int = 1) -> list[tuple[Tensor, int]]:
    """The batches of an epoch, for `gather`: examples, int64 `[B]` on the split's device, and the number n of words.

    Each example comes once; one batch may have fewer than `size` examples. Without a seed, for evaluation: sorted by length,
    always the same. Sentences are padded to a multiple of `multiple` words, for few different shapes. After
    `split.to("cuda")`, batches are gathered on the GPU.
    """
    if size < 1 or multiple < 1:
        raise ValueError(f"batches of {size} examples, padded to a multiple of {multiple}: both must be at least 1")
    lengths = split.lengths.numpy()
    keys = lengths.max(1) * (lengths.sum(1).max(initial=0) + 1) + lengths.sum(1)  # the longest side, then all words
    if seed is None:
        plan = list(torch.from_numpy(np.argsort(keys, kind="stable")).split(size)) if len(split) else []
    else:
        plan = _bucketed(keys, size, np.random.default_rng([seed, epoch]))
    if not plan:
        return []
    longest = split.lengths.amax(1)
    widths = [-(-max(int(longest[each].max()), 1) // multiple) * multiple for each in plan]
    # one copy to the device for the whole epoch: gathering a batch then needs none
    examples = torch.cat(plan).to(split.words.device).split([len(each) for each in plan])
    return list(zip(examples, widths, strict=True))


def gather(split: Split, indices: Tensor, width: int) -> Batch:
    """The batch of these examples, padded to `width` words; without a copy from or to the split's device."""
    sentences = indices[:, None] * split.sides + torch.arange(split.sides, device=indices.device)
    start = split.offsets[sentences]
    lengths = split.offsets[sentences + 1] - start
    position = torch.arange(width, device=indices.device)
    inside = position < lengths[..., None]
    at = torch.where(inside, start[..., None] + position, 0)
    words = split.words[at].long().masked_fill(~inside, PADDING)
    if split.sides == 1:
        words, lengths = words[:, 0], lengths[:, 0]
    return Batch(words, lengths, split.labels[indices])


def _bucketed(keys: np.ndarray, size: int, generator: np.random.Generator) -> list[Tensor]:
    order = generator.permutation(len(keys))
    plan: list[Tensor] = []
    for pool in np.split(order, range(POOL * size, len(order), POOL * size)):
        plan += torch.from_numpy(pool[np.argsort(keys[pool], kind="stable")]).split(size) if len(pool) else ()
    return [plan[number] for number in generator.permutation(len(plan))]


def load(name: str, data: Path, vectors: str | None = None, *, max_tokens: int = 100, cache: Path | None = None) -> Corpus:
    """A corpus of a data folder: `sst` (0 negative, 1 positive) or `snli` (0 entailment, 1 neutral, 2 contradiction).

    `vectors` is the name of a file in `vectors/`, or a file's path; `choose_vectors` by default. Sentences of SNLI of more
    than `max_tokens` are left out and counted. `cache` is by default the user's cache folder.
    """
    folder = cache or cache_folder()
    files = {split: corpus_file(name, data, split) for split in SPLITS}
    sources = {**files, "vectors": vector_file(data, vectors or choose_vectors(data))}
    checksums = {each: remembered_sha256(path, folder / "checksums") for each, path in sources.items()}
    names = {each: path.name for each, path in sources.items()}
    key = {"task": name, "checksums": checksums, "names": names, "max_tokens": max_tokens, "format": FORMAT}
    path = folder / f"{name}-{content_hash(key)}.pt"
    if (corpus := _read(path)) is not None:
        return corpus
    with _lock(path.with_suffix(".lock")):
        if (corpus := _read(path)) is not None:
            return corpus
        corpus = preprocess(name, files, sources["vectors"], max_tokens, checksums)
        file = io.BytesIO()
        torch.save({**vars(corpus), **{each: vars(getattr(corpus, each)) for each in SPLITS}}, file)
        try:
            write_atomically(path, file.getvalue())
        except OSError as error:
            warnings.warn(f"the {name} corpus is not cached, and is read again each time: {error}", stacklevel=2)
    return corpus


def preprocess(name: str, files: dict[str, Path], vectors: Path, max_tokens: int, checksums: dict[str, str]) -> Corpus:
    """Read the splits and look their words up."""
    numbers: dict[str, int] = {}
    splits = {split: _read_split(path, READERS[name], max_tokens, numbers) for split, path in files.items()}
    found = read_vectors(vectors, numbers)
    rows, vocabulary, matrix = _rows(numbers, found)
    for split in splits.values():
        split.words.copy_(torch.from_numpy(rows)[split.words])
    known = np.concatenate([split.words.numpy() for split in splits.values()]) != UNKNOWN
    read = {name: len(split) + sum(split.dropped.values()) for name, split in splits.items()}
    description = {
        "task": name,
        "rows": read,
        "share": {split: read[split] / ROWS[name][split] for split in read},
        "checksums": checksums,
        "vectors": found.name,
        "dimension": matrix.shape[1],
        "coverage": float(known.mean()) if len(known) else 0.0,
        "examples": {name: len(split) for name, split in splits.items()},
        "dropped": {name: split.dropped for name, split in splits.items()},
        "files": {name: path.name for name, path in files.items()},
    }
    return Corpus(**splits, vectors=torch.from_numpy(matrix), vocabulary=vocabulary, description=description)


def _read_split(path: Path, read: Reader, max_tokens: int, numbers: dict[str, int]) -> Split:
    """A split whose words are numbers of distinct tokens, in the order in which they first occur.

    Sentences go into flat arrays one by one; there is never a list of all sentences.
    """
    words, ends, labels = array("i"), array("q", [0]), array("q")
    dropped: Counter[str] = Counter()
    for example in read(path, dropped, max_tokens):
        for tokens in example.sentences:
            words.extend([numbers.setdefault(token, len(numbers)) for token in tokens])
            ends.append(len(words))
        labels.append(example.label)
    if not labels:
        rules = ", ".join(f"{count:,} {rule}" for rule, count in dropped.items() if count)
        raise CorpusError(path, None, "no examples in it" + (f": all rows are left out ({rules})" if rules else ""))
    flat, offsets, targets = (torch.from_numpy(np.array(each)) for each in (words, ends, labels))
    return Split(flat, offsets, targets, (len(ends) - 1) // len(labels), dict(dropped))


def _rows(numbers: dict[str, int], vectors: Vectors) -> tuple[np.ndarray, list[str], np.ndarray]:
    """The row of each token, the word of each row, and the rows."""
    at: dict[int, int] = {}  # row of the vector file -> row of the corpus
    rows = np.full(len(numbers), UNKNOWN, np.int32)
    for token, number in numbers.items():
        row = vectors.lookup(token)
        if row is not None:
            rows[number] = at.setdefault(row, len(at) + 2)
    vocabulary = ["<padding>", "<unknown>", *(vectors.words[row] for row in at)]
    matrix = np.zeros((len(vocabulary), vectors.matrix.shape[1]), np.float32)
    matrix[2:] = vectors.matrix[list(at)]
    return rows, vocabulary, matrix


@contextlib.contextmanager
def _lock(path: Path) -> Iterator[None]:
    """Wait for other processes; without a lock if there can be none: each process then does the work itself."""
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            fcntl.flock(stack.enter_context(open(path, "w")), fcntl.LOCK_EX)
        yield


def _read(path: Path) -> Corpus | None:
    try:
        content = torch.load(path, weights_only=True)
        return Corpus(**{**content, **{name: Split(**content[name]) for name in SPLITS}})
    except Exception:  # missing, or damaged in one of many ways
        return None
