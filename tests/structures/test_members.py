"""Membership: which tensors are structures, and that what is learnt from is one."""

from __future__ import annotations

import pytest
import torch

import pullback as pb
from cases import ENTRIES
from each import each
from oracles import mask_of


def _known(entry, example, z):
    """Whether `[N, *parts]` are in the enumeration of an example, on its parts."""
    mask = mask_of(entry)[example]
    own = torch.where(mask, z, 0.0).flatten(1)
    return (own[:, None] == entry.all_of(example).flatten(1)[None]).all(-1).any(-1)


def _changed(entry, example, generator):
    """Structures of an example with up to two entries flipped, moved to other places, or averaged."""
    z = entry.all_of(example)
    pick = z[torch.randint(len(z), (60,), generator=generator)]
    for count in (0, 1, 2):
        places = torch.randint(pick[0].numel(), (len(pick), count), generator=generator)
        flipped = pick.flatten(1).clone()
        for place in places.unbind(1):
            rows = torch.arange(len(pick))
            flipped[rows, place] = 1 - flipped[rows, place]
        yield flipped.reshape(pick.shape)
    yield pick.flatten(1)[:, torch.randperm(pick[0].numel(), generator=generator)].reshape(pick.shape)
    yield (pick + pick.flip(0)) / 2
    yield pick * 2
    yield -pick


def test_contains_agrees_with_enumeration(entry):
    generator = torch.Generator().manual_seed(0)
    for example in range(len(entry.sizes)):
        tried = torch.cat(list(_changed(entry, example, generator)))
        sizes = [torch.tensor(size) for size in entry.sizes[example]]
        found = entry.make(*sizes).contains(tried)
        assert torch.equal(found, _known(entry, example, tried))
        assert found.any()


def test_padding_of_members_is_not_read(entry):
    mask = mask_of(entry)
    gold = torch.stack([entry.all_of(example)[-1] for example in range(len(entry.sizes))])
    for garbage in (torch.nan, torch.inf, -torch.inf, 1.0, 7.0):
        assert entry.structure().contains(torch.where(mask, gold, garbage)).all()
    for wrong in (torch.nan, torch.inf, 0.5):
        spoilt = torch.where(mask, wrong, 0.0)
        assert torch.equal(entry.structure().contains(spoilt), ~mask.flatten(1).any(1))


@each("dtype", [torch.bool, torch.long, torch.float16, torch.float32])
def test_members_of_any_dtype_and_layout(entry, dtype):
    gold = torch.stack([entry.all_of(example)[-1] for example in range(len(entry.sizes))]).to(dtype)
    assert entry.structure().contains(gold).all()
    several = torch.stack([gold, gold]).transpose(0, 1).contiguous().transpose(0, 1)
    assert entry.structure().contains(several).shape == (2, len(entry.sizes))
    assert entry.structure(slice(0, 0)).contains(gold[:0]).shape == (0,)


@pytest.mark.parametrize(
    ("structure", "shape", "expected"),
    [
        (pb.Alignment(), (2, 0, 3), [False, False]),
        (pb.Alignment(), (2, 0, 0), [True, True]),
        (pb.Alignment([0, 0], [0, 2]), (2, 0, 3), [True, False]),
        (pb.Subset([0, 2]), (2, 0), [True, False]),
        (pb.Subset([0, 2], [1, 1]), (2, 1), [True, False]),
        (pb.Matching(), (1, 0, 3), [True]),
        (pb.Matching([2], [1]), (1, 2, 3), [False]),
        (pb.DependencyTree(), (1, 0, 0), [True]),
        (pb.LinearChain(), (1, 0, 2, 2), [True]),
        (pb.Segmentation([0, 3]), (2, 3, 0, 1), [True, False]),
    ],
    ids=str,
)  # fmt: skip
def test_the_empty_structure(structure, shape, expected):
    assert structure.contains(torch.zeros(shape)).tolist() == expected


