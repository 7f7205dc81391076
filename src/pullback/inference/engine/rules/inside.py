"""The loops of the inside pass: weights, plain or dual, and maxima with their choices."""

from __future__ import annotations

import contextlib
from typing import NamedTuple

from pullback.inference.engine.rules.definition import Index, Line, Spans, Sum, Term
from pullback.inference.engine.rules.text import Analysis, Memory, Text, between, part_place


def weights(text: Text, analysis: Analysis) -> None:
    """Write `inside`."""
    arguments = ", ".join(["n", "side", "lanes", *analysis.recursion.options, "weights", *arrays(analysis.inside), "peak"])
    text("", "", "@called")
    with text.block(f"def inside({arguments}):"):
        text(
            '"""Fill the inside values; returns the largest value, at least `peak`."""',
            "row, across = pitch_of(n) * lanes, side * lanes",
        )
        for stage in analysis.recursion.stages:
            _Weights(text, analysis).stage(stage)
        text("return peak")


def maxima(text: Text, analysis: Analysis) -> None:
    """Write `best`."""
    names = [*arrays(analysis.inside), *analysis.choices.values()]
    arguments = ", ".join(["n", "side", "lanes", *analysis.recursion.options, "weights", *names])
    text("", "", "@called")
    with text.block(f"def best({arguments}):"):
        text('"""Fill the largest values, and which term each comes from: the first, if several are largest."""')
        text("row, across = pitch_of(n) * lanes, side * lanes")
        for stage in analysis.recursion.stages:
            _Maxima(text, analysis).stage(stage)


def arrays(memory: Memory) -> list[str]:
    return [*memory.charts, *memory.lines]


class _Cell(NamedTuple):
    """A cell among those abreast: its indices, what its names end with, and its rules."""

    at: tuple[Index, ...]
    suffix: str
    rules: list[Sum]


class _Inside:
    one = ""  # the value of an axiom

    def __init__(self, text: Text, analysis: Analysis) -> None:
        self.text, self.analysis, self.memory = text, analysis, analysis.inside
        self.cell: tuple[Index, ...] = ()
        self.suffix = ""

    def stage(self, stage: Spans | Line) -> None:
        """All cells of a stage."""
        special = [rule for rule in stage.rules if self.analysis.special(stage, rule)]
        rules, cell = self.analysis.general(stage), self.analysis.cell(stage)
        if isinstance(stage, Spans):
            with self.text.block("for j in range(n):"):
                self.first(special, {"i": Index("j", 0)})
            abreast, j = self.analysis.recursion.abreast, Index("j", 0)
            columns = f"for j in range(-(-n % {abreast}), n, {abreast}):"  # those below 0 have no cells
            with self.text.block(columns), self.text.block(f"for i in range({j.plus(abreast - 2)}, -1, -1):"):
                self.cells([
                    _Cell((cell[0], j.plus(t)), str(t), [rule.beside("j", t) for rule in rules]) for t in range(abreast)
                ])  # fmt: skip
        else:
            self.first(special, {})
            with self.text.block("for j in range(n):"):
                self.cells([_Cell(cell, "", rules)])

    def first(self, rules: list[Sum], known: dict[str, Index]) -> None:
        for rule in rules:
            value = self.one if rule.axiom else self.part(part_place(rule, known))
            goal = rule.goal.where(known)
            if goal.item in self.memory:
                self.store(goal, value)

    def cells(self, cells: list[_Cell]) -> None:
        """Cells abreast: the terms that the sums of the first one have, in loops for all; then one cell after the other."""
        loops: dict[str, list[tuple[str, Sum]]] = {}
        self.cell, self.suffix = cells[0].at, cells[0].suffix
        for rules in zip(*(cell.rules for cell in cells), strict=True):
            if rules[0].variable:
                self.text("# " + formula(rules[0]))
                first, stop = self.bounds(rules[0])
                end = f"{stop} if {rules[0].option} else {first.plus(1)}" if rules[0].option else stop
                terms = loops.setdefault(f"for {rules[0].variable} in {between(first, end)}:", [])
                terms += [(rule.goal.item + cell.suffix, rule) for cell, rule in zip(cells, rules, strict=True)]
        for head, terms in loops.items():
            for name, rule in terms:
                self.start(name, rule)
            with self.text.block(head):
                for name, rule in terms:
                    self.add(name, rule)
        for self.cell, self.suffix, own in cells:
            with self.text.block(f"if {self.cell[0]} < {self.cell[1]}:") if self.suffix else contextlib.nullcontext():
                for rule, same in zip(own, cells[0].rules, strict=True):
                    if rule.variable:
                        self.rest(rule, same.stop.plus(self.bounds(rule)[1].offset - rule.stop.offset))
                    else:
                        self.product(rule)
                    if rule.goal.item in self.memory:
                        self.store(rule.goal, self.name(rule.goal.item))

    def rest(self, rule: Sum, begun: Index) -> None:
        """The terms behind those that the first cell has, and those of the same cell."""
        name, (first, stop), (head, last) = self.name(rule.goal.item), self.bounds(rule), self.analysis.ends(rule, self.cell)
        if begun != stop:
            with self.text.block(f"for {rule.variable} in range(max({first}, {begun}), {stop}):"):
                self.add(name, rule)
        if head:
            self.end(rule, self.name(head.item), True)
        if last:
            self.end(rule, self.name(last.item), False)

    def name(self, item: str) -> str:
        return item + self.suffix

    def bounds(self, rule: Sum) -> tuple[Index, Index]:
        """The first value of the variable, and the one behind its last, without ends that are at hand."""
        head, last = self.analysis.ends(rule, self.cell)
        return rule.first.plus(1 if head else 0), rule.stop.plus(-1 if last else 0)

    def start(self, name: str, rule: Sum) -> None:
        raise NotImplementedError

    def add(self, name: str, rule: Sum) -> None:
        """Add the term at the rule's variable to a total."""
        raise NotImplementedError

    def end(self, rule: Sum, value: str, first: bool) -> None:
        """Add the first, or the last, term, which is at hand."""
        raise NotImplementedError

    def product(self, rule: Sum) -> None:
        raise NotImplementedError

    def store(self, goal: Term, value: str) -> None:
        raise NotImplementedError

    def part(self, place: str) -> str:
        raise NotImplementedError

    def value(self, term: Term) -> str:
        """An item of the same cell, or another one."""
        return self.name(term.item) if term.at == self.cell else self.load(term)

    def load(self, term: Term) -> str:
        raise NotImplementedError


