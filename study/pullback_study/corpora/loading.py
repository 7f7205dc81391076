"""SST and SNLI as tensors; from the cache if they were read before.

A preprocessed corpus is one file, named by a hash of its sources and options, and written atomically. If several
processes need the same corpus, one makes it and the others wait. If the folder cannot be written, the corpus is read again
each time; a damaged file is made again.
"""

from __future__ import annotations

import contextlib
import fcntl
import io
import warnings
from array import array
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import torch

from pullback_study.corpora import readers
from pullback_study.corpora.corpus import UNKNOWN, Corpus, Split

from pullback_study.corpora.files import (  # isort: skip
    ROWS, SPLITS, CorpusError, cache_folder, choose_vectors, corpus_file, remembered_sha256, vector_file,
)  # fmt: skip
from pullback_study.corpora.readers import Vectors, read_vectors
from pullback_study.runs import content_hash, write_atomically

FORMAT = 6  # increase it when preprocessing or the layout of cached files changes, so that old files are not used
Reader = Callable[[Path, "Counter[str]", int], Iterator[readers.Example]]  # counts the examples that it drops, by rule
READERS: dict[str, Reader] = {"sst": readers.read_sst, "snli": readers.read_snli}


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
