"""Latent trees of test sentences, kept in the directory of the run that made them.

    <run>/trees.jsonl      one line for each sentence:
        {"tokens": ["A", "taut", ...], "heads": [2, 0, ...], "mu": [[2, 1, 0.93], ...] or null, "label": "positive"}

Heads and arcs are numbered as treebanks do: 0 is the root, 1 the first word. `mu` lists the arcs [head, word, weight] of an
average structure, those of a noticeable weight; it is null where the model sees a single tree.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from pullback_study.runs.files import write_atomically
from pullback_study.trees.shape import depth

FILE = "trees.jsonl"
_NOTICEABLE = 0.005


def write_trees(run: Path, analyses: Iterable[Any]) -> None:
    """Keep the trees of a sample of sentences in a run's directory.

    Args:
        run: the directory.
        analyses: what a trained parser says about each sentence: `tokens`; `heads`, numbered as above; `mu`, what the decoder
            sees, packed `[n, n]` (head x word, the root on the diagonal), or None for the tree itself; and a `label`.
    """
    lines = []
    for analysis in analyses:
        packed = None if analysis.mu is None else _plain(analysis.mu)
        mu = None if packed is None or _is_tree(packed) else _arcs(packed)
        heads = [int(head) for head in _plain(analysis.heads)]
        line = {"tokens": list(analysis.tokens), "heads": heads, "mu": mu, "label": analysis.label or None}
        lines.append(json.dumps(line, ensure_ascii=False, allow_nan=False) + "\n")
    write_atomically(run / FILE, "".join(lines))


def read_trees(run: Path) -> tuple[list[dict[str, Any]], int]:
    """The trees of a run's directory, and how many lines are not trees: those are left out."""
    try:
        lines = (run / FILE).read_text(encoding="utf-8", errors="replace").split("\n")  # a word may hold other line breaks
    except OSError:
        return [], 0
    found = [_tree(line) for line in lines if line.strip()]
    good = [tree for tree in found if tree is not None]
    return good, len(found) - len(good)


def _tree(line: str) -> dict[str, Any] | None:
    try:
        row = json.loads(line)
        tokens, heads, mu = row["tokens"], row["heads"], row.get("mu")
        n = len(tokens)
        words = isinstance(tokens, list) and all(isinstance(token, str) for token in tokens)
        if not words or not n or len(heads) != n or not all(type(head) is int and 0 <= head <= n for head in heads):
            return None
        depth(heads)  # an error if these are not the heads of a tree
        arcs = None if mu is None else [[int(h), int(m), round(float(weight), 3)] for h, m, weight in mu]
        if arcs and not all(0 <= h <= n and 1 <= m <= n and 0 <= weight <= 1.001 for h, m, weight in arcs):
            return None
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError):
        return None
    label = row.get("label")
    return {"tokens": tokens, "heads": heads, "mu": arcs, "label": None if label is None else str(label)}


def _arcs(packed: Sequence[Sequence[float]]) -> list[list[float]]:
    return [
        [0 if h == m else h + 1, m + 1, round(float(weight), 4)]
        for m in range(len(packed))
        for h, weight in enumerate(row[m] for row in packed)
        if weight >= _NOTICEABLE
    ]


def _is_tree(packed: Sequence[Sequence[float]]) -> bool:
    return all(weight in (0, 1) for row in packed for weight in row)


def _plain(values: Any) -> Any:
    return values.tolist() if hasattr(values, "tolist") else values
