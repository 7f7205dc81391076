import itertools
import math

import pytest
from hypothesis import given

from pullback.structures import DependencyTree
from pullback_study.trees.measures import baseline_trees, depth, is_projective, shape
from viz.drawn import trees


def longest_path(heads):
    """By trying every sequence of words that starts at the root and follows arcs."""
    n, best = len(heads), 0
    for size in range(1, n + 1):
        for path in itertools.permutations(range(1, n + 1), size):
            if all(heads[word - 1] == above for above, word in zip((0, *path), path, strict=False)):
                best = size
    return best


@given(trees(max_size=6))
def test_depth_is_the_longest_path(tree):
    assert depth(tree[1]) == longest_path(tree[1])


def test_depth_of_the_extremes():
    assert [depth(heads) for heads in ([], [0], [0, 0, 0], [2, 0, 2])] == [0, 1, 1, 2]
    assert depth([*range(2, 10), 0]) == 9
    assert depth(range(5000)) == 5000


def test_projective_trees_are_those_of_the_structure():
    every, projective = DependencyTree(projective=False), DependencyTree(projective=True)
    wanted = {tuple(heads) for heads in projective.heads(projective.enumerate(4)).tolist()}
    found = {tuple(heads) for heads in every.heads(every.enumerate(4)).tolist() if is_projective(heads)}
    assert found == wanted


def test_shape_of_two_trees_by_hand():
    """The arcs between words: 2 -> 1, 2 -> 4 and 4 -> 3 in the first; in the second tree 1 -> 3, under a second root."""
    both = shape([[2, 0, 4, 2], [0, 0, 1], []])
    assert both.depth == (3 + 2) / 2
    assert both.arc_length == (1 + 2 + 1 + 2) / 4
    assert both.roots == (1 + 2) / 2
    assert both.left == 2 / 4
    assert both.projective == 1 / 2


def test_shape_without_arcs_between_words():
    assert math.isnan(shape([[0, 0]]).arc_length)
    with pytest.raises(ValueError, match="no trees"):
        shape([[]])


def test_random_trees_are_uniform_over_projective_ones():
    tree = DependencyTree()
    every = [tuple(heads) for heads in tree.heads(tree.enumerate(3)).tolist()]
    drawn = [tuple(heads) for heads in baseline_trees([3] * 12000, seed=0)["random"]]
    assert set(drawn) == set(every)
    expected = len(drawn) / len(every)
    assert all(abs(drawn.count(heads) - expected) < 5 * math.sqrt(expected) for heads in every)


def test_random_trees_keep_lengths_and_depend_on_the_seed():
    lengths = [5, 0, 17, 1, 30] * 60
    drawn = baseline_trees(lengths, seed=1)["random"]
    assert [len(heads) for heads in drawn] == lengths
    assert all(is_projective(heads) and depth(heads) > 0 for heads in drawn if heads)
    assert drawn == baseline_trees(lengths, seed=1)["random"] != baseline_trees(lengths, seed=2)["random"]
