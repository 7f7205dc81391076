"""`enumerate` is the oracle of everything else, so it is tested against counting formulas and definitions."""

import pytest
import torch

import pullback as pb
from oracles import is_tree

COUNTS = {  # (projective, multiroot): the number of trees of 0, 1, 2, ... words
    (True, True): [1, 1, 3, 12, 55, 273],
    (True, False): [1, 1, 2, 7, 30, 143],
    (False, True): [1, *((n + 1) ** (n - 1) for n in range(1, 6))],  # Cayley's formula
    (False, False): [1, *(n ** (n - 1) for n in range(1, 6))],
}
KINDS = pytest.mark.parametrize(("projective", "multiroot"), COUNTS)
SIZES = pytest.mark.parametrize("n", range(6))


@KINDS
@SIZES
def test_as_many_trees_as_the_formula_says(projective, multiroot, n):
    trees = pb.DependencyTree(projective=projective, multiroot=multiroot).enumerate(n)
    assert trees.shape == (COUNTS[projective, multiroot][n], n, n)
    assert len({tuple(z.flatten().tolist()) for z in trees}) == len(trees)


@KINDS
@SIZES
def test_each_is_a_tree_by_definition(projective, multiroot, n):
    trees = pb.DependencyTree(projective=projective, multiroot=multiroot).enumerate(n)
    assert ((trees == 0) | (trees == 1)).all()
    assert (trees.sum(1) == 1).all()
    for z in trees:
        assert is_tree(z.argmax(0).tolist() if n else [], projective, multiroot)


def test_a_projective_tree_has_no_arc_over_a_word_attached_to_the_root():
    crossing = torch.zeros(3, 3)
    crossing[1, 1] = crossing[0, 0] = crossing[0, 2] = 1  # root -> 1 crosses 0 -> 2
    assert not (pb.DependencyTree().enumerate(3) == crossing).all((1, 2)).any()
    assert (pb.DependencyTree(projective=False).enumerate(3) == crossing).all((1, 2)).any()


@pytest.mark.parametrize("n", range(1, 6))
def test_the_classes_of_a_categorical(n):
    assert torch.equal(pb.Categorical().enumerate(n), torch.eye(n))
