"""The Stanford Natural Language Inference corpus: one JSON object per line, with the binary parses of both sentences.

The words of a side are the leaves of its binary parse. Pairs on which the annotators did not agree have the gold
label "-"; `usable` leaves them out.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from pullback_study.corpora.files import CorpusError, is_one_tree, read_lines

LABELS = ("entailment", "neutral", "contradiction")
NO_LABEL = "-"


@dataclass(frozen=True, slots=True)
class Pair:
    """A premise, a hypothesis, and one of `LABELS`, or "-" if there is no gold label."""

    premise: tuple[str, ...]
    hypothesis: tuple[str, ...]
    label: str


def read_snli(path: Path) -> Iterator[Pair]:
    """The pairs of a file one by one: the whole corpus is never in memory."""
    for number, line in read_lines(path):
        if line.strip(" "):
            try:
                yield parse_pair(line)
            except (ValueError, RecursionError) as error:
                raise CorpusError(path, number, str(error)) from None


def usable(pairs: Iterable[Pair], dropped: Counter[str], *, max_tokens: int = 100) -> Iterator[Pair]:
    """The pairs of the task; `dropped` counts those that are left out, by rule.

    >>> dropped = Counter()
    >>> list(usable([Pair(("A", "dog"), ("A", "cat"), "-")], dropped)), dict(dropped)
    ([], {'no gold label': 1})
    """
    for pair in pairs:
        if pair.label == NO_LABEL:
            dropped["no gold label"] += 1
        elif not pair.premise or not pair.hypothesis:
            dropped["empty sentence"] += 1
        elif max(len(pair.premise), len(pair.hypothesis)) > max_tokens:
            dropped[f"more than {max_tokens} tokens"] += 1
        else:
            yield pair


def parse_pair(text: str) -> Pair:
    """A pair from its JSON object."""
    try:
        row = json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"not JSON: {error.msg} at column {error.colno}") from None
    if not isinstance(row, dict):
        raise ValueError(f"a JSON {type(row).__name__}, not an object")
    label = row.get("gold_label")
    if label not in (*LABELS, NO_LABEL):
        raise ValueError(f"the gold_label {label!r} is not one of {', '.join(LABELS)} or {NO_LABEL}")
    return Pair(_leaves(row, "sentence1_binary_parse"), _leaves(row, "sentence2_binary_parse"), label)


def _leaves(row: dict[str, object], key: str) -> tuple[str, ...]:
    parse = row.get(key)
    if not isinstance(parse, str):
        raise ValueError(f"{key} is missing, or not a string")
    pieces = [piece for piece in parse.split(" ") if piece]
    if ("(" in pieces or ")" in pieces) and not is_one_tree(pieces):
        raise ValueError(f"the brackets of {key} do not form one tree")
    words = tuple(piece for piece in pieces if piece not in ("(", ")"))
    for word in words:
        if "(" in word or ")" in word:  # the parser writes a sentence's own brackets as -LRB- and -RRB-
            raise ValueError(f"{key} has {word!r}; spaces should separate brackets from words")
    return words
