"""The Stanford Natural Language Inference corpus: a JSON object a line, with the sentences' binary parses.

The words of a side are the leaves of its binary parse. Pairs on which the annotators did not agree have the gold
label "-"; they are read, and left out of the task by `usable`.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from pullback_study.corpora.files import CorpusError, read_lines

LABELS = ("entailment", "neutral", "contradiction")
NO_LABEL = "-"
_SURROGATE = re.compile("[\ud800-\udfff]")  # JSON can spell one alone; UTF-8 cannot


@dataclass(frozen=True, slots=True)
class Pair:
    """A premise, a hypothesis, and one of `LABELS`, or "-" where there is no gold label."""

    premise: tuple[str, ...]
    hypothesis: tuple[str, ...]
    label: str


def read_snli(path: Path) -> Iterator[Pair]:
    """The pairs of a file one by one: the whole corpus never is in memory."""
    for number, line in read_lines(path):
        if line.strip(" "):
            try:
                yield parse_pair(line)
            except ValueError as error:
                raise CorpusError(path, number, str(error)) from None


def usable(pairs: Iterable[Pair], dropped: Counter[str], *, max_tokens: int = 100) -> Iterator[Pair]:
    """The pairs of the task; `dropped` counts, by rule, those that are left out.

    >>> from collections import Counter
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
    """A pair from its JSON object; a ValueError says what is wrong with it."""
    try:
        row = json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"not JSON: {error.msg} at column {error.colno}") from None
    except RecursionError:
        raise ValueError("not a pair: its JSON is nested too deeply") from None
    if not isinstance(row, dict):
        raise ValueError(f"a JSON {type(row).__name__}, not an object")
    label = row.get("gold_label")
    if label not in LABELS and label != NO_LABEL:
        raise ValueError(f"the gold_label {label!r} is not one of {', '.join(LABELS)} or {NO_LABEL}")
    return Pair(_leaves(row, "sentence1_binary_parse"), _leaves(row, "sentence2_binary_parse"), label)


def _leaves(row: dict[str, object], key: str) -> tuple[str, ...]:
    parse = row.get(key)
    if not isinstance(parse, str):
        raise ValueError(f"no {key}" if parse is None else f"{key} is not a string")
    if not parse.isascii() and (surrogate := _SURROGATE.search(parse)):
        raise ValueError(f"{key} holds half a character, \\u{ord(surrogate[0]):x}")
    pieces = [piece for piece in parse.split(" ") if piece]
    if pieces.count("(") != pieces.count(")"):
        raise ValueError(f"{key} has {pieces.count('(')} opening and {pieces.count(')')} closing brackets")
    if "(" in pieces:
        _check_tree(key, pieces)
    words = [piece for piece in pieces if piece not in ("(", ")")]
    for word in words:
        if "(" in word or ")" in word:  # the parser writes a sentence's own brackets as -LRB- and -RRB-
            raise ValueError(f"{key} has {word!r}; spaces should separate brackets from words")
    return tuple(words)


def _check_tree(key: str, pieces: list[str]) -> None:
    """The first bracket is closed by the last piece, and by none before it."""
    depth = 0
    for rest, piece in zip(range(len(pieces) - 1, -1, -1), pieces, strict=True):
        if piece == "(":
            depth += 1
        elif piece == ")":
            depth -= 1
        if depth < 0:
            raise ValueError(f"{key} closes a bracket that is not open")
        if depth == 0 and rest:
            raise ValueError(f"{key} is not one tree: it goes on after its end, {piece!r}")
