"""Depth of trees, against the definition."""

import torch

from pullback import DependencyTree
from pullback_study.tasks.text.models import depths


def by_walking(heads):
    def arcs(word):
        return 0 if word == 0 else 1 + arcs(heads[word - 1])

    return max((arcs(word) for word in range(1, len(heads) + 1)), default=0)


def test_depths_of_all_small_trees():
    for n in range(1, 6):
        heads = DependencyTree(projective=False).heads(DependencyTree(projective=False).enumerate(n))
        assert depths(heads).tolist() == [by_walking(each) for each in heads.tolist()]


def test_chains_and_padding():
    assert depths(torch.arange(100)[None]).item() == 100
    assert depths(torch.tensor([[2, 0, 2, -1, -1], [0, 1, 2, 3, 4]])).tolist() == [2, 5]
