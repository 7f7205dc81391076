"""The Stanford Sentiment Treebank: one bracket tree per line, with a label from 0 to 4 on each node.

    (3 (2 It) (4 (2 works) (2 .)))

The label of a sentence is the root's. Its words are the leaves as published: cased and PTB-escaped.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from pullback_study.corpora.files import CorpusError, is_one_tree, read_lines

NEUTRAL = 2
_LEAF = re.compile(r"\([0-4] ([^() ]+)\)")  # only spaces separate: some words hold a no-break space
_INNER = re.compile(r"(?:\([0-4] |\)| )*")


@dataclass(frozen=True)
class Sentence:
    """A sentence and its label: 0 very negative, 2 neutral, 4 very positive; or 0 and 1 after `binary`."""

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
    """The task of the paper: {0, 1} -> 0, {3, 4} -> 1; and the number of neutral sentences, which are left out.

    >>> binary([Sentence(("bad",), 1), Sentence(("so-so",), 2), Sentence(("good",), 4)])
    ([Sentence(tokens=('bad',), label=0), Sentence(tokens=('good',), label=1)], {'neutral': 1})
    """
    sentences = list(sentences)
    kept = [Sentence(each.tokens, int(each.label > NEUTRAL)) for each in sentences if each.label != NEUTRAL]
    return kept, {"neutral": len(sentences) - len(kept)}


def parse_tree(text: str) -> Sentence:
    """The leaves and the root's label of a bracket tree.

    >>> parse_tree("(3 (2 It) (4 (2 works) (2 .)))")
    Sentence(tokens=('It', 'works', '.'), label=3)
    """
    text = text.strip(" ")
    if not is_one_tree(re.findall(r"[()]|[^()]+", text)):
        raise ValueError("the brackets do not form one tree")
    leaves = tuple(_LEAF.findall(text))
    if not leaves or not _INNER.fullmatch(_LEAF.sub("", text)):
        raise ValueError("not a tree like (3 (2 It) (2 works)), with a label from 0 to 4 and one word or subtrees per node")
    return Sentence(leaves, int(text[1]))
