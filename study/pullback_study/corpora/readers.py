"""The publishers' formats: SST's bracket trees, SNLI's JSON lines, CoNLL-U, and word vectors.

The checksums of SST and SNLI are pinned, so their readers only notice files that are something else. Treebanks and vectors
may be the user's own: they are checked. Vectors are NumPy's `.npz`, or GloVe's text format with `word v1 ... vd` on each
line. A token is looked up as it is, then PTB-unescaped, then lower-cased, then both.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np

from pullback_study.corpora.files import CorpusError, read_lines

LABELS = ("entailment", "neutral", "contradiction")
_LEAF = re.compile(r"\([0-4] ([^() ]+)\)")  # only spaces separate: some words hold a no-break space
_COLUMNS = 10
_NOT_A_WORD = re.compile(r"\d+-\d+|\d+\.\d+")  # multiword tokens and empty nodes are no part of the basic tree

_HEADER = re.compile(r"[0-9]+ ([0-9]+)")  # the first line of word2vec's text format: number and width of the vectors
_ESCAPES = {
    "-LRB-": "(", "-RRB-": ")", "-LSB-": "[", "-RSB-": "]", "-LCB-": "{", "-RCB-": "}",
    "``": '"', "''": '"', "\\/": "/", "\\*": "*",
}  # fmt: skip


class Example(NamedTuple):
    """The tokens of each side, and the label."""

    sentences: tuple[tuple[str, ...], ...]
    label: int


def read_sst(path: Path, dropped: Counter[str], max_tokens: int = 100) -> Iterator[Example]:
    """The sentences of the Stanford Sentiment Treebank: 0 negative, 1 positive. Neutral ones are left out and counted.

    A line is a tree with a label from 0 to 4 on each node, `(3 (2 It) (4 (2 works) (2 .)))`. The label of a sentence is the
    root's; its words are the leaves as published: cased and PTB-escaped.
    """
    dropped["neutral"] += 0
    for number, line in read_lines(path):
        if line.strip():
            leaves = tuple(_LEAF.findall(line))
            if not leaves or not re.match(r"\([0-4] ", line):
                raise CorpusError(path, number, "not a tree like (3 (2 It) (2 works))")
            if line[1] == "2":
                dropped["neutral"] += 1
            else:
                yield Example((leaves,), int(line[1] > "2"))


def read_snli(path: Path, dropped: Counter[str], max_tokens: int = 100) -> Iterator[Example]:
    """The pairs of SNLI: a premise, a hypothesis, and a number in `LABELS`. The words are the leaves of the binary parses.

    Pairs on which the annotators did not agree (`-`), or with a side of more than `max_tokens`, are left out and counted.
    """
    for number, line in read_lines(path):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            parses = (row[f"sentence{side}_binary_parse"].split(" ") for side in (1, 2))
            sides = tuple(tuple(piece for piece in parse if piece not in ("", "(", ")")) for parse in parses)
            label = -1 if row["gold_label"] == "-" else LABELS.index(row["gold_label"])
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise CorpusError(path, number, f"not a pair of SNLI: {error!r}") from None
        if label < 0:
            dropped["no gold label"] += 1
        elif not all(sides):
            dropped["empty sentence"] += 1
        elif max(map(len, sides)) > max_tokens:
            dropped[f"more than {max_tokens} tokens"] += 1
        else:
            yield Example(sides, label)


class Parse(NamedTuple):
    """A sentence with its dependency tree; a head is the number of a word, from 1, or 0 for the root."""

    tokens: tuple[str, ...]
    heads: tuple[int, ...]
    tags: tuple[str, ...]  # universal parts of speech


def read_conllu(path: Path) -> list[Parse]:
    """The sentences of a treebank in CoNLL-U: ten columns per word, a blank line after each sentence."""
    found: list[Parse] = []
    rows: list[list[str]] = []
    for number, line in read_lines(path):
        if not line.strip():
            found += [_parse(path, number, rows)] if rows else []
            rows = []
        elif not line.startswith("#"):
            columns = line.split("\t")
            if len(columns) != _COLUMNS:
                raise CorpusError(path, number, f"columns separated by tabs: {len(columns)}; CoNLL-U has {_COLUMNS}")
            if not _NOT_A_WORD.fullmatch(columns[0]):
                rows.append(columns)
    return found + ([_parse(path, number, rows)] if rows else [])


def _parse(path: Path, end: int, rows: list[list[str]]) -> Parse:
    """The sentence that ends before a line."""
    tokens, tags, given = (tuple(row[k] for row in rows) for k in (1, 3, 6))
    numbers = [str(number) for number in range(len(rows) + 1)]
    if [row[0] for row in rows] != numbers[1:] or not set(given) <= set(numbers):
        raise CorpusError(path, end, f"words must be numbered from 1 and have heads from 0 to {len(rows)}; not so in the "
                          "sentence that ends here")  # fmt: skip
    heads = tuple(map(int, given))
    reached = {0}
    for _ in rows:
        reached |= {word for word, head in enumerate(heads, 1) if head in reached}
    if len(reached) <= len(rows):
        raise CorpusError(path, end, "some heads of the sentence that ends here form a cycle and never reach the root")
    return Parse(tokens, heads, tags)


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
    """The spellings under which a token is looked up, best first."""
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
            if arrays["words"].dtype.kind != "U" or arrays["words"].ndim != 1:
                raise ValueError(f"`words` is an array of {arrays['words'].dtype} with shape {list(arrays['words'].shape)}")
            words, matrix = arrays["words"].tolist(), arrays["vectors"].astype(np.float32)
        keep = [row for row, word in enumerate(words) if wanted is None or word in wanted]
        return [words[row] for row in keep], matrix.reshape(len(words), matrix.shape[1])[keep]
    except Exception as error:  # NumPy raises a dozen types for damaged files
        reason = f"cannot be read as an .npz file with strings `words` [V] and numbers `vectors` [V, d]: {error}"
        raise CorpusError(path, None, reason) from None


def _read_text(path: Path, wanted: set[str] | None) -> tuple[list[str], np.ndarray]:
    """Only the width of lines that are not wanted is looked at: GloVe 840B has 2.2 million of them."""
    rows: dict[str, np.ndarray] = {}
    width = 0
    for number, line in read_lines(path):
        line = line.rstrip(" ")
        if number == 1 and (header := _HEADER.fullmatch(line)):
            width = int(header[1])
            continue
        count = line.count(" ")
        width = width or count
        if count < max(width, 1):
            raise CorpusError(path, number, f"{count} numbers after the word; the file's vectors have {width}")
        word, _, numbers = line.partition(" ")
        if count == width and (wanted is None or word in wanted):
            try:
                rows.setdefault(word, np.array(numbers.split(" ")).astype(np.float32))
            except ValueError as error:
                raise CorpusError(path, number, f"the vector of {word!r}: {error}") from None
    if not width:
        raise CorpusError(path, None, "no vectors in it")
    return list(rows), np.stack(list(rows.values())) if rows else np.zeros((0, width), np.float32)
