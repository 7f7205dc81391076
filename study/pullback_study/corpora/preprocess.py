"""From examples made of tokens to a `Corpus`: numbers for words, and the vectors of those that occur.

Sentences are read one by one into flat arrays of integers; no list of all sentences is ever held.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import torch

from pullback_study.corpora.corpus import UNKNOWN, Corpus, Split
from pullback_study.corpora.files import CorpusError
from pullback_study.corpora.vectors import Vectors, read_vectors

Sentences = tuple[tuple[str, ...], ...]  # one for each side of an example
Reader = Callable[[Path, Counter[str]], Iterator[tuple[Sentences, int]]]  # counts what it drops, by rule


def preprocess(files: dict[str, Path], read: Reader, *, sides: int, vectors: Path) -> Corpus:
    """Read the splits and look their words up."""
    numbers: dict[str, int] = {}
    splits = {name: _read_split(path, read, numbers, sides) for name, path in files.items()}
    found = read_vectors(vectors, numbers)
    rows, vocabulary, matrix = _rows(numbers, found)
    known = rows != UNKNOWN
    tokens = [split.words.numpy() for split in splits.values()]
    description = {
        "vectors": found.name,
        "vector_file": vectors.name,
        "dimension": matrix.shape[1],
        "coverage": _share(sum(int(known[words].sum()) for words in tokens), sum(len(words) for words in tokens)),
        "coverage_of_words": _share(int(known.sum()), len(known)),
        "examples": {name: len(split) for name, split in splits.items()},
        "dropped": {name: split.dropped for name, split in splits.items()},
        "files": {name: path.name for name, path in files.items()},
    }
    numbered = {
        name: Split(torch.from_numpy(rows[split.words.numpy()]), split.offsets, split.labels, sides, split.dropped)
        for name, split in splits.items()
    }
    return Corpus(**numbered, vectors=torch.from_numpy(matrix), vocabulary=vocabulary, description=description)


def _read_split(path: Path, read: Reader, numbers: dict[str, int], sides: int) -> Split:
    """A split whose words are numbers of distinct tokens, in the order in which they first occur."""
    words, ends, labels = array("i"), array("q", [0]), array("q")
    dropped: Counter[str] = Counter()
    for sentences, label in read(path, dropped):
        for tokens in sentences:
            words.extend([numbers.setdefault(token, len(numbers)) for token in tokens])
            ends.append(len(words))
        labels.append(label)
    if not labels:
        raise CorpusError(path, None, _nothing_left(dropped))
    flat, offsets, targets = (torch.from_numpy(np.array(each)) for each in (words, ends, labels))
    return Split(flat, offsets, targets, sides, dict(dropped))


def _nothing_left(dropped: Counter[str]) -> str:
    """What to say of a file without examples: why its rows, if it has any, are none.

    >>> _nothing_left(Counter({"neutral": 1200}))
    'no examples in it: all of its 1,200 rows are left out (1,200 neutral)'
    """
    rules = ", ".join(f"{count:,} {rule}" for rule, count in dropped.items() if count)
    why = f": all of its {dropped.total():,} rows are left out ({rules})" if rules else ""
    return f"no examples in it{why}"


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


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0