class _Weights(_Inside):
    one = "constant(weights, 1.0)"

    def load(self, term: Term) -> str:
        return f"at({self.memory.name(term.item)}, {self.memory.place(term)})"

    def part(self, place: str) -> str:
        return f"at(weights, {place})"

    def store(self, goal: Term, value: str) -> None:
        self.text(f"put({self.memory.name(goal.item)}, {self.memory.place(goal)}, {value})")

    def product(self, rule: Sum) -> None:
        values = [*map(self.value, rule.factors), *([self.part(part_place(rule))] if rule.part else [])]
        self.text(f"{self.name(rule.goal.item)} = {values[0] if len(values) == 1 else f'times({values[0]}, {values[1]})'}")

    def start(self, name: str, rule: Sum) -> None:
        self.text(f"{name} = constant(weights, 0.0)")

    def add(self, name: str, rule: Sum) -> None:
        a, b = map(self.load, rule.factors)
        self.text(f"{name} = times_plus({a}, {b}, {name})")

    def end(self, rule: Sum, value: str, first: bool) -> None:
        name = self.name(rule.goal.item)
        self.text(f"{name} = plus({name}, {value})")

    def rest(self, rule: Sum, begun: Index) -> None:
        super().rest(rule, begun)
        self.text(f"peak = larger(value_of({self.name(rule.goal.item)}), peak)")


class _Maxima(_Inside):
    @property
    def one(self) -> str:  # type: ignore[override]
        return self.splat("0.0")

    def splat(self, number: str) -> str:
        return f"splat_wide({number}, weights)" if self.analysis.recursion.wide else f"splat(weights, {number})"

    def load(self, term: Term) -> str:
        array, place = self.memory.name(term.item), self.memory.place(term)
        return f"load_wide({array}, {place}, weights)" if self.analysis.recursion.wide else f"load({array}, {place})"

    def part(self, place: str) -> str:
        return f"widen(load(weights, {place}))" if self.analysis.recursion.wide else f"load(weights, {place})"

    def store(self, goal: Term, value: str) -> None:
        self.text(f"store({self.memory.name(goal.item)}, {self.memory.place(goal)}, {value})")

    def product(self, rule: Sum) -> None:
        values = [*map(self.value, rule.factors), *([self.part(part_place(rule))] if rule.part else [])]
        self.text(f"{self.name(rule.goal.item)} = {' + '.join(values)}")

    def start(self, name: str, rule: Sum) -> None:
        self.text(f"{name} = {self.splat('-np.inf')}", f"{name}_at = splat_index({name}, {rule.first})")

    def add(self, name: str, rule: Sum) -> None:
        self.text(f"x = {' + '.join(map(self.load, rule.factors))}")
        self.text(f"{name}_at = where_larger(x, {name}, splat_index({name}, {rule.variable}), {name}_at)")
        self.text(f"{name} = larger(x, {name})")

    def end(self, rule: Sum, value: str, first: bool) -> None:
        name = self.name(rule.goal.item)
        index = f"splat_index({name}, {rule.first if first else rule.stop.plus(-1)})"
        if first:
            self.text(f"{name}_at = where_larger({name}, {value}, {name}_at, {index})")
        else:
            self.text(f"{name}_at = where_larger({value}, {name}, {index}, {name}_at)")
        self.text(f"{name} = larger({value}, {name})")

    def rest(self, rule: Sum, begun: Index) -> None:
        super().rest(rule, begun)
        place = choice_place(self.memory, rule)
        self.text(f"store_index({self.analysis.choices[rule.goal.item]}, {place}, {self.name(rule.goal.item)}_at)")


def choice_place(memory: Memory, rule: Sum) -> str:
    """Where the choice of an item is kept: in the place of the item, or in that of an item with a chart of its own."""
    own = memory if rule.goal.item in memory else Memory("", [(rule.goal.item, len(rule.goal.at))])
    return own.place(rule.goal)


def formula(rule: Sum) -> str:
    """The rule, as in a textbook."""
    terms = " ".join(map(str, rule.factors)) + (f" part({', '.join(map(str, rule.part))})" if rule.part else "")
    over = f" over {rule.variable} = {rule.first} ... {rule.stop.plus(-1)}" if rule.variable else ""
    return f"{rule.goal}: {terms or '1'}{over}"
