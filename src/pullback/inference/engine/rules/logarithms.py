"""The loops of both passes in logarithms: calls of the functions in `logs.py`."""

from __future__ import annotations

from pullback.inference.engine.rules.definition import Index, Line, Spans, Sum, Term
from pullback.inference.engine.rules.inside import arrays
from pullback.inference.engine.rules.text import Analysis, Text, difference, part_place


def write(text: Text, analysis: Analysis) -> None:
    """Write `inside_logs`, `tangents`, `outside_logs` and `outside_tangents`."""
    for name, what, rest in (
        ("inside_logs", "Fill the logarithms of the inside values.", ""),
        ("tangents", "Fill the tangents of these along a direction, or the entropies.", "direction, surprise, "),
        (
            "outside_logs",
            "Fill the probabilities of all items, from 1 at the goals; those of parts replace the scores.",
            "",
        ),
        (
            "outside_tangents",
            "The same with tangents: those of the parts' probabilities replace the scores.",
            "direction, surprise, ",
        ),
    ):
        arguments = ", ".join(["n", "side", "lanes", *analysis.recursion.options, "scores"])
        names = ", ".join([*arrays(analysis.inside), *sums(analysis)])
        text("", "", "@called")
        with text.block(f"def {name}({arguments}, {rest}{names}):"):
            text(f'"""{what}"""', "row, across = pitch_of(n) * lanes, side * lanes")
            stages = analysis.recursion.stages
            for stage in reversed(stages) if name.startswith("outside") else stages:
                _Pass(text, analysis, stage, name).write()


def sums(analysis: Analysis) -> list[str]:
    """The names of what the sums keep."""
    return [f"sum{i}" for i in range(len(analysis.sums))]


class _Pass:
    def __init__(self, text: Text, analysis: Analysis, stage: Spans | Line, name: str) -> None:
        self.text, self.analysis, self.stage, self.name = text, analysis, stage, name
        self.down, self.tangent = name.startswith("outside"), name.endswith("tangents")
        self.memory, self.general = analysis.inside, analysis.general(stage)
        self.special = [rule for rule in stage.rules if analysis.special(stage, rule)]
        self.cell = analysis.cell(stage)

    def write(self) -> None:
        if isinstance(self.stage, Line):
            if not self.down:
                self.first({})
            with self.text.block("for j in range(n - 1, -1, -1):" if self.down else "for j in range(n):"):
                self.rules(self.general)
        elif self.down:
            with self.text.block("for i in range(n):"):
                with self.text.block("for j in range(n - 1, i, -1):"):
                    self.rules(self.general)
                if any(rule.part for rule in self.special):
                    self.text("j = i")
                    self.rules([rule for rule in self.special if rule.part])
        else:
            with self.text.block("for j in range(n):"):
                self.first({"i": Index("j", 0)})
                with self.text.block("for i in range(j - 1, -1, -1):"):
                    self.rules(self.general)

    def first(self, known: dict[str, Index]) -> None:
        for rule in self.special:
            zero = "splat_wide(0.0, scores)" if self.tangent else "wide_of(splat(scores, 0.0), scores)"
            self.store(rule.goal.where(known), self.part(rule, known) if rule.part else zero)

    def store(self, goal: Term, value: str) -> None:
        function = "store" if self.tangent else "put_wide"
        self.text(f"{function}({self.array(goal)}, {self.memory.place(goal)}, {value})")

    def array(self, term: Term, which: str | None = None) -> str:
        return f"{self.memory.name(term.item)}[{which or ('TANGENT' if self.tangent else 'VALUE')}]"

    def part(self, rule: Sum, known: dict[str, Index] | None = None) -> str:
        place = part_place(rule, known)
        return f"widen(load(direction, {place}))" if self.tangent else f"wide_of(load(scores, {place}), scores)"

    def rules(self, rules: list[Sum]) -> None:
        for rule in reversed(rules) if self.down else rules:
            (self.downward if self.down else self.upward)(rule)

    def sequences(self, rule: Sum) -> str:
        """The two sequences of a sum, their length, and where the sum is kept."""
        known, words = {rule.variable: rule.first}, []
        for factor in rule.factors:
            step = self.memory.step(factor, rule.variable)
            words += [self.memory.name(factor.item), self.memory.place(factor.where(known)), step]
        count = difference(rule.stop, rule.first)
        words.append(f"{count} if {rule.option} else 1" if rule.option else count)
        return ", ".join([*words, f"sum{self.analysis.sums.index(rule)}", self.sum_place(rule)])

    def sum_place(self, rule: Sum) -> str:
        return place_of_sum(self.analysis, rule)

    def upward(self, rule: Sum) -> None:
        name = rule.goal.item
        if rule.variable and self.tangent:
            self.text(f"{name} = mean_tangent({self.sequences(rule)}, surprise, scores)")
        elif rule.variable:
            self.text(f"{name} = log_sum({self.sequences(rule)}, scores)")
        else:
            values = [*(f.item for f in rule.factors), self.part(rule)]
            self.text(f"{name} = {' + '.join(values) if self.tangent else f'plus_wide({values[0]}, {values[1]}, scores)'}")
        if name in self.memory:
            self.store(rule.goal, name)
        elif self.tangent and rule.variable:  # the way down needs it
            self.text(f"store(sum{self.analysis.sums.index(rule)}[2], {self.sum_place(rule)}, {name})")

    def downward(self, rule: Sum) -> None:
        item = rule.goal if isinstance(self.stage, Line) or not self.analysis.special(self.stage, rule) else Term(
            rule.goal.item, self.cell
        )  # fmt: skip
        users = [u.goal.item for u in self.general if not u.variable and item in u.factors]
        name = item.item
        for prefix, which in (("out", "OUT"), ("moved", "OUT_TANGENT"))[: 2 if self.tangent else 1]:
            values = [f"{prefix}_{user}" for user in users]
            if name in self.memory:
                values.append(f"load_wide({self.array(item, which)}, {self.memory.place(item)}, scores)")
            self.text(f"{prefix}_{name} = {' + '.join(values)}")
        if rule.variable and self.tangent:
            own = self.array(item, "TANGENT") if name in self.memory else f"sum{self.analysis.sums.index(rule)}[2]"
            place = self.memory.place(item) if name in self.memory else self.sum_place(rule)
            self.text(f"own = load_wide({own}, {place}, scores)")
            self.text(f"push_tangent({self.sequences(rule)}, out_{name}, moved_{name}, own, surprise, scores)")
        elif rule.variable:
            self.text(f"push({self.sequences(rule)}, out_{name}, scores)")
        if rule.part:
            self.text(f"store(scores, {part_place(rule)}, narrow({'moved' if self.tangent else 'out'}_{name}, scores))")


def place_of_sum(analysis: Analysis, rule: Sum) -> str:
    """The flat index of what a sum keeps: that of its item, or of an item with a chart of its own."""
    from pullback.inference.engine.rules.inside import choice_place

    return analysis.inside.place(rule.goal) if rule.goal.item in analysis.inside else choice_place(rule)
