"""Heads as treebanks write them, and the convention with the root as token 0."""

import pytest
import torch

import pullback as pb


def test_heads_of_a_tree():
    """The cat sleeps: sleeps hangs from the root, cat from sleeps, the from cat."""
    z = torch.zeros(3, 3)
    z[2, 2] = z[2, 1] = z[1, 0] = 1
    assert pb.DependencyTree().heads(z).tolist() == [2, 3, 0]


def test_heads_of_padding_are_minus_one(tree):
    z = tree.whole(torch.tensor([3, 0, 1])).argmax(tree.random(3, n=3))
    heads = tree.whole().heads(z)
    assert heads.dtype == torch.long
    assert (heads[0] >= 0).all()
    assert heads[1:].tolist() == [[-1, -1, -1], [0, -1, -1]]


@pytest.mark.parametrize("n", [0, 1, 3])
def test_heads_say_everything_about_a_tree(tree, n):
    z = tree.whole().enumerate(n)
    heads = tree.whole().heads(z)
    assert heads.shape == (len(z), n)
    for one, row in zip(z, heads.tolist(), strict=True):
        for word, head in enumerate(row):
            assert one[word if head == 0 else head - 1, word] == 1


def test_heads_keep_the_leading_dimensions():
    z = pb.DependencyTree().argmax(torch.zeros(2, 3, 4, 4))
    assert pb.DependencyTree().heads(z).shape == (2, 3, 4)


@pytest.mark.parametrize("shape", [(4,), (2, 3)])
def test_heads_need_a_square(shape):
    with pytest.raises(ValueError, match=r"z has shape .*; a DependencyTree needs \[\.\.\., n, n\]"):
        pb.DependencyTree().heads(torch.zeros(shape))


@pytest.mark.parametrize("n", [0, 1, 4])
@pytest.mark.parametrize("batch", [(), (2,), (2, 3)], ids=str)
def test_root_first_and_back(batch, n):
    packed = torch.randn(*batch, n, n, generator=torch.Generator().manual_seed(0))
    rooted = pb.DependencyTree.to_root_first(packed)
    assert rooted.shape == (*batch, n + 1, n + 1)
    assert torch.equal(pb.DependencyTree.from_root_first(rooted), packed)


def test_root_first_layout():
    packed = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    inf = torch.inf
    rooted = pb.DependencyTree.to_root_first(packed, fill=-inf)
    assert rooted.tolist() == [[-inf, 1.0, 4.0], [-inf, -inf, 2.0], [-inf, 3.0, -inf]]


def test_the_converters_are_differentiable():
    packed = torch.randn(2, 3, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0), requires_grad=True)
    assert torch.autograd.gradcheck(pb.DependencyTree.to_root_first, packed)
    rooted = torch.randn(2, 4, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0), requires_grad=True)
    assert torch.autograd.gradcheck(pb.DependencyTree.from_root_first, rooted)


def test_the_converters_take_half_precision_and_integers():
    heads = pb.DependencyTree.to_root_first(torch.eye(3, dtype=torch.long))
    assert heads.dtype == torch.long
    assert pb.DependencyTree.from_root_first(torch.zeros(4, 4, dtype=torch.float16)).dtype == torch.float16
