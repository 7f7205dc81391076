"""A recursion's rules in plain PyTorch, a width of spans at a time: the reference on any device, which can be traced, too."""

from __future__ import annotations

import inspect
from typing import Any

import torch
from torch import Tensor

from pullback.inference.engine.recursion import Combine, Value
from pullback.inference.engine.rules.definition import Index, Line, Recursion, Sum, Term
from pullback.inference.engine.rules.text import Analysis


def reference(recursion: Recursion) -> Value:
    """The function `value(scores, lengths, <options>, combine)` of scores `[B, n, n]`."""

    def value(scores: Tensor, lengths: Tensor, *, combine: Combine, **options: bool) -> Tensor:
        """The combined value of all structures of each example, `[B]`."""
        found = _Values(scores, combine, options)
        for stage in recursion.stages:
            (found.line if isinstance(stage, Line) else found.spans)(stage)
        sizes = [found.goal(recursion.goal, size) for size in range(scores.shape[1] + 1)]
        return torch.stack(sizes, 1).gather(1, lengths[:, None]).squeeze(1)

    kind = inspect.Parameter.KEYWORD_ONLY
    named = [inspect.Parameter(name, kind) for name in ("scores", "lengths", *recursion.options, "combine")]
    value.__signature__ = inspect.Signature(named)  # type: ignore[attr-defined]
    return value


class _Values:
    """Values so far: of spans by their width, `[B, n - width]`, and of positions, `[B]`."""

    def __init__(self, scores: Tensor, combine: Combine, options: dict[str, bool]) -> None:
        self.scores, self.combine, self.options = scores, combine, options
        self.batch, self.n = scores.shape[0], scores.shape[1]
        self.known: dict[str, dict[int, Tensor]] = {}

    def spans(self, stage: Any) -> None:
        for width in range(self.n):
            for rule in stage.rules:
                if Analysis.special(stage, rule) == (width == 0):
                    self.known.setdefault(rule.goal.item, {})[width] = self.rule(rule, {"i": 0, "j": width}, self.n - width)

    def line(self, stage: Any) -> None:
        for rule in stage.rules:
            if Analysis.special(stage, rule):
                self.known.setdefault(rule.goal.item, {})[rule.goal.at[0].offset] = self.rule(rule, {}, None)
        for j in range(self.n):
            for rule in Analysis.general(stage):
                place = j + rule.goal.at[0].offset
                self.known.setdefault(rule.goal.item, {})[place] = self.rule(rule, {"j": j}, None)

    def rule(self, rule: Sum, at: dict[str, int], count: int | None) -> Tensor:
        """The value of a rule for the spans i = 0 ... count - 1 of a width, or for one position (no count)."""
        if rule.variable:
            first, stop = _number(rule.first, at), _number(rule.stop, at)
            if rule.option and not self.options[rule.option]:
                stop = first + 1
            products = [self.product(rule, at | {rule.variable: k}, count) for k in range(first, stop)]
            return self.combine(torch.stack(products, -1), -1 % (products[0].dim() + 1))
        return self.product(rule, at, count)

    def product(self, rule: Sum, at: dict[str, int], count: int | None) -> Tensor:
        terms = [self.item(factor, at, count) for factor in rule.factors]
        if rule.part:
            row, column = (_number(index, at) for index in rule.part)
            parts = self.scores.diagonal(column - row, 1, 2)
            terms.append(parts[:, min(row, column)] if count is None else parts[:, :count])
        if not terms:
            return self.scores.new_zeros(self.batch, *([] if count is None else [count]))
        return terms[0] if len(terms) == 1 else terms[0] + terms[1]

    def item(self, term: Term, at: dict[str, int], count: int | None) -> Tensor:
        places = [_number(index, at) for index in term.at]
        if len(places) == 1:
            return self.known[term.item][places[0]]
        spans = self.known[term.item][places[1] - places[0]]
        return spans[:, places[0]] if count is None else spans[:, places[0] : places[0] + count]

    def goal(self, term: Term, size: int) -> Tensor:
        """The value of examples of a size; an empty structure has the value 0."""
        return self.item(term, {"n": size}, None) if size > 0 else self.scores.new_zeros(self.batch)


def _number(index: Index, at: dict[str, int]) -> int:
    return index.offset + (at[index.variable] if index.variable else 0)
