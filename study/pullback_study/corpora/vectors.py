"""Word vectors: NumPy's `.npz`, or GloVe's text format with `word v1 ... vd` on each line.

A token is looked up as it is, then PTB-unescaped, then lower-cased, then both.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np

from pullback_study.corpora.files import CorpusError, read_raw_lines

_HEADER = re.compile(rb"[0-9]+ ([0-9]+)")  # the first line of word2vec's text format: number and width of the vectors
_NUMBER = re.compile(rb"[-+]?[0-9]*\.?[0-9]+([eE][-+]?[0-9]+)?")
_ESCAPES = {
    "-LRB-": "(", "-RRB-": ")", "-LSB-": "[", "-RSB-": "]", "-LCB-": "{", "-RCB-": "}",
    "``": '"', "''": '"', "\\/": "/", "\\*": "*",
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class Vectors:
    """Words and their vectors.

    Args:
        name: for tables, for example `glove.840B.300d`.
        words: V distinct words.
        matrix: float32 `[V, d]`.
        total: the number of words in the file; more than V if only some were wanted.
        skipped: how many lines of the file are left out, by reason.
    """

    name: str
    words: list[str]
    matrix: np.ndarray
    total: int
    skipped: dict[str, int] = field(default_factory=dict)

    @cached_property
    def index(self) -> dict[str, int]:
        return {word: row for row, word in enumerate(self.words)}

    def lookup(self, token: str) -> int | None:
        """The row of a token's first spelling that has a vector; None for an unknown word."""
        return next((self.index[word] for word in spellings(token) if word in self.index), None)


def unescape(token: str) -> str:
    r"""The token as it was written, before the Penn Treebank's escapes.

    >>> unescape("-LRB-"), unescape("1\\/2"), unescape("film")
    ('(', '1/2', 'film')
    """
    for escaped, plain in _ESCAPES.items():
        token = token.replace(escaped, plain)
    return token


def spellings(token: str) -> tuple[str, str, str, str]:
    """The spellings under which a token is looked up, best first."""
    plain = unescape(token)
    return token, plain, token.lower(), plain.lower()


def read_vectors(path: Path, tokens: Iterable[str] | None = None) -> Vectors:
    """The vectors of a file, or only those that `tokens` may need: a small part of a large file.

    Words with spaces in them, of which GloVe 840B has some, cannot be tokens: they are skipped and counted.
    """
    wanted = None if tokens is None else {word for token in tokens for word in spellings(token)}
    name = path.name.removesuffix(".gz").removesuffix(".txt").removesuffix(".npz")
    vectors = (_read_npz if path.suffix == ".npz" else _read_text)(path, name, wanted)
    finite = np.isfinite(vectors.matrix).all(axis=1)
    if not finite.all():
        raise CorpusError(path, None, f"the vector of {vectors.words[int(finite.argmin())]!r} is not finite")
    return vectors


def _read_npz(path: Path, name: str, wanted: set[str] | None) -> Vectors:
    try:
        with np.load(path, allow_pickle=False) as arrays:
            words, matrix = arrays["words"], arrays["vectors"]
        listed: list[str] = words.tolist()
    except Exception as error:  # NumPy raises a dozen types for damaged files
        reason = f"cannot be read as an .npz file with `words` [V] and `vectors` [V, d]: {error}"
        raise CorpusError(path, None, reason) from None
    if words.ndim != 1 or words.dtype.kind != "U" or matrix.ndim != 2 or matrix.dtype.kind != "f" or len(words) != len(matrix):
        raise CorpusError(
            path, None,
            f"`words` is {words.dtype} {list(words.shape)} and `vectors` {matrix.dtype} {list(matrix.shape)};"
            " expected strings [V] and floating point numbers [V, d]",
        )  # fmt: skip
    if wanted is not None:
        keep = [row for row, word in enumerate(listed) if word in wanted]
        listed, matrix = [listed[row] for row in keep], matrix[keep]
    with np.errstate(over="ignore"):
        return Vectors(name, listed, matrix.astype(np.float32), len(words))


def _read_text(path: Path, name: str, wanted: set[str] | None) -> Vectors:
    """Only the width of lines that are not wanted is checked: GloVe 840B has 2.2 million of them."""
    keep = None if wanted is None else {word.encode() for word in wanted}
    rows: dict[str, np.ndarray] = {}
    skipped: Counter[str] = Counter()
    width = total = 0
    for number, line in read_raw_lines(path):
        line = line.rstrip(b" ")
        if number == 1 and (header := _HEADER.fullmatch(line)):
            width = int(header[1])
            continue
        width = width or line.count(b" ")
        total += 1
        if width < 1 or line.count(b" ") != width:
            fields = line.split(b" ")
            if width < 1 or len(fields) <= width or _NUMBER.fullmatch(fields[-width - 1]):
                raise CorpusError(path, number, f"{len(fields) - 1} numbers after the word; the file's vectors have {width}")
            skipped["words with spaces"] += 1
            continue
        word, _, numbers = line.partition(b" ")
        if keep is None or word in keep:
            try:
                with np.errstate(over="ignore"):
                    rows.setdefault(word.decode(), np.array(numbers.split(b" ")).astype(np.float32))
            except ValueError as error:  # also of decoding
                raise CorpusError(path, number, f"the vector of {word!r}: {error}") from None
    if not total:
        raise CorpusError(path, None, "no vectors in it")
    matrix = np.stack(list(rows.values())) if rows else np.zeros((0, width), np.float32)
    return Vectors(name, list(rows), matrix, total, dict(skipped))
