"""What separates good from bad estimators: recovery against the bias and the variance of their gradients."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from pullback import diagnose
from pullback_study.results.recovery.plans import ESTIMATORS, METHODS, TASK
from pullback_study.results.tables import Table

_MEASURES = {
    "cosine": "cosine of the mean",
    "single_cosine": "cosine of one draw",
    "scaled_bias": "scaled bias",
    "variance": "variance",
    "zeros": "share of zeros",
}


Gradient = Mapping[str, float]
"""By measure, the median over examples of what `diagnose` finds, relative to the norm of the exact gradient."""


def gradients(step_sizes: Mapping[str, float | None], examples: int = 12, draws: int = 200) -> dict[str, Gradient]:
    """Of each estimator, with its step size, on planted trees of 4 words, at the first parameters of a model, by enumeration.

    Each example is from a bed of its own; the draws are for the mean and the variance.
    """
    found: dict[str, Gradient] = {}
    for name in (name for name in ESTIMATORS if name in step_sizes):
        options = {"step_size": step_sizes[name], "steps": 1}
        estimator = METHODS[name].build(**{key: value for key, value in options.items() if value is not None})
        assert estimator is not None
        measured = []
        for seed in range(examples):
            structure, scores, downstream = _example(seed)
            torch.manual_seed(seed)
            one = diagnose(estimator, structure, scores, downstream, draws)
            norm = max(float(one.exact.norm()), 1e-30)
            values = one.cosine, one.single_cosine, one.scaled_bias / norm, one.variance / norm**2, one.zeros
            measured.append(dict(zip(_MEASURES, values, strict=True)))
        found[name] = {key: statistics.median(each[key] for each in measured) for key in _MEASURES}
    return found


def _example(seed: int):  # type: ignore[no-untyped-def]
    """A structure, scores `[1, *parts]` and a loss of one example of the bed, at the model's first parameters."""
    from pullback_study.tasks.planted.train import Model, find_bed

    bed = find_bed(TASK.configure(estimator="marginals", n=4, seed=seed, dtype="float64"))
    generator = torch.Generator().manual_seed(seed)
    drawn = bed.draw(1, bed.plant(generator), generator)
    inputs = {name: value[None].double() for name, value in drawn.items()}
    parameters = Model(bed, encoder=True, bag=False)
    named = parameters.named(parameters.initial(seed)[None])

    def downstream(z: Tensor) -> Tensor:
        count = len(z)
        every = {name: value.expand(1, count, *value.shape[2:]) for name, value in inputs.items()}
        return F.softplus((1 - 2 * every["label"]) * bed.logits(named, every, z[None]))[0]

    return bed.structure, bed.scores(named, inputs)[0], downstream


def relation(found: Mapping[str, Gradient], recovery: Mapping[str, Mapping[str, float]], title: str) -> Table:
    """A row for each estimator, the best recovery first, and rank correlations below.

    `recovery` has, for each column of the table, that of each estimator; the first column decides which rows there are.
    """
    first = next(iter(recovery.values()))
    names = sorted((name for name in found if name in first), key=lambda name: -first[name])
    rows = [
        [f"`{name}`", *(f"{each[name]:.1f}" if name in each else "" for each in recovery.values())]
        + [f"{found[name][key]:.2g}" for key in _MEASURES]
        for name in names
    ]
    for column, values in recovery.items():
        both = [name for name in names if name in values]
        if len(both) > 2:
            pairs = ([values[name] for name in both], [[found[name][key] for name in both] for key in _MEASURES])
            correlations = [f"{_spearman(pairs[0], measured):+.2f}" for measured in pairs[1]]
            rows.append([f"rank correlation with {column}", *[""] * len(recovery), *correlations])
    notes = ["Gradients: medians over 12 examples of planted trees of 4 words at the first parameters, 200 draws each."]
    return Table.of_words(title, ["Estimator", *recovery, *_MEASURES.values()], rows, notes)


def _spearman(a: Sequence[float], b: Sequence[float]) -> float:
    def ranks(values: Sequence[float]) -> np.ndarray:
        array = np.asarray(values)
        return (array[:, None] > array).sum(1) + (array[:, None] == array).sum(1) / 2

    first, second = ranks(a), ranks(b)
    return float(np.corrcoef(first, second)[0, 1]) if first.std() and second.std() else math.nan
