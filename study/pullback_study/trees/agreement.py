"""Agreement of two analyses of the same sentences, with intervals over sentences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

Trees = Sequence[Sequence[int]]


class Score(NamedTuple):
    """A share in percent, and its 95% interval over sentences."""

    value: float
    low: float
    high: float


def attachment(
    trees: Trees, gold: Trees, *, counted: Sequence[Sequence[bool]] | None = None, undirected: bool = False, seed: int = 0
) -> Score:
    """The share of words with the right head: the (unlabelled) attachment score, over all words of all sentences.

    Its interval is the 2.5% and 97.5% quantiles over 1000 resamples of whole sentences.

    Args:
        trees: the heads of each sentence, 0 the root.
        gold: the heads to agree with.
        counted: for each word, whether it counts; all do by default. Punctuation, for example, may be left out as a
            modifier; as a head it is still right or wrong.
        undirected: an arc between two words counts in either direction.
        seed: of the resampling.

    >>> attachment([[2, 0], [0, 1, 2]], [[2, 0], [2, 0, 2]]).value
    60.0
    >>> attachment([[2, 0], [0, 1, 2]], [[2, 0], [2, 0, 2]], undirected=True).value
    80.0
    """
    if len(trees) != len(gold):
        raise ValueError(f"there are {len(trees)} trees and {len(gold)} gold ones; each sentence needs both")
    right, total = np.zeros(len(gold)), np.zeros(len(gold))
    for i, (heads, golden) in enumerate(zip(trees, gold, strict=True)):
        if len(heads) != len(golden):
            raise ValueError(f"sentence {i + 1} has {len(heads)} heads and {len(golden)} gold ones")
        for word, head in enumerate(heads, 1):
            if counted is None or counted[i][word - 1]:
                total[i] += 1
                right[i] += head == golden[word - 1] or bool(undirected and head and golden[head - 1] == word)
    return ratio(right, total, seed=seed)


def ratio(parts: np.ndarray, wholes: np.ndarray, *, seed: int = 0, resamples: int = 1000) -> Score:
    """100 * sum(parts) / sum(wholes) with a percentile bootstrap over the entries; NaN if there is nothing to count."""
    if wholes.sum() == 0:
        return Score(float("nan"), float("nan"), float("nan"))
    generator = np.random.default_rng(seed)
    values = np.empty(resamples)
    for k in range(resamples):
        drawn = generator.integers(len(wholes), size=len(wholes))
        whole = wholes[drawn].sum()
        values[k] = parts[drawn].sum() / whole if whole else np.nan
    low, high = np.nanquantile(values, [0.025, 0.975])
    return Score(*(100 * float(value) for value in (parts.sum() / wholes.sum(), low, high)))
