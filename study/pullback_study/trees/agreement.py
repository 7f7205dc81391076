"""Latent trees compared with a treebank and with uninformed trees: attachment scores with intervals, as tables and files."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from pullback.viz import Table, tree_conllu
from pullback_study.corpora import Parse
from pullback_study.runs import write_atomically
from pullback_study.trees.shape import BASELINES, Shape, baseline_trees, shape

Trees = Sequence[Sequence[int]]
GOLD = "gold"
PUNCTUATION = "PUNCT"  # the universal part of speech


class Score(NamedTuple):
    """A share in percent, and its 95% interval over sentences."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Agreement:
    """One system's trees against the gold ones; scores in percent of words."""

    name: str
    all_words: Score  # the attachment score
    without_punctuation: Score  # the same over the words that are not tagged as punctuation
    undirected: Score  # an arc counts in either direction; over all words
    alike: dict[str, Score]  # the share of words with the same head as in the trees of each baseline
    shape: Shape  # of the system's own trees


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
        return Score(math.nan, math.nan, math.nan)
    generator = np.random.default_rng(seed)
    values = np.empty(resamples)
    for k in range(resamples):
        drawn = generator.integers(len(wholes), size=len(wholes))
        whole = wholes[drawn].sum()
        values[k] = parts[drawn].sum() / whole if whole else np.nan
    low, high = np.nanquantile(values, [0.025, 0.975])
    return Score(*(100 * float(value) for value in (parts.sum() / wholes.sum(), low, high)))


def compare(parses: Sequence[Parse], systems: Mapping[str, Trees], *, seed: int = 0) -> list[Agreement]:
    """The systems (for each name the heads of every sentence), then the three baselines and the gold trees themselves.

    The seed is that of the random trees and of the intervals.
    """
    if not parses:
        raise ValueError("there are no sentences to compare trees on")
    gold = [parse.heads for parse in parses]
    baselines = baseline_trees([len(heads) for heads in gold], seed)
    rows: dict[str, Trees] = {**systems, **baselines, GOLD: gold}
    counted = [[tag != PUNCTUATION for tag in parse.tags] for parse in parses]
    return [
        Agreement(
            name=name,
            all_words=attachment(trees, gold, seed=seed),
            without_punctuation=attachment(trees, gold, counted=counted, seed=seed),
            undirected=attachment(trees, gold, undirected=True, seed=seed),
            alike={other: attachment(trees, plain, seed=seed) for other, plain in baselines.items()},
            shape=shape(trees),
        )
        for name, trees in rows.items()
    ]


def agreement_table(rows: Sequence[Agreement], title: str, notes: Sequence[str] = ()) -> Table:
    """Attachment scores with their intervals; the gold trees have a row in the other tables alone."""
    table = Table(title, ["trees", "attachment", "no punctuation", "undirected"])
    for row in rows:
        if row.name != GOLD:
            table.rows.append([row.name, *map(_with_interval, (row.all_words, row.without_punctuation, row.undirected))])
    table.notes = [*notes, "percent of words, with 95% intervals over sentences (bootstrap)"]
    return table


def likeness_table(rows: Sequence[Agreement]) -> Table:
    """The agreement of each system with the baselines."""
    left, right, random = BASELINES
    table = Table("Words with the same head as in ...", ["trees", *BASELINES])
    for row in rows:
        table.rows.append([row.name, *("" if name == row.name else _with_interval(row.alike[name]) for name in BASELINES)])
    table.notes = [
        f"percent of words; {left}: the head is the next word, {right}: the one before; {random}: one tree per sentence, "
        "uniform over projective trees with any number of roots"
    ]
    return table


def shape_table(shapes: Sequence[tuple[str, Shape]], title: str = "Shape of the trees") -> Table:
    """Depth, arcs and roots of each system's trees."""
    table = Table(title, ["trees", "depth", "arc length", "roots", "left arcs", "projective"])
    for name, each in shapes:
        table.rows.append([
            name, f"{each.depth:.2f}", _or_dash(each.arc_length, "{:.2f}"), f"{each.roots:.2f}",
            _or_dash(100 * each.left, "{:.1f}%"), f"{100 * each.projective:.1f}%",
        ])  # fmt: skip
    table.notes = [
        "depth: arcs on the longest path from the artificial root (a flat tree has 2), mean over sentences; "
        "left arcs: modifier left of its head"
    ]
    return table


def write_measures(folder: Path, parses: Sequence[Parse], systems: Mapping[str, Trees], rows: Sequence[Agreement]) -> None:
    """`agreement.json`, and the trees of each system as CoNLL-U with the treebank's sentence names."""
    content = json.dumps([_plain(dataclasses.asdict(row)) for row in rows], indent=1, allow_nan=False)
    write_atomically(folder / "agreement.json", content + "\n")
    for name, trees in systems.items():
        sentences = (
            tree_conllu(parse.tokens, heads, comments={"sent_id": parse.name, "model": name})
            for parse, heads in zip(parses, trees, strict=True)
        )
        write_atomically(folder / f"{name.replace(' ', '-')}.conllu", "".join(sentences))


def _plain(value: Any) -> Any:
    """Scores as objects with names, and what is not a number as null."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, tuple):
        return _plain(Score(*value)._asdict())
    return None if isinstance(value, float) and math.isnan(value) else value


def _with_interval(score: Score) -> str:
    return _or_dash(score.value, "{:.1f}" + f" [{score.low:.1f}, {score.high:.1f}]")


def _or_dash(value: float, form: str) -> str:
    return "-" if math.isnan(value) else form.format(value)