def test_log_probabilities_need_members(gibbs):
    scores = torch.where(mask_of(gibbs), gibbs.scores(), 0.0)
    gold = torch.stack([gibbs.all_of(example)[-1] for example in range(len(gibbs.sizes))])
    wrong = gold.clone()
    wrong[1] = torch.where(mask_of(gibbs)[1], 1 - gold[1], 0.0)
    if gibbs.structure().contains(wrong).all():
        pytest.skip("there is another structure")
    with pytest.raises(ValueError, match=r"z\[1\] is not a structure of .*validate=False"):
        gibbs.structure().log_prob(scores, wrong)
    unchecked = gibbs.structure(validate=False).log_prob(scores, wrong)
    torch.testing.assert_close(unchecked[0], gibbs.structure().log_prob(scores, gold)[0])
    assert unchecked.isfinite().all()
    with pytest.raises(ValueError, match=r"z\[\d\] is not .*entries other than 0 and 1 \(are scores and structures swapped"):
        gibbs.structure().log_prob(gold, scores)


def test_one_structure_for_scores_of_several_sizes():
    tree, scores = pb.DependencyTree([2, 1]), torch.zeros(2, 2, 2)
    chain = torch.tensor([[0.0, 0.0], [1.0, 1.0]])  # word 0 below word 1: word 0 alone has no head
    with pytest.raises(ValueError, match=r"z\[1\] is not a structure .*word 0 has 0 heads"):
        tree.log_prob(scores, chain)
    assert tree.log_prob(scores[None].expand(3, 2, 2, 2), tree.argmax(scores)).shape == (3, 2)


@pytest.mark.parametrize(
    ("tree", "heads", "reason"),
    [
        (pb.DependencyTree(), [2, 3, 3, 2], "cycle, or cross"),
        (pb.DependencyTree(), [2, 3, 2, 2], r"arcs cross; .*DependencyTree\(projective=False\)"),
        (pb.DependencyTree(multiroot=False), [0, 1, 1, 2], "2 words are attached to the root"),
        (pb.DependencyTree(projective=False), [1, 0, 2, 2], "have a cycle"),
        (pb.DependencyTree([4], projective=False), [1, 0, 2, 2], "have a cycle"),
    ],
)
def test_why_a_tree_is_none(tree, heads, reason):
    """Heads count words from 0, and a word's own number is the root."""
    z = torch.zeros(1, 4, 4).scatter_(1, torch.tensor(heads)[None, None], 1.0)
    with pytest.raises(ValueError, match=rf"z\[0\] is not a structure of DependencyTree.*{reason}"):
        tree.log_prob(10 * z, z)


def test_a_word_without_a_head():
    with pytest.raises(ValueError, match=r"z is not a structure .*word 1 has 0 heads"):
        pb.DependencyTree().log_prob(torch.zeros(2, 2), torch.tensor([[1.0, 0.0], [0.0, 0.0]]))


def test_a_chain_of_ones_is_none():
    with pytest.raises(ValueError, match="transitions do not make up a tag sequence"):
        pb.LinearChain().log_prob(torch.zeros(3, 2, 2), torch.ones(3, 2, 2))


class Pair(pb.Structure):
    """Exactly two parts, by `argmax` and `log_partition`."""

    def argmax(self, scores):
        return torch.zeros_like(scores).scatter(-1, scores.topk(2, dim=-1).indices, 1.0)

    def log_partition(self, scores):
        pairs = torch.combinations(torch.arange(scores.shape[-1]))
        return scores[..., pairs].sum(-1).logsumexp(-1)


def test_own_structures_have_members():
    z = torch.tensor([[1.0, 1.0, 0.0], [1.0, 1.0, 1.0], [0.0, 1.0, 0.0], [0.5, 1.0, 0.5]])
    assert Pair().contains(z).tolist() == [True, False, False, False]
    assert pb.StructureWrapper(Pair()).contains(z).tolist() == [True, False, False, False]
    with pytest.raises(ValueError, match=r"z\[1\] is not a structure"):
        Pair().log_prob(torch.zeros(4, 3), z)
    with pytest.raises(ValueError, match=r"z\[1\] is not a structure"):
        pb.StructureWrapper(pb.Subset(2)).log_prob(torch.zeros(4, 3), z)
    assert pb.StructureWrapper(pb.Subset(2, validate=False)).log_prob(torch.zeros(4, 3), z).shape == (4,)


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
def test_members_under_transforms(entry):
    """No check is made where values cannot be read; `contains` itself works."""
    scores = torch.where(mask_of(entry), entry.scores(), 0.0)
    structure = entry.structure()
    z = structure.argmax(scores)
    both = torch.stack([z, 1 - z])
    assert torch.equal(torch.vmap(structure.contains)(both), structure.contains(both))
    if entry.gibbs:
        mapped = torch.vmap(lambda s: structure.log_prob(s, z))(scores[None])
        torch.testing.assert_close(mapped[0], structure.log_prob(scores, z))


