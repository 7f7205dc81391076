"""The loops of the outside pass over weights: each outside value is a sum over the item's uses."""

from __future__ import annotations

import contextlib
from typing import NamedTuple

from pullback.inference.engine.rules.definition import Index, Line, Spans, Sum, Term
from pullback.inference.engine.rules.inside import arrays, products
from pullback.inference.engine.rules.text import Analysis, Text, difference, part_place, times

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
    """

    goal: Term
    other: Term
    variable: str
    first: Index
    stop: Index
    condition: str


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
        self.cell = analysis.cell(stage)

    def write(self) -> None:
        rules = self.analysis.general(self.stage)
        diagonal = [r for r in self.stage.rules if self.analysis.special(self.stage, r) and r.part]
        if isinstance(self.stage, Line):
            with self.text.block("for j in range(n - 1, -1, -1):"):
                self._items(rules)
            return
        with self.text.block("for i in range(n):"):
            with self.text.block("for j in range(n - 1, i, -1):"):
                self._items(rules)
            if diagonal:
                self.text("j = i")
                self._items(diagonal)

    def _items(self, rules: list[Sum]) -> None:
        """Outside values of the items of a cell, the last one first."""
        items = [rule.goal if isinstance(self.stage, Line) else Term(rule.goal.item, self.cell) for rule in reversed(rules)]
        uses = {item: self._uses(item) for item in items}
        for item in items:
            self._start(item, uses[item])
        loops: dict[tuple[str, str], list[tuple[Term, Use]]] = {}
        for item in items:
            for use in uses[item]:
                if use.variable:
                    shorter = self._without_own(use)
                    count = difference(shorter.stop, shorter.first)
                    loops.setdefault((count, use.condition), []).append((item, shorter))
        for (count, condition), found in loops.items():
            self._sums(count, condition, found)
        for rule, item in zip(reversed(rules), items, strict=True):
            self._settle(rule, item, uses[item])

    def _uses(self, item: Term) -> list[Use]:
        """Uses of an item in other cells."""
        found = []
        for rule in self.analysis.recursion.rules:
            for number, factor in enumerate(rule.factors):
                if factor.item == item.item and rule.variable:
                    found.append(self._use(rule, number, item))
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

    def _start(self, item: Term, uses: list[Use]) -> None:
        """The value of an item's uses of one product."""
        name, whole = f"out_{item.item}", self.analysis.recursion.goal
        start = "constant(weights, 0.0)"
        if item.item == whole.item:
            size = item.at[-1].plus(-whole.at[-1].offset)
            start = f"at(seeds, {times(size, 'lanes')})"
            if len(item.at) == 2:
                start += f" if {item.at[0]} == {whole.at[0]} else constant(weights, 0.0)"
        self.text(f"{name} = {start}")
        for use in uses:
            if not use.variable:
                with self._under(use.condition):
                    self.text(f"{name} = times_plus({self._out(use.goal)}, {self._in(use.other)}, {name})")

    def _under(self, condition: str) -> contextlib.AbstractContextManager[None]:
        return self.text.block(f"if {condition}:") if condition else contextlib.nullcontext()

    def _sums(self, count: str, condition: str, found: list[tuple[Term, Use]]) -> None:
        pairs = []
        outs, ins = self.analysis.outside, self.analysis.inside
        for number, (goal, use) in enumerate(found):
            known, names = {use.variable: use.first}, [f"at{number}", f"by{number}"]
            self.text(f"{', '.join(names)} = {outs.place(use.goal.where(known))}, {ins.place(use.other.where(known))}")
            steps = [outs.step(use.goal, use.variable), ins.step(use.other, use.variable)]
            pairs.append((f"out_{goal.item}", [outs.name(use.goal.item), ins.name(use.other.item)], names, steps))
        with self._under(condition):
            products(self.text, pairs, count)

    def _without_own(self, use: Use) -> Use:
        """The use without the term that is an outside value of this cell, times 1; that one is added in the end."""
        own = self._own(use)
        if own is None:
            return use
        return use._replace(first=use.first.plus(1)) if own == "first" else use._replace(stop=use.stop.plus(-1))

    def _own(self, use: Use) -> str | None:
        """Which term is the outside value of an item of this cell, times 1: the first, the last, or none."""
        here = [rule.goal for rule in self.analysis.general(self.stage)]
        for place, value in (("first", use.first), ("last", use.stop.plus(-1))):
            known = {use.variable: value}
            if use.goal.where(known) in here and self.analysis.recursion.is_axiom(use.other.where(known)):
                return place
        return None

    def _settle(self, rule: Sum, item: Term, uses: list[Use]) -> None:
        """Add the uses in the same cell; keep what others need; write the marginal of a part."""
        name = f"out_{item.item}"
        for use in uses:
            if use.variable and self._own(use):
                self.text(f"{name} = plus({name}, out_{use.goal.item})")
        for user in self.analysis.general(self.stage):
            if not user.variable and item in user.factors:
                self.text(f"{name} = times_plus(out_{user.goal.item}, {user.goal.item}_weight, {name})")
        self.text(f"peak = larger(value_of({name}), peak)")
        if item.item in self.analysis.outside:
            self.text(f"put({self.analysis.outside.name(item.item)}, {self.analysis.outside.place(item)}, {name})")
        if rule.part:
            if rule.factors:
                self.text(f"{item.item}_weight = at(weights, {part_place(rule)})")
            self.text(f"put(weights, {part_place(rule)}, times({name}, {self._in(item)}))")

    def _in(self, term: Term) -> str:
        return f"at({self.analysis.inside.name(term.item)}, {self.analysis.inside.place(term)})"

    def _out(self, term: Term) -> str:
        return f"at({self.analysis.outside.name(term.item)}, {self.analysis.outside.place(term)})"


def _tightest(bounds: set[Index]) -> Index:
    """The bound that implies the others: one with an index of the cell, as 0 and n are beyond all of those."""
    (found,) = [b for b in bounds if b.variable not in ("", "n")] or bounds
    return found
