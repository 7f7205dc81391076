"""From examples made of tokens to a `Corpus`: numbers for words, and the vectors of those that occur.

Sentences are read one by one into flat arrays of integers; there is never a list of all sentences.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

from pullback_study.corpora.corpus import UNKNOWN, Corpus, Split
from pullback_study.corpora.files import CorpusError
from pullback_study.corpora.vectors import Vectors, read_vectors


class Example(NamedTuple):
    """The tokens of each side, the label, and the gold structure if there is one: one number per word of all sides."""

    sentences: tuple[tuple[str, ...], ...]
    label: int
    gold: tuple[int, ...] | None = None


Reader = Callable[[Path, Counter[str]], Iterator[Example]]  # counts the examples that it drops, by rule


def preprocess(files: dict[str, Path], read: Reader, *, vectors: Path) -> Corpus:
    """Read the splits and look their words up."""
    numbers: dict[str, int] = {}
    splits = {name: _read_split(path, read, numbers) for name, path in files.items()}
    found = read_vectors(vectors, numbers)
    rows, vocabulary, matrix = _rows(numbers, found)
    known = rows != UNKNOWN
    words = np.concatenate([split.words.numpy() for split in splits.values()])
    description = {
        "vectors": found.name,
        "vector_file": vectors.name,
        "dimension": matrix.shape[1],
        "coverage": float(known[words].mean()) if len(words) else 0.0,
        "coverage_of_words": float(known.mean()) if len(known) else 0.0,
        "examples": {name: len(split) for name, split in splits.items()},
        "dropped": {name: split.dropped for name, split in splits.items()},
        "files": {name: path.name for name, path in files.items()},
    }
    for split in splits.values():
        split.words.copy_(torch.from_numpy(rows)[split.words])
    return Corpus(**splits, vectors=torch.from_numpy(matrix), vocabulary=vocabulary, description=description)


def _read_split(path: Path, read: Reader, numbers: dict[str, int]) -> Split:
    """A split whose words are numbers of distinct tokens, in the order in which they first occur."""
    words, ends, labels, gold = array("i"), array("q", [0]), array("q"), array("i")
    dropped: Counter[str] = Counter()
    for example in read(path, dropped):
        for tokens in example.sentences:
            words.extend([numbers.setdefault(token, len(numbers)) for token in tokens])
            ends.append(len(words))
        labels.append(example.label)
        gold.extend(example.gold or ())
    if not labels:
        rules = ", ".join(f"{count:,} {rule}" for rule, count in dropped.items() if count)
        raise CorpusError(path, None, "no examples in it" + (f": all rows are left out ({rules})" if rules else ""))
    if gold and len(gold) != len(words):
        raise CorpusError(path, None, f"gold structures for {len(gold)} of {len(words)} words; each word needs one number")
    flat, offsets, targets, heads = (torch.from_numpy(np.array(each)) for each in (words, ends, labels, gold))
    sides = (len(ends) - 1) // len(labels)
    return Split(flat, offsets, targets, sides, dict(dropped), heads if gold else None)


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