TAGGED = {
    "contains": lambda chain, s, z: chain.contains(z),
    "log_prob": lambda chain, s, z: chain.log_prob(s, z) < 0,
    "hinge": lambda chain, s, z: pb.losses.Hinge()(chain, s, target=z) > 0,
    "cross-entropy": lambda chain, s, z: pb.losses.CrossEntropy()(chain, s, target=z) > 0,
}


@pytest.mark.parametrize("use", TAGGED)
@pytest.mark.parametrize("count", [17, 20, 40])
def test_chains_are_members_under_autocast(use, count):
    """Indices of tags have more digits than bfloat16."""
    chain, generator = pb.LinearChain(), torch.Generator().manual_seed(count)
    z = chain.from_tags(torch.randint(count, (3, 9), generator=generator), count)
    scores = torch.randn(z.shape, generator=generator)
    with torch.autocast("cpu", torch.bfloat16):
        assert TAGGED[use](chain, scores, z).all()
        assert not chain.contains(z + z.flip(0)).any()


def test_chains_that_nearly_are_members():
    chain = pb.LinearChain()
    z = chain.from_tags(torch.tensor([1, 0, 2]), 3)
    for place, value in (((0, 0, 2), 1.0), ((1, 2, 2), -1.0), ((2, 0, 2), 0.0), ((2, 1, 1), torch.nan), ((1, 1, 0), 2.0)):
        wrong = z.clone()
        wrong[place] = value
        assert not chain.contains(wrong)
    balanced = z.clone()
    balanced[1, 2, 2], balanced[1, 2, 1] = 1.0, -1.0
    assert not chain.contains(balanced)


def test_averages_of_structures(entry):
    """Averages are targets; what is far from all of them is none."""
    structure = entry.structure()
    average = torch.stack([entry.all_of(example).mean(0) for example in range(len(entry.sizes))])
    some = torch.stack([entry.all_of(example)[:2].mean(0) for example in range(len(entry.sizes))])
    assert structure._are_targets(average).all()
    assert structure._are_targets(some).all()
    if "sparsemap" in getattr(structure, "missing", {}):
        return
    mask = mask_of(entry)
    for value in (0.5, 0.1, 0.9):
        flat = torch.where(mask, value, 0.0)
        apart = torch.where(mask, structure.sparsemap(flat) - flat, 0.0).flatten(1).norm(dim=1)
        found = structure._are_targets(flat)
        assert found[apart < 1e-6].all()
        assert not found[apart > 0.1].any()


@pytest.mark.parametrize(
    ("structure", "shape"),
    [
        (pb.DependencyTree(), (4, 4)),
        (pb.LinearChain(), (4, 3, 3)),
        (pb.Subset(1), (4,)),
        (pb.Matching(), (3, 3)),
        (pb.Segmentation(), (4, 2, 2)),
        (pb.BinaryTree(), (4, 4)),
        (pb.Alignment(), (3, 3)),
        (pb.Categorical(), (4,)),
    ],
    ids=str,
)
def test_halves_are_no_target(structure, shape):
    with pytest.raises(ValueError, match=r"target is not a structure .*nor is it an average of structures"):
        pb.losses.Perceptron()(structure, torch.randn(shape), target=torch.full(shape, 0.5))


def test_the_plural_of_classes():
    with pytest.raises(ValueError, match="its classes do not make up"):
        pb.Categorical().log_prob(torch.zeros(3), torch.ones(3))
