"""The loops of the inside pass: weights, plain or dual, and maxima with their choices."""

from __future__ import annotations

from collections.abc import Iterator

from pullback.inference.engine.rules.definition import Index, Line, Spans, Sum, Term
from pullback.inference.engine.rules.text import Analysis, Memory, Text, difference, part_place


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


class _Inside:
    one = ""  # the value of an axiom

    def __init__(self, text: Text, analysis: Analysis) -> None:
        self.text, self.analysis, self.memory = text, analysis, analysis.inside
        self.cell: tuple[Index, ...] = ()

    def stage(self, stage: Spans | Line) -> None:
        """All cells of a stage."""
        special = [rule for rule in stage.rules if self.analysis.special(stage, rule)]
        self.cell = self.analysis.cell(stage)
        if isinstance(stage, Spans):
            with self.text.block("for j in range(n):"):
                self.first(special, {"i": Index("j", 0)})
                with self.text.block("for i in range(j - 1, -1, -1):"):
                    self.rules(self.analysis.general(stage))
        else:
            self.first(special, {})
            with self.text.block("for j in range(n):"):
                self.rules(self.analysis.general(stage))

    def first(self, rules: list[Sum], known: dict[str, Index]) -> None:
        for rule in rules:
            value = self.one if rule.axiom else self.part(part_place(rule, known))
            goal = rule.goal.where(known)
            if goal.item in self.memory:
                self.store(goal, value)

    def rules(self, rules: list[Sum]) -> None:
        for group in self.groups(rules):
            self.text("# " + "; ".join(map(formula, group)))
            if group[0].variable:
                self.sums(group)
            else:
                self.product(group[0])
            for rule in group:
                if rule.goal.item in self.memory:
                    self.store(rule.goal, rule.goal.item)

    def groups(self, rules: list[Sum]) -> Iterator[list[Sum]]:
        """Sums of equally many terms that do not need each other go into one loop."""
        group: list[Sum] = []
        for rule in rules:
            alike = bool(group) and bool(rule.variable) and self.count(rule) == self.count(group[0])
            needed = [end.item for end in self.analysis.ends(rule, self.cell) if end] if rule.variable else []
            if group and not (alike and not set(needed) & {r.goal.item for r in group}):
                yield group
                group = []
            group.append(rule)
        yield group

    def bounds(self, rule: Sum) -> tuple[Index, Index]:
        """The first value of the variable, and the one behind its last, without ends that are at hand."""
        head, last = self.analysis.ends(rule, self.cell)
        return rule.first.plus(1 if head else 0), rule.stop.plus(-1 if last else 0)

    def count(self, rule: Sum) -> str:
        if not rule.variable:
            return ""
        first, stop = self.bounds(rule)
        count = difference(stop, first)
        return f"{count} if {rule.option} else 1" if rule.option else count

    def pointers(self, group: list[Sum]) -> list[tuple[list[str], list[str], list[str]]]:
        """For each sum: names of the indices of its two factors, their first values, and their steps."""
        found = []
        for number, rule in enumerate(group):
            first = {rule.variable: self.bounds(rule)[0]}
            names = [f"at{number}", f"by{number}"]
            places = [self.memory.place(f.where(first)) for f in rule.factors]
            found.append((names, places, [self.memory.step(f, rule.variable) for f in rule.factors]))
        return found

    def sums(self, group: list[Sum]) -> None:
        raise NotImplementedError

    def product(self, rule: Sum) -> None:
        raise NotImplementedError

    def store(self, goal: Term, value: str) -> None:
        raise NotImplementedError

    def part(self, place: str) -> str:
        raise NotImplementedError

    def value(self, term: Term) -> str:
        """An item of the same cell, or another one."""
        return term.item if term.at == self.cell else self.load(self.memory.name(term.item), self.memory.place(term))

    def load(self, array: str, place: str) -> str:
        raise NotImplementedError


class _Weights(_Inside):
    one = "constant(weights, 1.0)"

    def load(self, array: str, place: str) -> str:
        return f"at({array}, {place})"

    def part(self, place: str) -> str:
        return f"at(weights, {place})"

    def store(self, goal: Term, value: str) -> None:
        self.text(f"put({self.memory.name(goal.item)}, {self.memory.place(goal)}, {value})")

    def product(self, rule: Sum) -> None:
        values = [*map(self.value, rule.factors), *([self.part(part_place(rule))] if rule.part else [])]
        self.text(f"{rule.goal.item} = {values[0] if len(values) == 1 else f'times({values[0]}, {values[1]})'}")

    def sums(self, group: list[Sum]) -> None:
        heads = [self.analysis.ends(rule, self.cell)[0] for rule in group]
        for rule, head in zip(group, heads, strict=True):
            self.text(f"{rule.goal.item} = {head.item if head else 'constant(weights, 0.0)'}")
        pairs = []
        for rule, (names, places, steps) in zip(group, self.pointers(group), strict=True):
            self.text(f"{', '.join(names)} = {', '.join(places)}")
            arrays_ = [self.memory.name(f.item) for f in rule.factors]
            pairs.append((rule.goal.item, arrays_, names, steps))
        products(self.text, pairs, self.count(group[0]))
        for rule in group:
            last = self.analysis.ends(rule, self.cell)[1]
            if last:
                self.text(f"{rule.goal.item} = plus({rule.goal.item}, {last.item})")
            self.text(f"peak = larger(value_of({rule.goal.item}), peak)")


