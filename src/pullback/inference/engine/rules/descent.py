"""The loops from the goal down to the parts of one structure: the best one, or one that is drawn."""

from __future__ import annotations

from pullback.inference.engine.rules.definition import Index, Line, Spans, Sum, Term
from pullback.inference.engine.rules.inside import arrays, choice_place
from pullback.inference.engine.rules.text import Analysis, Memory, Text, difference, times


def goal_place(text: Text, analysis: Analysis) -> None:
    """Write `goal_of`: where the value of an example of some size is."""
    goal = analysis.recursion.goal
    at = Term(goal.item, tuple(Index("size", i.offset) if i.variable == "n" else i for i in goal.at))
    text("", "", "@called")
    with text.block("def goal_of(size, n, lanes):"):
        text('"""Where the value of an example of some size begins."""')
        if len(goal.at) == 2:
            text("row = pitch_of(n) * lanes")
        text(f"return {analysis.inside.place(at)}")


def write(text: Text, analysis: Analysis) -> None:
    """Write `follow`, `draw` and `draw_scaled`."""
    _Descent(
        text, analysis, "follow", list(analysis.choices.values()), "Write the parts of the best structure of a lane."
    ).write()
    names = arrays(analysis.inside)
    _Descent(
        text, analysis, "draw", [*names, "least", "seed"],
        "Draw a structure of a lane; False where a value on the way is below `least`, and too small to trust.",
    ).write()  # fmt: skip
    _Descent(text, analysis, "draw_scaled", [*names, "seed"], "Draw a structure of a lane from numbers with exponents.").write()


class _Descent:
    def __init__(self, text: Text, analysis: Analysis, name: str, names: list[str], what: str) -> None:
        self.text, self.analysis, self.name, self.names, self.what = text, analysis, name, names, what
        self.items = list(dict.fromkeys(rule.goal.item for rule in analysis.recursion.rules))

    def write(self) -> None:
        options = self.analysis.recursion.options
        arguments = ", ".join(["size", "n", "lanes", "lane", *options, *self.names, "stack", "z", "base", "side"])
        drawing, goal = self.name != "follow", self.analysis.recursion.goal
        self.text("", "", "@called")
        with self.text.block(f"def {self.name}({arguments}):"):
            self.text(f'"""{self.what}"""', "row = pitch_of(n) * lanes")
            self.push(Term(goal.item, tuple(Index("size", i.offset) if i.variable == "n" else i for i in goal.at)), "0")
            self.text("height = 1", *(["drawn = 0"] if drawing else []))
            with self.text.block("while height > 0:"):
                self.text("height -= 1", "item, i, j = stack[height, 0], stack[height, 1], stack[height, 2]")
                for number, item in enumerate(self.items):
                    with self.text.block(f"{'if' if number == 0 else 'elif'} item == {number}:  # {item}"):
                        self.item(item)
            if drawing:
                self.text("return True")

    def push(self, term: Term, height: str) -> None:
        i, j = term.at if len(term.at) == 2 else (Index("", 0), term.at[0])
        self.text(f"stack[{height}, 0], stack[{height}, 1], stack[{height}, 2] = {self.items.index(term.item)}, {i}, {j}")

    def item(self, item: str) -> None:
        rules = self.analysis.recursion.rules_for(item)
        stage = next(s for s in self.analysis.recursion.stages if rules[0] in s.rules)
        for rule in rules:
            if self.analysis.special(stage, rule):
                with self.text.block("if i == j:" if isinstance(stage, Spans) else f"if j == {rule.goal.at[0]}:"):
                    if rule.part:
                        self.part(rule)
                    self.text("continue")
        for rule in rules:
            if not self.analysis.special(stage, rule):
                self.general(rule, stage)

    def general(self, rule: Sum, stage: Spans | Line) -> None:
        if isinstance(stage, Line) and rule.goal.at[0].offset:
            self.text(f"j -= {rule.goal.at[0].offset}")
        memory = self.analysis.inside
        if self.name == "draw" and rule.goal.item in memory:
            with self.text.block(f"if not {memory.name(rule.goal.item)}[{memory.place(rule.goal)} + lane] >= least:"):
                self.text("return False")
        if rule.part:
            self.part(rule)
        if rule.variable:
            self.choose(rule)
        for number, factor in enumerate(rule.factors):
            self.push(factor, "height" if number == 0 else f"height + {number}")
        self.text(f"height += {len(rule.factors)}")

    def part(self, rule: Sum) -> None:
        assert rule.part is not None
        row, column = rule.part
        self.text(f"z[base + {times(row, 'side')} + {column}] = 1.0")

    def choose(self, rule: Sum) -> None:
        memory: Memory = self.analysis.inside
        if self.name == "follow":
            place = choice_place(memory, rule)
            self.text(f"{rule.variable} = np.int64({self.analysis.choices[rule.goal.item]}[{place} + lane])")
            return
        known, words = {rule.variable: rule.first}, []
        for factor in rule.factors:
            words += [
                memory.name(factor.item),
                f"{memory.place(factor.where(known))} + lane",
                memory.step(factor, rule.variable),
            ]
        count = difference(rule.stop, rule.first)
        words.append(f"{count} if {rule.option} else 1" if rule.option else count)
        self.text("u, drawn = uniform(seed, drawn)")
        chosen = f"{self.name.replace('draw', 'choose')}({', '.join([*words, 'u'])})"
        self.text(f"{rule.variable} = {rule.first} + {chosen}".replace("= 0 + ", "= "))
