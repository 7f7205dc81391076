"""Expressions of ListOps: drawing, evaluating and reading them, and their gold dependency trees.

    [MAX 2 9 [MIN 4 7 ] 0 ]   has the value 9 and the depth 2

Every argument is an operator with probability 1/4, down to a given depth, and a digit otherwise; an operator has 2 to 5
arguments. MED is the median, rounded down between two numbers; SM, which the official set d20s has in addition, is the sum
modulo 10.
"""

from __future__ import annotations

import random
import statistics
from collections.abc import Callable, Sequence

CLOSE = "]"
OPERATORS: dict[str, Callable[[Sequence[int]], int]] = {
    "[MIN": min,
    "[MAX": max,
    "[MED": lambda values: int(statistics.median(values)),
    "[SM": lambda values: sum(values) % 10,
}
DRAWN = ("[MIN", "[MAX", "[MED")
TOKENS = (*DRAWN, CLOSE, *(str(digit) for digit in range(10)))
"""The vocabulary of the task, 14 tokens."""
OPERATOR_PROBABILITY = 0.25
ARGUMENTS = (2, 5)
ALWAYS = (4, 4)
"""Where closing brackets are left out, every operator has as many arguments, so that the tokens still decide the tree."""
_TRIES = 300  # of each expression, before its depth and its length count as too hard to meet


def heads(tokens: Sequence[str]) -> list[int]:
    """For each token, the position of the operator that it belongs to; the first token's own position, which is the root.

    >>> heads(["[MAX", "2", "[MIN", "4", "7", "]", "0", "]"])
    [0, 0, 0, 2, 2, 2, 0, 0]
    """
    found: list[int] = []
    opened: list[int] = []
    for position, token in enumerate(tokens):
        if not opened and position > 0:
            raise ValueError(f"{' '.join(tokens)!r} continues after its end, at token {position}")
        found.append(opened[-1] if opened else position)
        if token in OPERATORS:
            opened.append(position)
        elif token == CLOSE:
            opened.pop()
    if opened:
        raise ValueError(f"{' '.join(tokens)!r} has an operator without a closing bracket")
    return found


def executed(tokens: Sequence[str], owners: Sequence[int]) -> int | None:
    """What a tree makes of an expression by the exact rules; None if it makes nothing of it. Gold heads make its value.

    An operator is applied to the digits and operators whose head it is. What hangs on a digit or on a closing bracket is not
    computed, and an operator without arguments has no value.

    >>> tokens = "[MAX 2 [MIN 4 7 ] 0 ]".split()
    >>> executed(tokens, heads(tokens))
    4
    >>> executed(tokens, [0, 0, 7, 2, 2, 2, 0, 0])      # [MIN 4 7 ] hangs on a bracket
    2
    """
    arguments: dict[int, list[int]] = {}
    for position, owner in enumerate(owners):
        if position and tokens[position] != CLOSE:
            arguments.setdefault(owner, []).append(position)

    def worth(position: int) -> int | None:
        token = tokens[position]
        if token not in OPERATORS:
            return int(token)
        values = [worth(each) for each in arguments.get(position, [])]
        known = [value for value in values if value is not None]
        return OPERATORS[token](known) if known and len(known) == len(values) else None

    return worth(0)


def depth(tokens: Sequence[str]) -> int:
    """How many operators are nested.

    >>> depth("[MAX 2 [MIN 4 7 ] 0 ]".split())
    2
    """
    deepest = now = 0
    for token in tokens:
        now += (token in OPERATORS) - (token == CLOSE)
        deepest = max(deepest, now)
    return deepest


def draw(
    depths: Sequence[int], count: int, *, tokens: int, seed: str, known: set[str] | None = None,
    arguments: tuple[int, int] = ARGUMENTS,
) -> list[list[str]]:  # fmt: skip
    """Distinct expressions of at most so many tokens, as many of each depth (up to one), in random order.

    Those that are `known` are not drawn, and those that are drawn are added; an operator has as many `arguments` at least, and
    at most. Raises `ValueError` if there are not that many expressions, or too few to be found.
    """
    generator, seen = random.Random(seed), set() if known is None else known
    found: list[list[str]] = []
    for i, each in enumerate(depths):
        wanted = count // len(depths) + (i < count % len(depths))
        found += _of_depth(each, wanted, tokens, generator, seen, arguments)
    generator.shuffle(found)
    return found


def _of_depth(
    deep: int, wanted: int, limit: int, generator: random.Random, seen: set[str], arguments: tuple[int, int]
) -> list[list[str]]:
    found: list[list[str]] = []
    tries = 0
    while len(found) < wanted:
        tries += 1
        if tries > _TRIES * (wanted + _TRIES):
            raise ValueError(
                f"found {len(found)} of {wanted} distinct expressions of depth {deep} with at most {limit} tokens, then gave "
                f"up; use fewer expressions, less depth or more tokens"
            )
        drawn: list[str] = []
        if not _operator(drawn, deep, limit, generator, arguments) or depth(drawn) != deep:
            continue
        text = " ".join(drawn)
        if text not in seen:
            seen.add(text)
            found.append(drawn)
    return found


def _operator(into: list[str], deep: int, limit: int, generator: random.Random, arguments: tuple[int, int]) -> bool:
    """Append an operator with its arguments; False if there are more than `limit` tokens."""
    into.append(generator.choice(DRAWN))
    for _ in range(generator.randint(*arguments)):
        if deep > 1 and generator.random() < OPERATOR_PROBABILITY:
            if not _operator(into, deep - 1, limit, generator, arguments):
                return False
        else:
            into.append(str(generator.randrange(10)))
    into.append(CLOSE)
    return len(into) <= limit
