"""The text of a structure's compiled module: the loops of its recursion, and the kernels around them."""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from pathlib import Path

from pullback.inference.engine.rules import descent, inside, logarithms, outside
from pullback.inference.engine.rules.definition import Recursion
from pullback.inference.engine.rules.inside import arrays
from pullback.inference.engine.rules.templates import ARGMAX, HEAD, LOGS, MARGINALS, PRODUCT, SAMPLE, SCALED
from pullback.inference.engine.rules.text import Analysis, Text

FOLDERS = ("eisner", "cky")
"""Folders of `inference/` whose `rules.py` has a `RECURSION`."""


def module(folder: str) -> str:
    """Returns the text of `<folder>/generated.py`."""
    recursion = importlib.import_module(f"pullback.inference.{folder}.rules").RECURSION
    analysis, text = Analysis(recursion), Text()
    inside.weights(text, analysis)
    outside.outside(text, analysis)
    inside.maxima(text, analysis)
    logarithms.write(text, analysis)
    descent.goal_place(text, analysis)
    descent.write(text, analysis)
    words = _words(recursion, analysis) | {"folder": folder}
    kernels = "".join(_fill(template, words) for template in (ARGMAX, MARGINALS, PRODUCT, SCALED, SAMPLE, LOGS))
    return _fill(HEAD, words) + "\n".join(text.lines) + "\n" + kernels


def path_of(folder: str) -> Path:
    return Path(__file__).parents[2] / folder / "generated.py"


def _fill(template: str, words: dict[str, str]) -> str:
    for name, word in words.items():
        template = template.replace(f"<{name}>", word)
    return template


def _words(recursion: Recursion, analysis: Analysis) -> dict[str, str]:
    """The differences between the kernels of all structures."""
    ins, outs = arrays(analysis.inside), arrays(analysis.outside)
    sizes = {name: "line" if name.startswith(("inside_", "outside_")) else "square" for name in (*ins, *outs)}
    kinds = ["line" if len(rule.goal.at) == 1 else "square" for rule in analysis.sums]
    choices = dict(zip(analysis.choices.values(), kinds, strict=True))
    kept = dict(zip(logarithms.sums(analysis), kinds, strict=True))
    parts = [rule.part for rule in recursion.rules if rule.part]
    return {
        "options": "".join(f"{option}, " for option in recursion.options),
        "option_names": repr(recursion.options).replace("'", '"'),
        "upper": str(all([i.variable for i in part] in (["i", "i"], ["i", "j"]) for part in parts)),
        "goal": analysis.inside.name(recursion.goal.item),
        "inside": ", ".join(ins),
        "outside": ", ".join(outs),
        "choices": ", ".join(choices),
        "sums": ", ".join(kept),
        "best_dtype": "np.float64" if recursion.wide else "dtype",
        "carve_inside": _carve(ins, sizes, "dtype"),
        "carve_best": _carve(ins, sizes, "np.float64" if recursion.wide else "dtype"),
        "carve_outside": _carve(outs, sizes, "dtype"),
        "carve_choices": _carve(choices, choices, "np.int16"),
        "carve_tangents": _carve([f"d_{name}" for name in (*ins, *outs)], {f"d_{n}": s for n, s in sizes.items()}, "dtype"),
        "carve_exponents": _carve([f"e_{name}" for name in (*ins, *outs)], {f"e_{n}": s for n, s in sizes.items()}, "whole"),
        "carve_inside_exponents": _carve([f"e_{name}" for name in ins], {f"e_{n}": s for n, s in sizes.items()}, "whole"),
        "scaled_inside": ", ".join(f"({name}, e_{name})" for name in ins),
        "scaled_outside": ", ".join(f"({name}, e_{name})" for name in outs),
        "scaled_pairs_inside": ", ".join(f"({name}, d_{name}, e_{name})" for name in ins),
        "scaled_pairs_outside": ", ".join(f"({name}, d_{name}, e_{name})" for name in outs),
        "carve_logs": "".join(_carve_logs(name, sizes[name]) for name in ins).strip(),
        "carve_sums": "".join(_carve_sum(name, kind) for name, kind in kept.items()).strip(),
        "pair_inside": ", ".join(f"({name}, d_{name})" for name in ins),
        "pair_outside": ", ".join(f"({name}, d_{name})" for name in outs),
        "clear_logs": "\n            ".join(f"_clear({name}, {sizes[name]}, tangent)" for name in ins),
        "weight_charts": str(1 + sum(s == "square" for s in sizes.values())),
        "best_charts": str(1 + 2 * sum(sizes[n] == "square" for n in ins) + sum(k == "square" for k in kinds)),
        "log_charts": str(2 + 6 * sum(sizes[n] == "square" for n in ins) + 5 * sum(k == "square" for k in kinds)),
        "lines": str(4 + 12 * sum(s == "line" for s in sizes.values()) + 5 * sum(k == "line" for k in kinds)),
    }


def _carve(names: Iterable[str], sizes: dict[str, str], dtype: str) -> str:
    return "\n    ".join(f"{name}, at = carve(work, at, {sizes[name]}, {dtype})" for name in names)


def _carve_logs(name: str, size: str) -> str:
    fields = {"high": size, "middle": size, "low": size, "tangent": f"{size} * tangent", "out": f"{size} * down"}
    fields["moved"] = f"{size} * tangent * down"
    lines = [f"    {name}_{field}, at = carve(work, at, {count}, np.float64)\n" for field, count in fields.items()]
    value = ", ".join(f"{name}_{field}" for field in ("high", "middle", "low"))
    return "".join(lines) + f"    {name} = (({value}), {name}_tangent, {name}_out, {name}_moved)\n"


def _carve_sum(name: str, size: str) -> str:
    fields = {"high": size, "middle": size, "low": size, "tangent": f"{size} * tangent"}
    lines = [f"    {name}_{field}, at = carve(work, at, {count}, np.float64)\n" for field, count in fields.items()]
    value = ", ".join(f"{name}_{field}" for field in ("high", "middle", "low"))
    inverse = f"    {name}_inverse, at = carve(work, at, {size}, dtype)\n"
    return "".join(lines) + inverse + f"    {name} = (({value}), {name}_inverse, {name}_tangent)\n"
