"""The loops of the outside pass over weights: each outside value is a sum over the item's uses."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import NamedTuple

from pullback.inference.engine.rules.definition import Index, Line, Spans, Sum, Term
from pullback.inference.engine.rules.inside import arrays
from pullback.inference.engine.rules.text import Analysis, Text, between, part_place, times

_FREE = "t"


class Use(NamedTuple):
    """The summand of one use in the outside value of an item (p, q): a sum over `variable`, or one product if that is "".

    Attributes:
        goal: the item that is built, whose outside value is a factor.
        other: the other factor.
        variable: what the sum goes over.
        first: its first value.
        stop: the one behind its last.
        condition: under which the use exists, or "".
        own: whether another term is the outside value of an item of the same cell, times 1; it is added in the end.
    """

    goal: Term
    other: Term
    variable: str
    first: Index
    stop: Index
    condition: str
    own: bool = False


def outside(text: Text, analysis: Analysis) -> None:
    """Write `outside`."""
    names = ["weights", *arrays(analysis.inside), *arrays(analysis.outside), "seeds"]
    text("", "", "@called")
    with text.block(f"def outside({', '.join(['n', 'side', 'lanes', *analysis.recursion.options, *names, 'peak'])}):"):
        text(
            '"""Fill the outside values over Z, from 1/Z at each example\'s size in `seeds`; marginals replace the weights.',
            "",
            "Returns the largest value, at least `peak`.",
            '"""',
            "row, across = pitch_of(n) * lanes, side * lanes",
        )
        for stage in reversed(analysis.recursion.stages):
            _Outside(text, analysis, stage).write()
        text("return peak")