def products(text: Text, pairs: list[tuple[str, list[str], list[str], list[str]]], count: str) -> None:
    """Add products of two sequences of numbers to each total; one total alone is summed by even and odd terms."""

    def add(total: str, arrays_: list[str], names: list[str]) -> None:
        text(f"{total} = times_plus(at({arrays_[0]}, {names[0]}), at({arrays_[1]}, {names[1]}), {total})")

    def advance(names: list[str], steps: list[str]) -> None:
        text(f"{', '.join(names)} = {', '.join(f'{n} + {s}' for n, s in zip(names, steps, strict=True))}")

    if len(pairs) > 1:
        with text.block(f"for _ in range({count}):"):
            for total, arrays_, names, _ in pairs:
                add(total, arrays_, names)
            for _, _, names, steps in pairs:
                advance(names, steps)
        return
    total, arrays_, names, steps = pairs[0]
    text(f"count, odd = {count}, constant(weights, 0.0)")
    with text.block("for _ in range(count // 2):"):
        for place in (total, "odd"):
            add(place, arrays_, names)
            advance(names, steps)
    with text.block("if count % 2:"):
        add(total, arrays_, names)
    text(f"{total} = plus({total}, odd)")


class _Maxima(_Inside):
    @property
    def one(self) -> str:  # type: ignore[override]
        return self.splat("0.0")

    def splat(self, number: str) -> str:
        return f"splat_wide({number}, weights)" if self.analysis.recursion.wide else f"splat(weights, {number})"

    def load(self, array: str, place: str) -> str:
        return f"load_wide({array}, {place}, weights)" if self.analysis.recursion.wide else f"load({array}, {place})"

    def part(self, place: str) -> str:
        return f"widen(load(weights, {place}))" if self.analysis.recursion.wide else f"load(weights, {place})"

    def store(self, goal: Term, value: str) -> None:
        self.text(f"store({self.memory.name(goal.item)}, {self.memory.place(goal)}, {value})")

    def product(self, rule: Sum) -> None:
        values = [*map(self.value, rule.factors), *([self.part(part_place(rule))] if rule.part else [])]
        self.text(f"{rule.goal.item} = {' + '.join(values)}")

    def sums(self, group: list[Sum]) -> None:
        for rule in group:
            head, name = self.analysis.ends(rule, self.cell)[0], rule.goal.item
            self.text(f"{name} = {head.item if head else self.splat('-np.inf')}")
            self.text(f"{name}_at = splat_index({name}, {rule.first})")
        pointers = self.pointers(group)
        for names, places, _ in pointers:
            self.text(f"{', '.join(names)} = {', '.join(places)}")
        shifts = [self.bounds(rule)[0] for rule in group]
        with self.text.block(f"for t in range({self.count(group[0])}):"):
            for rule, shift, (names, _, steps) in zip(group, shifts, pointers, strict=True):
                a, b = (self.load(self.memory.name(f.item), at) for f, at in zip(rule.factors, names, strict=True))
                self.text(f"x = {a} + {b}")
                self._take(rule, "x", f"{shift} + t".removeprefix("0 + "))
                self.text(f"{', '.join(names)} = {', '.join(f'{n} + {s}' for n, s in zip(names, steps, strict=True))}")
        for rule in group:
            last = self.analysis.ends(rule, self.cell)[1]
            if last:
                self._take(rule, last.item, str(rule.stop.plus(-1)))
            place = self.memory.place(rule.goal) if rule.goal.item in self.memory else choice_place(rule)
            self.text(f"store_index({self.analysis.choices[id(rule)]}, {place}, {rule.goal.item}_at)")

    def _take(self, rule: Sum, value: str, index: str) -> None:
        name = rule.goal.item
        self.text(f"{name}_at = where_larger({value}, {name}, splat_index({name}, {index}), {name}_at)")
        self.text(f"{name} = larger({value}, {name})")


def choice_place(rule: Sum) -> str:
    """Where the choice of an item is kept that lies in no chart."""
    return Memory("", [(rule.goal.item, len(rule.goal.at))]).place(rule.goal)


def formula(rule: Sum) -> str:
    """The rule, as in a textbook."""
    terms = " ".join(map(str, rule.factors)) + (f" part({', '.join(map(str, rule.part))})" if rule.part else "")
    over = f" over {rule.variable} = {rule.first} ... {rule.stop.plus(-1)}" if rule.variable else ""
    return f"{rule.goal}: {terms or '1'}{over}"
