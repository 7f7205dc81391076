"""Word vectors: NumPy's `.npz` or GloVe's text format, `word v1 ... vd` a line.

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

from pullback_study.corpora.files import DAMAGED_NPZ, CorpusError, read_raw_lines

_HEADER = re.compile(rb"([0-9]+) ([0-9]+)")  # word2vec's text format begins with the number and width of its vectors
_ESCAPES = {
    "-LRB-": "(", "-RRB-": ")", "-LSB-": "[", "-RSB-": "]", "-LCB-": "{", "-RCB-": "}",
    "``": '"', "''": '"', "\\/": "/", "\\*": "*",
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class Vectors:
    """Words and their vectors.

    Args:
        name: what tables call them, for example `glove.840B.300d`.
        words: V distinct words.
        matrix: float32 `[V, d]`.
        total: words in the whole file; more than V where only some were wanted.
        skipped: lines of the file that are not here, by reason.
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
    """Where to look a token up, best first."""
    plain = unescape(token)
    return token, plain, token.lower(), plain.lower()


def read_vectors(path: Path, tokens: Iterable[str] | None = None) -> Vectors:
    """The vectors of a file, or only those that `tokens` may need: of a large file a small part.

    Words with spaces in them, of which GloVe 840B has some, cannot be tokens: they are skipped and counted.
    """
    wanted = None if tokens is None else {word for token in tokens for word in spellings(token)}
    name = path.name.removesuffix(".gz").removesuffix(".txt").removesuffix(".npz")
    return (_read_npz if path.suffix == ".npz" else _read_text)(path, name, wanted)


def _read_npz(path: Path, name: str, wanted: set[str] | None) -> Vectors:
    try:
        with np.load(path, allow_pickle=False) as arrays:
            words, matrix = arrays["words"], arrays["vectors"]
        listed = words.tolist()
    except KeyError as error:
        raise CorpusError(path, None, f"{error.args[0]}; it should hold `words` [V] and `vectors` [V, d]") from None
    except DAMAGED_NPZ as error:
        raise CorpusError(path, None, f"cannot be read as an .npz file: {error}") from None
    if words.ndim != 1 or words.dtype.kind != "U" or matrix.ndim != 2 or matrix.dtype.kind != "f":
        raise CorpusError(
            path, None,
            f"`words` is {words.dtype} {list(words.shape)} and `vectors` {matrix.dtype} {list(matrix.shape)};"
            " expected strings [V] and floating point numbers [V, d]",
        )  # fmt: skip
    if len(words) != len(matrix):
        raise CorpusError(path, None, f"{len(words)} words for {len(matrix)} vectors")
    repeated, times = Counter(listed).most_common(1)[0] if listed else ("", 1)
    if times > 1:
        raise CorpusError(path, None, f"the word {repeated!r} occurs {times} times")
    if wanted is not None:
        keep = [row for row, word in enumerate(listed) if word in wanted]
        listed, matrix = [listed[row] for row in keep], matrix[keep]
    with np.errstate(over="ignore"):
        matrix = matrix.astype(np.float32)
    finite = np.isfinite(matrix).all(axis=1)
    if not finite.all():
        raise CorpusError(path, None, f"the vector of {listed[int(finite.argmin())]!r} is not finite")
    return Vectors(name, listed, matrix, len(words))


def _read_text(path: Path, name: str, wanted: set[str] | None) -> Vectors:
    """Of the lines that are not wanted only the width is checked: GloVe 840B has 2.2 million of them."""
    keep = None if wanted is None else {word.encode() for word in wanted}
    lines: dict[bytes, int] = {}
    rows: list[np.ndarray] = []
    skipped: Counter[str] = Counter()
    width, promised, number = 0, None, 0
    for number, line in read_raw_lines(path):
        line = line.rstrip(b" ")
        if number == 1 and (header := _HEADER.fullmatch(line)):
            promised, width = int(header[1]), int(header[2])
            continue
        width = width or line.count(b" ")
        word, _, numbers = line.partition(b" ")
        if width < 1 or line.count(b" ") != width:
            _check_word_with_spaces(path, number, line, width)
            skipped["words with spaces"] += 1
        elif keep is None or word in keep:
            if word in lines:
                raise CorpusError(path, number, f"the word {word.decode()!r} stands in line {lines[word]} already")
            rows.append(_numbers(path, number, word, numbers))
            lines[word] = number
    if not width:
        raise CorpusError(path, None, "no vectors in it")
    total = number - (promised is not None)
    if promised not in (None, total):
        raise CorpusError(path, None, f"{total} vectors; the first line promises {promised}")
    matrix = np.stack(rows) if rows else np.zeros((0, width), np.float32)
    return Vectors(name, [word.decode() for word in lines], matrix, total, dict(skipped))


def _check_word_with_spaces(path: Path, number: int, line: bytes, width: int) -> None:
    """A line with too many fields is a word with spaces only if what precedes the vector is not a number too."""
    fields = line.split(b" ")
    if len(fields) <= width + 1 or width < 1 or _is_number(fields[-width - 1]):
        raise CorpusError(path, number, f"{len(fields) - 1} numbers after the word; the file's vectors have {width}")


def _numbers(path: Path, number: int, word: bytes, numbers: bytes) -> np.ndarray:
    try:
        word.decode()
        with np.errstate(over="ignore"):  # what overflows is not finite, which is the better message
            row = np.array(numbers.split(b" ")).astype(np.float32)
    except UnicodeDecodeError:
        raise CorpusError(path, number, f"the word {word!r} is not UTF-8") from None
    except ValueError as error:
        raise CorpusError(path, number, f"the vector of {word.decode()!r}: {error}") from None
    if not np.isfinite(row).all():
        raise CorpusError(path, number, f"the vector of {word.decode()!r} is not finite")
    return row


def _is_number(field: bytes) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True
