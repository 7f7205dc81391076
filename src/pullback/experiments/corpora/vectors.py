"""Word vectors: NumPy's `.npz` or GloVe's text format, `word v1 ... vd` a line.

A token is looked up as it is, then PTB-unescaped, then lower-cased, then both.
"""

from __future__ import annotations

import zipfile
from collections import Counter
from collections.abc import Container, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np

from pullback.experiments.corpora.files import CorpusError, read_raw_lines

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
        skipped: lines of the file that are not here, by reason.
    """

    name: str
    words: list[str]
    matrix: np.ndarray
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
    words, matrix, skipped = (_read_npz if path.suffix == ".npz" else _read_text)(path, wanted)
    finite = np.isfinite(matrix).all(axis=1)
    if not finite.all():
        raise CorpusError(path, None, f"the vector of {words[int(finite.argmin())]!r} is not finite")
    return Vectors(name, words, matrix, skipped)


def _read_npz(path: Path, wanted: Container[str] | None) -> tuple[list[str], np.ndarray, dict[str, int]]:
    try:
        with np.load(path, allow_pickle=False) as arrays:
            words, matrix = arrays["words"], arrays["vectors"]
    except KeyError as error:
        raise CorpusError(path, None, f"{error.args[0]}; it should hold `words` [V] and `vectors` [V, d]") from None
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise CorpusError(path, None, f"cannot be read as an .npz file: {error}") from None
    if words.ndim != 1 or words.dtype.kind != "U" or matrix.ndim != 2 or matrix.dtype.kind != "f":
        raise CorpusError(
            path, None,
            f"`words` is {words.dtype} {list(words.shape)} and `vectors` {matrix.dtype} {list(matrix.shape)};"
            " expected strings [V] and floating point numbers [V, d]",
        )  # fmt: skip
    if len(words) != len(matrix):
        raise CorpusError(path, None, f"{len(words)} words for {len(matrix)} vectors")
    listed = words.tolist()
    repeated, times = Counter(listed).most_common(1)[0] if listed else ("", 1)
    if times > 1:
        raise CorpusError(path, None, f"the word {repeated!r} occurs {times} times")
    if wanted is not None:
        keep = [row for row, word in enumerate(listed) if word in wanted]
        listed, matrix = [listed[row] for row in keep], matrix[keep]
    return listed, matrix.astype(np.float32), {}


def _read_text(path: Path, wanted: Container[str] | None) -> tuple[list[str], np.ndarray, dict[str, int]]:
    words: dict[str, int] = {}
    rows: list[np.ndarray] = []
    skipped: Counter[str] = Counter()
    width = 0
    for number, line in read_raw_lines(path):
        fields = line.rstrip(b" ").split(b" ")
        if number == 1 and len(fields) == 2 and all(each.isdigit() for each in fields):
            continue  # word2vec's text format begins with the counts
        width = width or len(fields) - 1
        if len(fields) != width + 1:
            if len(fields) <= width or width < 1 or _is_number(fields[-width - 1]):
                raise CorpusError(path, number, f"{len(fields) - 1} numbers; the lines before have {width}")
            skipped["words with spaces"] += 1
            continue
        try:
            word = fields[0].decode("utf-8")
        except UnicodeDecodeError:
            raise CorpusError(path, number, f"the word {fields[0]!r} is not UTF-8") from None
        if wanted is not None and word not in wanted:
            continue
        if word in words:
            raise CorpusError(path, number, f"the word {word!r} stands in line {words[word]} already")
        try:
            row = np.array(fields[1:]).astype(np.float32)
        except ValueError as error:
            raise CorpusError(path, number, f"the vector of {word!r}: {error}") from None
        if not np.isfinite(row).all():
            raise CorpusError(path, number, f"the vector of {word!r} is not finite")
        words[word] = number
        rows.append(row)
    if not width:
        raise CorpusError(path, None, "no vectors in it")
    return list(words), np.stack(rows) if rows else np.zeros((0, width), np.float32), dict(skipped)


def _is_number(field: bytes) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True