class _Outside:
    def __init__(self, text: Text, analysis: Analysis, stage: Spans | Line) -> None:
        self.text, self.analysis, self.stage = text, analysis, stage
        self.cell, self.suffix = analysis.cell(stage), ""

    def write(self) -> None:
        rules = self.analysis.general(self.stage)
        if isinstance(self.stage, Line):
            with self.text.block("for j in range(n - 1, -1, -1):"):
                self._cells([self.cell], rules, "")
            return
        parts = {r.goal.item: r.part for r in self.stage.rules if self.analysis.special(self.stage, r) and r.part}
        for rule in rules:  # the cells (i, i) are like the others: nothing reads what is written there beyond them
            own = rule.part and tuple(index.where({"j": Index("i", 0)}) for index in rule.part)
            assert parts.get(rule.goal.item) in (None, own)
        abreast, last = self.analysis.recursion.abreast, "i - 1" if parts else "i"
        # the last rows may be none: what is read for them lies in the same memory, and is not used
        with self.text.block(f"for i in range(0, n, {abreast}):"), self.text.block(f"for j in range(n - 1, {last}, -1):"):
            self._cells([(Index("i", t), self.cell[1]) for t in range(abreast)], rules, "<=" if parts else "<")

    def _cells(self, cells: Sequence[tuple[Index, ...]], rules: list[Sum], before: str) -> None:
        """Outside values of cells abreast: the terms that all of them have, in loops; then one cell after the other."""
        uses = [[self._uses(item, cell, rules) for item in self._items(cell, rules)] for cell in cells]
        loops: dict[tuple[str, str], list[tuple[str, Use]]] = {}
        for number, cell in enumerate(cells):
            self.suffix = str(number) if before else ""
            for item, found, first in zip(self._items(cell, rules), uses[number], uses[0], strict=True):
                self.text(f"{self._name(item)} = {self._seed(item)}")
                for use, same in zip(found, first, strict=True):
                    if use.variable:
                        head = f"for {use.variable} in {between(same.first, same.stop)}:"
                        loops.setdefault((head, use.condition), []).append((self._name(item), use))
        for (head, condition), terms in loops.items():
            with self._under(condition), self.text.block(head):
                for name, use in terms:
                    self._add(name, use)
        for number, cell in enumerate(cells):
            self.suffix = str(number) if before else ""
            items = zip(reversed(rules), self._items(cell, rules), uses[number], uses[0], strict=True)
            with self._under(f"{cell[0]} {before} {cell[1]}" if before else ""):
                for rule, item, found, first in items:
                    for use, same in zip(found, first, strict=True):
                        self._rest(self._name(item), use, same)
                    self._settle(rule.beside("i", number), item, found)

    def _items(self, cell: tuple[Index, ...], rules: list[Sum]) -> list[Term]:
        """The items of a cell, the last one first."""
        return [rule.goal if isinstance(self.stage, Line) else Term(rule.goal.item, cell) for rule in reversed(rules)]

    def _name(self, item: Term) -> str:
        return f"out_{item.item}{self.suffix}"

    def _uses(self, item: Term, cell: tuple[Index, ...], rules: list[Sum]) -> list[Use]:
        """Uses of an item in other cells."""
        found = []
        for rule in self.analysis.recursion.rules:
            for number, factor in enumerate(rule.factors):
                if factor.item == item.item and rule.variable:
                    found.append(self._without_own(self._use(rule, number, item), self._items(cell, rules)))
        return found

    def _use(self, rule: Sum, number: int, item: Term) -> Use:
        known: dict[str, Index] = {}
        for pattern, index in zip(rule.factors[number].at, item.at, strict=True):
            known[pattern.variable] = index.plus(-pattern.offset)
        stage = next(s for s in self.analysis.recursion.stages if rule in s.rules)
        free = [v for v in (*stage.indices, rule.variable) if v not in known]
        condition = ""
        if rule.option:
            index = known[rule.variable]
            condition = rule.option + (f" or {index} == {rule.first}" if index.offset <= rule.first.offset else "")
        for variable in free:  # there is at most one
            known[variable] = Index(_FREE, 0)
        goal, other = rule.goal.where(known), rule.factors[1 - number].where(known)
        if not free:
            return Use(goal, other, "", Index("", 0), Index("", 1), condition)
        first, *_, last = stage.indices * 2
        limits = [
            (rule.first, Index(rule.variable, 0)), (Index(rule.variable, 1), rule.stop),
            (Index("", 0), Index(first, 0)), (Index(last, 1), Index("n", 0)),
        ]  # fmt: skip
        lows, highs = set[Index](), set[Index]()
        for small, large in limits:  # small <= large
            small, large = small.where(known), large.where(known)
            if large.variable == _FREE != small.variable:
                lows.add(small.plus(-large.offset))
            elif small.variable == _FREE != large.variable:
                highs.add(large.plus(1 - small.offset))
        return Use(goal, other, _FREE, _tightest(lows), _tightest(highs), condition)

    def _seed(self, item: Term) -> str:
        """The outside value of a goal."""
        whole, zero = self.analysis.recursion.goal, "constant(weights, 0.0)"
        if item.item != whole.item:
            return zero
        start = f"at(seeds, {times(item.at[-1].plus(-whole.at[-1].offset), 'lanes')})"
        return start if len(item.at) == 1 else f"{start} if {item.at[0]} == {whole.at[0]} else {zero}"

    def _under(self, condition: str) -> contextlib.AbstractContextManager[None]:
        return self.text.block(f"if {condition}:") if condition else contextlib.nullcontext()

    def _add(self, name: str, use: Use) -> None:
        self.text(f"{name} = times_plus({self._out(use.goal)}, {self._in(use.other)}, {name})")

    def _rest(self, name: str, use: Use, same: Use) -> None:
        """The terms of a use that are in no loop for all cells; `same` is the use of the first cell."""
        if not use.variable:
            with self._under(use.condition):
                self._add(name, use)
        elif use.stop != same.stop:
            with self.text.block(f"for {use.variable} in {between(same.stop, use.stop)}:"):
                self._add(name, use)

    def _without_own(self, use: Use, here: list[Term]) -> Use:
        """The use without the term that is an outside value of an item of this cell, times 1."""
        for value, rest in (
            (use.first, use._replace(first=use.first.plus(1), own=True)),
            (use.stop.plus(-1), use._replace(stop=use.stop.plus(-1), own=True)),
        ):
            known = {use.variable: value}
            if use.variable and use.goal.where(known) in here and self.analysis.recursion.is_axiom(use.other.where(known)):
                return rest
        return use

    def _settle(self, rule: Sum, item: Term, uses: list[Use]) -> None:
        """Add the uses in the same cell; keep what others need; write the marginal of a part."""
        name, weight = self._name(item), f"{item.item}{self.suffix}_weight"
        for use in uses:
            if use.own:
                self.text(f"{name} = plus({name}, {self._name(use.goal)})")
        for user in self.analysis.general(self.stage):
            if not user.variable and item.item in [factor.item for factor in user.factors]:
                self.text(f"{name} = times_plus({self._name(user.goal)}, {user.goal.item}{self.suffix}_weight, {name})")
        self.text(f"peak = larger(value_of({name}), peak)")
        if item.item in self.analysis.outside:
            self.text(f"put({self.analysis.outside.name(item.item)}, {self.analysis.outside.place(item)}, {name})")
        if rule.part:
            if rule.factors:
                self.text(f"{weight} = at(weights, {part_place(rule)})")
            self.text(f"put(weights, {part_place(rule)}, times({name}, {self._in(item)}))")

    def _in(self, term: Term) -> str:
        return f"at({self.analysis.inside.name(term.item)}, {self.analysis.inside.place(term)})"

    def _out(self, term: Term) -> str:
        return f"at({self.analysis.outside.name(term.item)}, {self.analysis.outside.place(term)})"


def _tightest(bounds: set[Index]) -> Index:
    """The bound that implies the others: one with an index of the cell, as 0 and n are beyond all of those."""
    (found,) = [b for b in bounds if b.variable not in ("", "n")] or bounds
    return found
