"""Latent trees compared with a treebank and with uninformed trees."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pullback_study.corpora import Parse
from pullback_study.trees.agreement import Score, Trees, attachment
from pullback_study.trees.baselines import left_branching, random_trees, right_branching
from pullback_study.trees.shape import Shape, shape

GOLD = "gold"
BASELINES = ("left-branching", "right-branching", "random")
PUNCTUATION = "PUNCT"  # the universal part of speech


@dataclass(frozen=True)
class Agreement:
    """One system's trees against the gold ones; scores in percent of words.

    Args:
        name: of the system.
        all_words: the attachment score.
        without_punctuation: the same over the words that are not tagged as punctuation.
        undirected: an arc counts in either direction; over all words.
        alike: the share of words with the same head as in the trees of each baseline.
        shape: of the system's own trees.
    """

    name: str
    all_words: Score
    without_punctuation: Score
    undirected: Score
    alike: dict[str, Score]
    shape: Shape


def compare(parses: Sequence[Parse], systems: Mapping[str, Trees], *, seed: int = 0) -> list[Agreement]:
    """The systems, then the three baselines and the gold trees themselves.

    Left-branching: the head is the next word; right-branching: the one before; random: one tree per sentence, uniform over
    the projective trees with any number of roots.

    Args:
        parses: the treebank.
        systems: for each name the heads of every sentence, in the order of the treebank.
        seed: of the random trees and of the intervals.
    """
    if not parses:
        raise ValueError("there are no sentences to compare trees on")
    clash = set(systems) & {*BASELINES, GOLD}
    if clash:
        raise ValueError(f"a system cannot be called {', '.join(sorted(clash))}: that is a row of its own")
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


def baseline_trees(lengths: Sequence[int], seed: int) -> dict[str, Trees]:
    """The trees of each baseline for sentences of these lengths."""
    left, right, random = BASELINES
    return {
        left: [left_branching(n) for n in lengths],
        right: [right_branching(n) for n in lengths],
        random: random_trees(lengths, seed),
    }
