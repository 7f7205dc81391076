"""The text of a structure's compiled module: the loops of its recursion, and the kernels around them."""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from pullback.inference.engine.rules import descent, inside, outside
from pullback.inference.engine.rules.definition import Recursion
from pullback.inference.engine.rules.inside import arrays
from pullback.inference.engine.rules.templates import ARGMAX, ENTROPIES, HEAD, MARGINALS, PRODUCT, SAMPLE, START
from pullback.inference.engine.rules.text import Analysis, Text

FOLDERS = ("eisner", "cky")
"""Folders of `inference/` whose `rules.py` has a `RECURSION`."""

DTYPES = {"": "dtype", "d_": "dtype", "e_": "whole", "h_": "np.float64", "g_": "np.float64", "n_": "np.float64"}
"""Of the arrays of a chart, by the beginnings of their names: values, derivatives, exponents, and entropies."""


class Kind(NamedTuple):
    """How the kernels of a kind of number differ.

    Attributes:
        name: what theirs end with.
        of: the same in words.
        exponents: the arrays that a chart has more than weights do.
        to_weights: from scores to weights.
        finish: the status of each example and its log-partition, before the arguments that all kinds have.
    """

    name: str
    of: str
    exponents: tuple[str, ...]
    to_weights: str
    finish: str


WEIGHTS = Kind(
    "", "", (), "to_weights(weights, n, side, lane_lengths, log_scale, peaks, factor)",
    "finish(group, order, codes, peaks, lane_lengths, log_scale, <goal_value>, bases, ",
)  # fmt: skip
SCALED = Kind(
    "_scaled", ", with an exponent for each number", ("e_",),
    "to_scaled(weights, e_weights, n, side, UPPER, lane_lengths, log_scale, factor)",
    "finish_scaled(group, order, codes, lane_lengths, log_scale, <goal_value>, e_<goal_value>, bases, ",
)  # fmt: skip
FAR = Kind(
    "_far", ", for scores of any size", ("e_", "h_", "g_"),
    "to_far((weights, e_weights, h_weights, g_weights), n, side, UPPER)",
    "finish_far(group, order, codes, lane_lengths, <goal_value>, e_<goal_value>, h_<goal_value>, g_<goal_value>, bases, ",
)  # fmt: skip


def module(folder: str) -> str:
    """Returns the text of `<folder>/generated.py`."""
    recursion = importlib.import_module(f"pullback.inference.{folder}.rules").RECURSION
    analysis, text = Analysis(recursion), Text()
    inside.weights(text, analysis)
    outside.outside(text, analysis)
    inside.maxima(text, analysis)
    descent.goal_place(text, analysis)
    descent.write(text, analysis)
    words = _words(recursion, analysis) | {"folder": folder}
    kernels, charts = _fill(ARGMAX, _best_words(recursion, analysis) | words), []
    for kind in (WEIGHTS, SCALED, FAR):
        fields = "", *kind.exponents
        for name, template, own in (
            ("marginals", MARGINALS, fields), ("product", PRODUCT, ("", "d_", *kind.exponents)), ("sample", SAMPLE, fields),
            ("entropies", ENTROPIES, (*fields, "n_")),
        ):  # fmt: skip
            if template is not ENTROPIES or kind is FAR:
                kernels += _fill(template, _kind_words(kind, own, analysis) | words)
                charts.append(f'"{name}{kind.name}": {len(own) * _squares(analysis)},')
    head = _fill(HEAD, words | {"charts": "\n    ".join(charts)})
    return head + "\n".join(text.lines) + "\n" + kernels


def path_of(folder: str) -> Path:
    return Path(__file__).parents[2] / folder / "generated.py"


def _fill(template: str, words: dict[str, str]) -> str:
    lines = template.replace("<start>\n", START).splitlines()
    text = "\n".join(line for line in lines if words.get(line.strip()[1:-1]) != "") + "\n"  # lines of an empty word go
    for name, word in words.items():
        text = text.replace(f"<{name}>", word)
    return text


