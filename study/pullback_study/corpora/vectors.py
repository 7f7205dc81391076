"""Word vectors: NumPy's `.npz`, or GloVe's text format with `word v1 ... vd` on each line.

A token is looked up as it is, then PTB-unescaped, then lower-cased, then both.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from pullback_study.corpora.files import CorpusError, read_raw_lines

_HEADER = re.compile(rb"[0-9]+ ([0-9]+)")  # the first line of word2vec's text format: number and width of the vectors
_ESCAPES = {
    "-LRB-": "(", "-RRB-": ")", "-LSB-": "[", "-RSB-": "]", "-LCB-": "{", "-RCB-": "}",
    "``": '"', "''": '"', "\\/": "/", "\\*": "*",
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class Vectors:
    """V distinct words and their vectors, float32 `[V, d]`."""

    name: str  # for tables, for example `glove.840B.300d`
    words: list[str]
    matrix: np.ndarray

    @cached_property
    def index(self) -> dict[str, int]:
        return {word: row for row, word in enumerate(self.words)}

    def lookup(self, token: str) -> int | None:
        """The row of a token's first spelling that has a vector; None for an unknown word."""
        return next((self.index[word] for word in spellings(token) if word in self.index), None)


def spellings(token: str) -> tuple[str, str, str, str]:
    r"""The spellings under which a token is looked up, best first.

    >>> spellings("A\\/B")
    ('A\\/B', 'A/B', 'a\\/b', 'a/b')
    """
    plain = token
    for escaped, written in _ESCAPES.items():
        plain = plain.replace(escaped, written)
    return token, plain, token.lower(), plain.lower()


def read_vectors(path: Path, tokens: Iterable[str] | None = None) -> Vectors:
    """The vectors of a file, or only those that `tokens` may need: a small part of a large file.

    Words with spaces in them, of which GloVe 840B has some, cannot be tokens: they are skipped.
    """
    wanted = None if tokens is None else {word for token in tokens for word in spellings(token)}
    with np.errstate(over="ignore"):
        words, matrix = (_read_npz if path.suffix == ".npz" else _read_text)(path, wanted)
    finite = np.isfinite(matrix).all(axis=1)
    if not finite.all():
        raise CorpusError(path, None, f"the vector of {words[int(finite.argmin())]!r} is not finite")
    return Vectors(path.name.removesuffix(".gz").removesuffix(".txt").removesuffix(".npz"), words, matrix)


def _read_npz(path: Path, wanted: set[str] | None) -> tuple[list[str], np.ndarray]:
    try:
        with np.load(path, allow_pickle=False) as arrays:
            words, matrix = arrays["words"].tolist(), arrays["vectors"].astype(np.float32)
        keep = [row for row, word in enumerate(words) if wanted is None or word in wanted]
        return [words[row] for row in keep], matrix.reshape(len(words), matrix.shape[1])[keep]
    except Exception as error:  # NumPy raises a dozen types for damaged files
        reason = f"cannot be read as an .npz file with strings `words` [V] and numbers `vectors` [V, d]: {error}"
        raise CorpusError(path, None, reason) from None


def _read_text(path: Path, wanted: set[str] | None) -> tuple[list[str], np.ndarray]:
    """Only the width of lines that are not wanted is looked at: GloVe 840B has 2.2 million of them."""
    keep = None if wanted is None else {word.encode() for word in wanted}
    rows: dict[str, np.ndarray] = {}
    width = 0
    for number, line in read_raw_lines(path):
        line = line.rstrip(b" ")
        if number == 1 and (header := _HEADER.fullmatch(line)):
            width = int(header[1])
            continue
        width = width or line.count(b" ")
        if line.count(b" ") < max(width, 1):
            raise CorpusError(path, number, f"{line.count(b' ')} numbers after the word; the file's vectors have {width}")
        word, _, numbers = line.partition(b" ")
        if line.count(b" ") == width and (keep is None or word in keep):
            try:
                rows.setdefault(word.decode(), np.array(numbers.split(b" ")).astype(np.float32))
            except ValueError as error:  # also of decoding
                raise CorpusError(path, number, f"the vector of {word!r}: {error}") from None
    if not width:
        raise CorpusError(path, None, "no vectors in it")
    return list(rows), np.stack(list(rows.values())) if rows else np.zeros((0, width), np.float32)
