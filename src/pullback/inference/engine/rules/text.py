"""Generated text: lines with their indentation, and where items lie in memory."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from pullback.inference.engine.rules.definition import Index, Line, Recursion, Spans, Sum, Term


class Text:
    """Lines of Python."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._depth = 0

    def __call__(self, *lines: str) -> None:
        self.lines += ["    " * self._depth + line if line else "" for line in lines]

    @contextlib.contextmanager
    def block(self, head: str) -> Iterator[None]:
        """Lines one level deeper than a head such as `for ...:`."""
        self(head)
        self._depth += 1
        yield
        self._depth -= 1


def times(index: Index, factor: str) -> str:
    """The product of an index and a factor."""
    if not index.variable:
        return "0" if index.offset == 0 else f"{index.offset} * {factor}"
    return f"{index} * {factor}" if index.offset == 0 else f"({index}) * {factor}"


def difference(stop: Index, first: Index) -> str:
    """The expression stop - first."""
    number = stop.offset - first.offset
    if stop.variable == first.variable:
        return str(number)
    names = " - ".join(filter(None, [stop.variable, first.variable])) if stop.variable else f"-{first.variable}"
    return names + (f" {'+' if number > 0 else '-'} {abs(number)}" if number else "")


def between(first: Index | str, stop: Index | str) -> str:
    """The range of a loop."""
    return f"range({stop})" if str(first) == "0" else f"range({first}, {stop})"


class Memory:
    """Where the numbers of some items lie: charts of two items each, on both sides of the diagonal, and lines.

    A chart has n rows of `pitch` vectors: item (i, j) is at row i and column j + 1, or at row j and column i.
    """

    def __init__(self, prefix: str, items: list[tuple[str, int]]) -> None:
        self._sides: dict[str, tuple[str, bool]] = {}
        two, one = [item for item, dims in items if dims == 2], [item for item, dims in items if dims == 1]
        self.charts = [f"{prefix}{i}" for i in range((len(two) + 1) // 2)]
        self.lines = [f"{prefix}_{item}" for item in one]
        for i, item in enumerate(two):
            self._sides[item] = self.charts[i // 2], i % 2 == 0
        for item, line in zip(one, self.lines, strict=True):
            self._sides[item] = line, True

    def __contains__(self, item: str) -> bool:
        return item in self._sides

    def name(self, item: str) -> str:
        """The array that has the item."""
        return self._sides[item][0]

    def place(self, term: Term) -> str:
        """The flat index of the item's vector."""
        if len(term.at) == 1:
            return times(term.at[0], "lanes")
        row, column = self._corner(term)
        return f"{times(row, 'row')} + {times(column, 'lanes')}".removeprefix("0 + ").removesuffix(" + 0") or "0"

    def step(self, term: Term, variable: str) -> str:
        """How much the flat index grows with a variable."""
        if len(term.at) == 1:
            return "lanes"
        row, column = self._corner(term)
        steps = [size for index, size in ((row, "row"), (column, "lanes")) if index.variable == variable]
        return " + ".join(steps)

    def _corner(self, term: Term) -> tuple[Index, Index]:
        i, j = term.at
        return (i, j.plus(1)) if self._sides[term.item][1] else (j, i)


class Analysis:
    """The facts about the rules of a recursion that its loops need."""

    def __init__(self, recursion: Recursion) -> None:
        self.recursion = recursion
        dims = {rule.goal.item: len(rule.goal.at) for rule in recursion.rules}
        stored, pulled = {recursion.goal.item}, set[str]()
        for rule in recursion.rules:
            if rule.variable:
                pulled.add(rule.goal.item)
                stored |= {factor.item for factor in rule.factors}
        self.inside = Memory("inside", [(item, d) for item, d in dims.items() if item in stored])
        self.outside = Memory("outside", [(item, d) for item, d in dims.items() if item in pulled | {recursion.goal.item}])
        self.values = Memory("value", list(dims.items()))
        self.sums = [rule for rule in recursion.rules if rule.variable]
        self.choices = {rule.goal.item: f"choice{i}" for i, rule in enumerate(self.sums)}

    @staticmethod
    def general(stage: Spans | Line) -> list[Sum]:
        """The rules of all cells but the first ones."""
        return [rule for rule in stage.rules if not Analysis.special(stage, rule)]

    @staticmethod
    def special(stage: Spans | Line, rule: Sum) -> bool:
        """Whether a rule is of the cells (i, i), or of the first position, only."""
        at = rule.goal.at
        return len(at) == 2 and at[0] == at[1] if isinstance(stage, Spans) else not at[0].variable

    @staticmethod
    def cell(stage: Spans | Line) -> tuple[Index, ...]:
        return tuple(Index(name, 0) for name in stage.indices)

    def ends(self, rule: Sum, cell: tuple[Index, ...]) -> tuple[Term | None, Term | None]:
        """The first and the last term of a sum, where they are an item of the same cell times 1."""
        if rule.option:
            return None, None
        found = []
        for value in (rule.first, rule.stop.plus(-1)):
            factors = [factor.where({rule.variable: value}) for factor in rule.factors]
            own = [f for f in factors if f.at == cell and not self.recursion.is_axiom(f)]
            rest = [f for f in factors if f not in own]
            found.append(own[0] if own and all(map(self.recursion.is_axiom, rest)) else None)
        return found[0], found[1]


def part_place(rule: Sum, known: dict[str, Index] | None = None) -> str:
    """The flat index of the vector of a rule's part."""
    assert rule.part is not None
    row, column = (index.where(known or {}) for index in rule.part)
    return f"{times(row, 'across')} + {times(column, 'lanes')}"
