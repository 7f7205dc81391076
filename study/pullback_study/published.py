"""What the paper published (`paper.json` beside this file): its tables, the settings of its models, the trees that it prints.

The settings are learning rates and step sizes, from its table of training details. Where it lists no rate, the grid decides.
For STE-I it lists no step size: with one inner step and Adam its size does not matter.
"""

from __future__ import annotations

import json
from importlib import resources
from typing import Any, NamedTuple

_PAPER: dict[str, Any] = json.loads(resources.files("pullback_study").joinpath("paper.json").read_text())


def rows(study: str) -> dict[str, Any]:
    """All rows of one of the two tables, `synthetic` and `structured`."""
    return _PAPER[study]["rows"]


def settings(task: str) -> dict[str, tuple[float, float | None]]:
    """By row, the learning rate and the step size; none for a task that the paper does not have."""
    return {name: (rate, size) for name, (rate, size) in _PAPER["settings"].get(task, {}).items()}


class PrintedTree(NamedTuple):
    """A tree of its appendix, and the models that it is reported for; heads: 0 is the root."""

    tokens: tuple[str, ...]
    heads: tuple[int, ...]
    models: tuple[str, ...]

    @property
    def label(self) -> str:
        return f"the paper's {', '.join(self.models)}"


SENTENCES = tuple(tuple(each["sentence"].split()) for each in _PAPER["trees"])
PRINTED = tuple(
    PrintedTree(tokens, tuple(tree["heads"]), tuple(tree["models"]))
    for tokens, each in zip(SENTENCES, _PAPER["trees"], strict=True)
    for tree in each["printed"]
)


def printed_for(estimator: str) -> list[PrintedTree]:
    """The paper's own trees of an estimator, in the order of the sentences; not all have one for each."""
    return [tree for tree in PRINTED if estimator in (model.lower() for model in tree.models)]
