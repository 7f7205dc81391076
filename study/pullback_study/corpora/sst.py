"""The Stanford Sentiment Treebank: a bracket tree a line, a label from 0 to 4 on each node.

    (3 (2 It) (4 (2 works) (2 .)))

The sentence's label is the root's; its words are the leaves, as published: cased and PTB-escaped.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from pullback_study.corpora.files import CorpusError, read_lines

LABELS = ("0", "1", "2", "3", "4")
NEUTRAL = 2


@dataclass(frozen=True)
class Sentence:
    """A sentence and its label: 0 very negative, 2 neutral, 4 very positive; or 0 and 1, once `binary`."""

    tokens: tuple[str, ...]
    label: int


def read_sst(path: Path) -> list[Sentence]:
    """The sentences of a file of trees, with their five labels."""
    sentences = []
    for number, line in read_lines(path):
        if line.strip(" "):
            try:
                sentences.append(parse_tree(line))
            except ValueError as error:
                raise CorpusError(path, number, str(error)) from None
    return sentences


def binary(sentences: Iterable[Sentence]) -> tuple[list[Sentence], dict[str, int]]:
    """The task of the paper: {0, 1} -> 0, {3, 4} -> 1, and how many neutral sentences that leaves out.

    >>> binary([Sentence(("bad",), 1), Sentence(("so-so",), 2), Sentence(("good",), 4)])
    ([Sentence(tokens=('bad',), label=0), Sentence(tokens=('good',), label=1)], {'neutral': 1})
    """
    sentences = list(sentences)
    kept = [Sentence(each.tokens, int(each.label > NEUTRAL)) for each in sentences if each.label != NEUTRAL]
    return kept, {"neutral": len(sentences) - len(kept)}


_PIECES = re.compile(r"[()]|[^() ]+")  # spaces alone separate: some words hold a no-break space


def parse_tree(text: str) -> Sentence:
    """The leaves and the root's label of a bracket tree; a ValueError says what is wrong with it.

    >>> parse_tree("(3 (2 It) (4 (2 works) (2 .)))")
    Sentence(tokens=('It', 'works', '.'), label=3)
    """
    tokens: list[str] = []
    root: int | None = None
    open_nodes: list[list[str]] = []  # of each open node its label, then its word or a "(" for each child
    for piece in _PIECES.findall(text):
        node = open_nodes[-1] if open_nodes else None
        if piece == "(":
            if root is not None and node is None:
                raise ValueError("a second tree after the end of the first")
            if node is not None:
                if not node:
                    raise ValueError("a bracket where a label should be")
                if node[1:] and node[-1] != "(":
                    raise ValueError(f"the node of {node[-1]!r} holds a word and another node")
                node.append("(")
            open_nodes.append([])
        elif node is None:
            raise ValueError("a closing bracket too many" if piece == ")" else f"{piece!r} outside the brackets")
        elif piece == ")":
            if len(node) < 2:
                raise ValueError("a node without a word or another node in it")
            open_nodes.pop()
        elif not node:
            if piece not in LABELS:
                raise ValueError(f"the label {piece} is not one of 0 to 4")
            root = int(piece) if root is None else root
            node.append(piece)
        elif len(node) > 1:
            raise ValueError(f"{piece!r} is a second entry in the node of a word")
        else:
            node.append(piece)
            tokens.append(piece)
    if open_nodes:
        raise ValueError(f"{len(open_nodes)} brackets are not closed")
    if root is None:
        raise ValueError("no tree")
    return Sentence(tuple(tokens), root)
