"""CoNLL-U: ten columns per word, a blank line after each sentence; universaldependencies.org/format.html.

The words of a sentence are its syntactic words, numbered from 1. Multiword tokens (`3-4`) and empty nodes (`8.1`) are
no part of the basic tree and are skipped.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pullback_study.corpora.files import CorpusError, read_lines

COLUMNS = 10
_NOT_A_WORD = re.compile(r"\d+-\d+|\d+\.\d+")
_NUMBER = re.compile(r"[0-9]{1,9}")


@dataclass(frozen=True)
class Parse:
    """A sentence with its dependency tree.

    Args:
        tokens: the n words.
        heads: the number of each word's head, from 1; 0 is the root.
        relations: the label of each word's arc.
        tags: universal parts of speech.
        name: the `sent_id`, or "".
    """

    tokens: tuple[str, ...]
    heads: tuple[int, ...]
    relations: tuple[str, ...]
    tags: tuple[str, ...]
    name: str = ""


Row = tuple[int, list[str]]  # the number of the line, and its columns


def read_conllu(path: Path) -> list[Parse]:
    """The sentences of a treebank, plain or gzipped."""
    return [_parse(path, name, rows) for name, rows in _sentences(path)]


def _sentences(path: Path) -> Iterator[tuple[str, list[Row]]]:
    rows: list[Row] = []
    name = ""
    for number, line in read_lines(path):
        if not line.strip():
            if rows:
                yield name, rows
            rows, name = [], ""
        elif line.startswith("#"):
            key, _, value = line[1:].partition("=")
            name = value.strip() if key.strip() == "sent_id" else name
        else:
            columns = line.split("\t")
            if len(columns) != COLUMNS:
                raise CorpusError(path, number, f"{len(columns)} columns, separated by tabs; CoNLL-U has {COLUMNS}")
            if not _NOT_A_WORD.fullmatch(columns[0]):
                if columns[0] != str(len(rows) + 1):
                    raise CorpusError(path, number, f"word {columns[0]!r} where word {len(rows) + 1} should be")
                rows.append((number, columns))
    if rows:
        yield name, rows


def _parse(path: Path, name: str, rows: list[Row]) -> Parse:
    heads = []
    for number, columns in rows:
        if not _NUMBER.fullmatch(columns[6]) or int(columns[6]) > len(rows):
            raise CorpusError(path, number, f"the head {columns[6][:20]!r} is not a number from 0 to {len(rows)}")
        heads.append(int(columns[6]))
    for word, (number, _) in enumerate(rows, 1):
        at, steps = heads[word - 1], 0
        while at and steps < len(heads):
            at, steps = heads[at - 1], steps + 1
        if at:
            raise CorpusError(path, number, f"the heads of word {word} run in a circle and never reach the root")
    tokens, tags, relations = (tuple(columns[k] for _, columns in rows) for k in (1, 3, 7))
    return Parse(tokens, tuple(heads), relations, tags, name)
