import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pullback_study.trees.measures import attachment, ratio
from viz.drawn import trees


@st.composite
def two_analyses(draw):
    """Heads of the same sentences by two systems."""
    pairs = []
    for _ in range(draw(st.integers(1, 3))):
        first, second = draw(trees(max_size=6))[1], draw(trees(max_size=6))[1]
        n = min(len(first), len(second))
        pairs.append(([h if h <= n else 0 for h in first[:n]], [h if h <= n else 0 for h in second[:n]]))
    return [a for a, _ in pairs], [b for _, b in pairs]


@given(two_analyses())
def test_scores_are_shares_of_arcs(both):
    found, gold = both
    directed = undirected = words = 0
    for mine, theirs in zip(found, gold, strict=True):
        arcs, wanted = ({(h, m) for m, h in enumerate(heads, 1)} for heads in (mine, theirs))
        directed += len(arcs & wanted)
        undirected += sum(1 for h, m in arcs if (h, m) in wanted or (m, h) in wanted)
        words += len(mine)
    assert attachment(found, gold).value == pytest.approx(100 * directed / words)
    assert attachment(found, gold, undirected=True).value == pytest.approx(100 * undirected / words)


def test_words_that_do_not_count():
    score = attachment([[2, 0, 1]], [[2, 0, 2]], counted=[[True, True, False]])
    assert score.value == 100.0
    assert math.isnan(attachment([[0]], [[0]], counted=[[False]]).value)


def test_sentences_must_match():
    with pytest.raises(ValueError, match="1 trees and 2 gold"):
        attachment([[0]], [[0], [0]])
    with pytest.raises(ValueError, match="of the same length"):
        attachment([[0], [0]], [[0], [0, 1]])


def test_the_interval_is_that_of_a_binomial_where_sentences_have_one_word():
    parts = np.repeat([1.0, 0.0], [300, 700])
    score = ratio(parts, np.ones(1000))
    half = 1.96 * 100 * math.sqrt(0.3 * 0.7 / 1000)
    assert score.value == pytest.approx(30.0)
    assert score.value - score.low == pytest.approx(half, rel=0.15)
    assert score.high - score.value == pytest.approx(half, rel=0.15)
    assert score == ratio(parts, np.ones(1000))
    assert score != ratio(parts, np.ones(1000), seed=1)


def test_words_of_one_sentence_are_not_independent():
    """The same words in ten times fewer sentences: the interval is wider."""
    alone = ratio(np.repeat([1.0, 0.0], [300, 700]), np.ones(1000))
    together = ratio(np.repeat([10.0, 0.0], [30, 70]), np.full(100, 10.0))
    assert together.value == pytest.approx(alone.value)
    assert together.high - together.low > 2 * (alone.high - alone.low)
