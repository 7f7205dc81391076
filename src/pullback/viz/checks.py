"""Structures and marginals as plain lists, checked once for every way to show them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def checked_heads(tokens: Sequence[str], heads: Sequence[int] | Any) -> list[int]:
    """The heads as a list of integers, 0 the root and 1 the first word: one for each token, and a tree. Entries of -1 after
    those of the tokens are padding.

    >>> checked_heads(["a", "b"], [2, 1])
    Traceback (most recent call last):
    ValueError: the heads [2, 1] are not a tree: word 1 ('a') does not reach the root
    """
    refuse_string(tokens)
    given = one_each(tokens, heads, "heads")
    listed = []
    for word, head in enumerate(given, 1):
        found = whole(head)
        if found is None or not 0 <= found <= len(given):
            raise ValueError(f"word {word} has head {head!r}; a head is 0 (the root) or a word from 1 to {len(given)}")
        listed.append(found)
    _refuse_cycles(tokens, listed)
    return listed


def checked_marginals(tokens: Sequence[str], marginals: Sequence[Sequence[float]] | Any) -> list[list[float]]:
    """Packed marginals `[n, n]` as lists, head x modifier with the root on the diagonal, all from 0 to 1."""
    return checked_matrix(len(tokens), len(tokens), marginals)


def checked_matrix(n: int, m: int, marginals: Sequence[Sequence[float]] | Any) -> list[list[float]]:
    """Marginals `[n, m]` as lists, all from 0 to 1."""
    rows = [row.tolist() if hasattr(row, "tolist") else row for row in marginals]
    sizes = {len(row) if isinstance(row, Sequence) else 0 for row in rows}
    if len(rows) != n or sizes - {m}:
        raise ValueError(f"marginals have {len(rows)} rows of {sorted(sizes)}; they need shape [{n}, {m}]")
    for h, row in enumerate(rows):
        for m, value in enumerate(row):
            if not -1e-3 <= value <= 1.001:
                raise ValueError(f"marginals[{h}, {m}] is {value}; a marginal is from 0 to 1")
    return [[min(max(float(value), 0.0), 1.0) for value in row] for row in rows]


def plain(values: Any) -> list[Any]:
    """A sequence, an array or a tensor as a list."""
    return values.tolist() if hasattr(values, "tolist") else list(values)


def one_each(tokens: Sequence[str], values: Any, what: str) -> list[Any]:
    """A value per token; more of them are padding if they are -1."""
    given = plain(values)
    if len(given) < len(tokens) or any(whole(value) != -1 for value in given[len(tokens) :]):
        raise ValueError(f"there are {len(given)} {what} for {len(tokens)} tokens; each token needs one")
    return given[: len(tokens)]


def whole(value: Any) -> int | None:
    """A whole number as an integer, None for anything else."""
    try:
        return int(value) if not isinstance(value, bool) and value == int(value) else None
    except (TypeError, ValueError, OverflowError):  # such as None, a list, NaN or infinity
        return None


def refuse_string(tokens: Sequence[str]) -> None:
    if isinstance(tokens, str):
        raise TypeError(f"tokens is the string {tokens!r}; pass its words, for example {tokens.split()!r}")


def checked_spans(tokens: Sequence[str], spans: Sequence[Sequence[Any]] | Any) -> list[tuple[int, int, str]]:
    """Spans (first, last) or (first, last, label) as triples, inner ones first: inside the sentence, and none crosses another.

    >>> checked_spans(["a", "b", "c"], [(0, 1), (1, 2)])
    Traceback (most recent call last):
    ValueError: the spans (0, 1) and (1, 2) cross; spans must be nested or apart
    """
    refuse_string(tokens)
    found: list[tuple[int, int, str]] = []
    for span in spans:
        given = plain(span)
        places = [whole(place) for place in given[:2]]
        if len(given) not in (2, 3) or None in places:
            raise ValueError(f"a span is {given}; it must be (first, last) or (first, last, label), positions from 0")
        first, last, label = (*given, "")[:3]
        if not 0 <= first <= last < len(tokens):
            raise ValueError(f"the span ({first}, {last}) is outside the {len(tokens)} tokens, whose positions start at 0")
        found.append((int(first), int(last), str(label)))
    for a, b, _ in found:
        for c, d, _ in found:
            if a < c <= b < d:
                raise ValueError(f"the spans ({a}, {b}) and ({c}, {d}) cross; spans must be nested or apart")
    return sorted(found, key=lambda span: span[1] - span[0])


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