def _words(recursion: Recursion, analysis: Analysis) -> dict[str, str]:
    """The differences between the kernels of all structures."""
    ins, outs, sums = arrays(analysis.inside), arrays(analysis.outside), _sums(analysis)
    lines = len(ins) + len(outs) + 1 - _squares(analysis)
    parts = [rule.part for rule in recursion.rules if rule.part]
    return {
        "options": "".join(f"{option}, " for option in recursion.options),
        "option_names": repr(recursion.options).replace("'", '"'),
        "upper": str(all([i.variable for i in part] in (["i", "i"], ["i", "j"]) for part in parts)),
        "goal_value": analysis.inside.name(recursion.goal.item),
        "best_charts": str(1 + 2 * sum(_sizes(ins)[n] == "square" for n in ins) + list(sums.values()).count("square")),
        "lines": str(8 + 5 * lines + 2 * list(sums.values()).count("line")),
    }


def _squares(analysis: Analysis) -> int:
    """How many charts of the size of weights a kernel has for each field of its numbers."""
    return 1 + list(_sizes([*arrays(analysis.inside), *arrays(analysis.outside)]).values()).count("square")


def _sizes(names: Iterable[str]) -> dict[str, str]:
    return {name: "line" if name.startswith(("inside_", "outside_")) else "square" for name in names}


def _sums(analysis: Analysis) -> dict[str, str]:
    """The sizes of the arrays of choices."""
    sizes = ["line" if len(rule.goal.at) == 1 else "square" for rule in analysis.sums]
    return dict(zip(analysis.choices.values(), sizes, strict=True))


def _best_words(recursion: Recursion, analysis: Analysis) -> dict[str, str]:
    """The words of the best structure's kernel."""
    ins, choices, dtype = arrays(analysis.inside), _sums(analysis), "np.float64" if recursion.wide else "dtype"
    lines = [_carve("weights", "parts", "dtype"), *(_carve(name, size, dtype) for name, size in _sizes(ins).items())]
    lines += [_carve(name, size, "np.int16") for name, size in choices.items()]
    carve = "\n    ".join(lines)
    return {
        "carve": carve, "whole": "", "whole_of": "", "inside": ", ".join(ins), "choices": ", ".join(choices),
        "goal": analysis.inside.name(recursion.goal.item),
    }  # fmt: skip


def _kind_words(kind: Kind, fields: tuple[str, ...], analysis: Analysis) -> dict[str, str]:
    """The words of a kernel whose numbers have these fields."""
    ins, outs = arrays(analysis.inside), arrays(analysis.outside)
    sizes = {"weights": "parts", **_sizes([*ins, *outs]), "seeds": "line"}
    lines = [_carve(field + name, size, DTYPES[field]) for name, size in sizes.items() for field in fields]
    scaled, result = bool(kind.exponents), "value" if "n_" in fields else "log_z"

    def charts(*names: str) -> str:
        found = [", ".join(field + name for field in fields) for name in names]
        return ", ".join(f"({chart})" if len(fields) > 1 else chart for chart in found)

    return {
        "kind": kind.name, "of": kind.of, "like": "like, " if scaled else "", "carve": "\n    ".join(lines),
        "whole": ", whole" if scaled else "", "whole_of": ", like.dtype" if scaled else "",
        "weights": charts("weights"), "inside": charts(*ins), "outside": charts(*outs), "seeds": charts("seeds"),
        "goal": charts(analysis.inside.name(analysis.recursion.goal.item)),
        "to_weights": kind.to_weights, "finish": f"{kind.finish}{result}, status)",
        "flatten": f"flatten({charts('weights')}, n * side)" if scaled else "",
        "drawn": "draw_scaled(" if scaled else "<goal_value>[bases[lane]] >= peaks[lane] / limit_of(scores) and draw(",
        "least": "" if scaled else "peaks[lane] / limit_of(scores), ",
    }  # fmt: skip


def _carve(name: str, size: str, dtype: str) -> str:
    return f"{name}, at = carve(work, at, {size}, {dtype})"
