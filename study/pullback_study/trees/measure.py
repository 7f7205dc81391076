"""Trained parsers on a treebank: their trees and measures, and files of both."""

from __future__ import annotations

import dataclasses
import json
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pullback.viz import tree_conllu
from pullback_study.corpora import Parse
from pullback_study.runs import write_atomically
from pullback_study.trees.agreement import Trees
from pullback_study.trees.drawing import Analysis
from pullback_study.trees.treebank import Agreement

Tokens = tuple[str, ...]


def up_to(parses: Sequence[Parse], max_length: int | None) -> list[Parse]:
    """The sentences of at most `max_length` words; an error if none is left."""
    kept = [parse for parse in parses if max_length is None or len(parse.tokens) <= max_length]
    if not parses:
        raise ValueError("the treebank has no sentences")
    if not kept:
        raise ValueError(f"none of the {len(parses)} sentences has at most {max_length} words; use a larger --max-length")
    return kept


def parse_all(parse: Callable[[list[Tokens]], Sequence[Analysis]], sentences: Sequence[Tokens]) -> list[Analysis]:
    """The analyses of many sentences, in their order; parsed in order of length, so that little is padding."""
    order = sorted(range(len(sentences)), key=lambda i: len(sentences[i]))
    found = dict(zip(order, parse([sentences[i] for i in order]), strict=True))
    return [found[i] for i in range(len(sentences))]


def coverage(sentences: Sequence[Tokens], unknown: set[str]) -> float:
    """The share of words, each time they occur, that are not among the unknown ones.

    >>> coverage([("A", "fun", "film"), ("film",)], unknown={"fun"})
    0.75
    """
    counts = Counter(token for tokens in sentences for token in tokens)
    return 1 - sum(counts[token] for token in unknown) / max(counts.total(), 1)


def write_measures(folder: Path, parses: Sequence[Parse], systems: Mapping[str, Trees], rows: Sequence[Agreement]) -> None:
    """`agreement.json`, and the trees of each system as CoNLL-U with the treebank's sentence names."""
    content = json.dumps([_plain(dataclasses.asdict(row)) for row in rows], indent=1, allow_nan=False)
    write_atomically(folder / "agreement.json", content + "\n")
    for name, trees in systems.items():
        sentences = (
            tree_conllu(parse.tokens, heads, comments={"sent_id": parse.name, "model": name})
            for parse, heads in zip(parses, trees, strict=True)
        )
        write_atomically(folder / f"{name.replace(' ', '-')}.conllu", "".join(sentences))


def _plain(value: Any) -> Any:
    """Scores as objects with names, and what is not a number as null."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, tuple):
        return {"value": _plain(value[0]), "low": _plain(value[1]), "high": _plain(value[2])}
    return None if isinstance(value, float) and math.isnan(value) else value
