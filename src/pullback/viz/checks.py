"""Trees and marginals as plain lists, checked once for every way to show them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def checked_heads(tokens: Sequence[str], heads: Sequence[int] | Any) -> list[int]:
    """The heads as a list of integers, 0 the root and 1 the first word: one for each token, and a tree.

    >>> checked_heads(["a", "b"], [2, 1])
    Traceback (most recent call last):
    ValueError: the heads [2, 1] are not a tree: word 1 ('a') does not reach the root
    """
    if isinstance(tokens, str):
        raise TypeError(f"tokens is the string {tokens!r}; pass its words, for example {tokens.split()!r}")
    given = heads.tolist() if hasattr(heads, "tolist") else list(heads)
    if len(given) != len(tokens):
        raise ValueError(f"there are {len(given)} heads for {len(tokens)} tokens; each token needs one")
    listed = []
    for word, head in enumerate(given, 1):
        if isinstance(head, bool) or head != int(head) or not 0 <= head <= len(given):
            raise ValueError(f"word {word} has head {head!r}; a head is 0 (the root) or a word from 1 to {len(given)}")
        listed.append(int(head))
    _refuse_cycles(tokens, listed)
    return listed


def checked_marginals(tokens: Sequence[str], marginals: Sequence[Sequence[float]] | Any) -> list[list[float]]:
    """Packed marginals `[n, n]` as lists, head x modifier with the root on the diagonal, all from 0 to 1."""
    rows = [row.tolist() if hasattr(row, "tolist") else row for row in marginals]
    n = len(tokens)
    sizes = {len(row) if isinstance(row, Sequence) else 0 for row in rows}
    if len(rows) != n or sizes - {n}:
        raise ValueError(f"marginals have {len(rows)} rows of {sorted(sizes)} for {n} tokens; they need shape [{n}, {n}]")
    for h, row in enumerate(rows):
        for m, value in enumerate(row):
            if not -1e-3 <= value <= 1.001:
                raise ValueError(f"marginals[{h}, {m}] is {value}; a marginal is from 0 to 1")
    return [[min(max(float(value), 0.0), 1.0) for value in row] for row in rows]


def _refuse_cycles(tokens: Sequence[str], heads: list[int]) -> None:
    reaches = {0}
    for word in range(1, len(heads) + 1):
        path = []
        while word not in reaches and word not in path:
            path.append(word)
            word = heads[word - 1]
        if word not in reaches:
            raise ValueError(
                f"the heads {heads} are not a tree: word {path[0]} ({tokens[path[0] - 1]!r}) does not reach the root"
            )
        reaches.update(path)
