"""The definition of a recursion over spans: items, and how each is combined from smaller ones and from parts.

    Sum("between(i, j)", "right(i, k)", "left(k + 1, j)", k=("i", "j"))

says that between(i, j) combines right(i, k) and left(k + 1, j) for k = i ... j - 1. A rule without factors is an axiom, of
value 1. `part="h, m"` adds the score of a part. Indices are a variable, a number, or their sum.
"""

from __future__ import annotations

import copy
import re
from dataclasses import dataclass
from typing import NamedTuple


class Index(NamedTuple):
    """A variable plus a number; the variable "" is 0."""

    variable: str
    offset: int

    def __str__(self) -> str:
        if not self.variable:
            return str(self.offset)
        return self.variable + (f" {'+' if self.offset > 0 else '-'} {abs(self.offset)}" if self.offset else "")

    def plus(self, number: int) -> Index:
        return Index(self.variable, self.offset + number)

    def where(self, known: dict[str, Index]) -> Index:
        """The index with its variable replaced, if its value is known."""
        found = known.get(self.variable)
        return self if found is None else found.plus(self.offset)


class Term(NamedTuple):
    """An item at some indices."""

    item: str
    at: tuple[Index, ...]

    def __str__(self) -> str:
        return f"{self.item}({', '.join(map(str, self.at))})"

    def where(self, known: dict[str, Index]) -> Term:
        return Term(self.item, tuple(index.where(known) for index in self.at))


def index_of(text: str) -> Index:
    """From "k", "3" or "k + 1"."""
    found = re.fullmatch(r"\s*([a-z]\w*)?\s*([+-]?\s*\d+)?\s*", text)
    if found is None or not text.strip():
        raise ValueError(f"{text!r} is no index; write a variable, a number, or their sum, like 'k + 1'")
    return Index(found[1] or "", int((found[2] or "0").replace(" ", "")))


def term_of(text: str) -> Term:
    """From "right(i, k)"."""
    found = re.fullmatch(r"\s*(\w+)\(([^()]*)\)\s*", text)
    if found is None:
        raise ValueError(f"{text!r} is no item; write its name and indices, like 'right(i, k)'")
    return Term(found[1], tuple(map(index_of, found[2].split(","))))


class Sum:
    """A rule: an item is combined from products of at most two items.

    Args:
        goal: the item.
        factors: what is combined.
        part: the indices of the part whose score is added.
        only_first_unless: an option of the structure; where it is false, only the first term exists.
        over: the variable that is not in the goal, from its first value to the one behind its last.
    """

    def __init__(
        self,
        goal: str,
        *factors: str,
        part: str | None = None,
        only_first_unless: str | None = None,
        **over: tuple[str, str],
    ) -> None:
        self.goal, self.factors = term_of(goal), tuple(map(term_of, factors))
        self.part = None if part is None else tuple(map(index_of, part.split(",")))
        self.option = only_first_unless
        self.variable = next(iter(over), "")
        self.first, self.stop = map(index_of, over[self.variable]) if over else (Index("", 0), Index("", 1))
        if len(self.factors) > 2 or len(over) > 1:
            raise ValueError(f"the rule for {goal} has more than two factors or variables; give its pieces names of their own")
        if over and (self.part or len(self.factors) != 2):
            raise ValueError(f"the rule for {goal} sums over {self.variable}; it needs two factors, and no part")

    def beside(self, variable: str, offset: int) -> Sum:
        """The rule of another cell: with a variable plus a number."""
        known, other = {variable: Index(variable, offset)}, copy.copy(self)
        other.goal, other.factors = self.goal.where(known), tuple(factor.where(known) for factor in self.factors)
        other.part = None if self.part is None else tuple(index.where(known) for index in self.part)
        other.first, other.stop = self.first.where(known), self.stop.where(known)
        return other

    @property
    def axiom(self) -> bool:
        return not self.factors and self.part is None


@dataclass(frozen=True)
class Spans:
    """Rules for spans (i, j), 0 <= i <= j < n, shorter ones first; those of (i, i) are apart."""

    rules: tuple[Sum, ...]
    indices = ("i", "j")


@dataclass(frozen=True)
class Line:
    """Rules for positions j = 0 ... n - 1, one after the other; those of 0 come first."""

    rules: tuple[Sum, ...]
    indices = ("j",)


class Recursion:
    """All rules of a structure whose scores are `[n, n]`.

    Args:
        stages: in their order.
        goal: the item whose value is that of a whole example of size n.
        options: static arguments that rules refer to.
        wide: whether maxima are found in float64 whatever the scores' precision.
        abreast: how many cells of a row or column loops do at a time: they share a factor of each term, and do not wait for
            each other. Cells of few sums need more of them; what is compiled grows with their number.
    """

    def __init__(
        self, *stages: Spans | Line, goal: str, options: tuple[str, ...] = (), wide: bool = False, abreast: int = 2
    ) -> None:
        self.stages, self.goal, self.options, self.wide, self.abreast = stages, term_of(goal), options, wide, abreast
        self.rules = tuple(rule for stage in stages for rule in stage.rules)

    def rules_for(self, item: str) -> list[Sum]:
        return [rule for rule in self.rules if rule.goal.item == item]

    def is_axiom(self, term: Term) -> bool:
        """Whether an item at these indices is the number 1."""
        return any(r.axiom and r.goal.item == term.item and _same(r.goal.at, term.at) for r in self.rules)


def _same(pattern: tuple[Index, ...], at: tuple[Index, ...]) -> bool:
    """Whether indices have the form of others: numbers where those have numbers, and equal where those are equal."""
    pairs = list(zip(pattern, at, strict=True))
    numbers = all(p == x for p, x in pairs if not p.variable)
    return numbers and all(x == y for p, x in pairs for q, y in pairs if p == q)
