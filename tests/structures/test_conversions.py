"""People read tags, segments and paths, not tensors: conversions there and back, and errors on bad input."""

from __future__ import annotations

import itertools

import pytest
import torch

import pullback as pb
from pullback.structures import linear_chain


def test_tags_there_and_back():
    lengths = torch.tensor([4, 2, 0])
    chain = pb.LinearChain(lengths)
    tags = torch.tensor([[0, 2, 1, 2], [1, 1, 7, -5], [9, 9, 9, 9]])  # padding may hold anything
    z = chain.from_tags(tags, 3)
    assert chain.tags(z).tolist() == [[0, 2, 1, 2], [1, 1, -1, -1], [-1, -1, -1, -1]]
    assert z.flatten(1).sum(1).tolist() == [4, 2, 0]
    assert chain.log_prob(torch.randn(3, 4, 3, 3), z).isfinite().all()


def test_combine_adds_up():
    """<scores, z> of combined scores is the sum of emissions, transitions, start and end along the tags."""
    torch.manual_seed(0)
    lengths, tags = torch.tensor([4, 2]), torch.tensor([[0, 2, 1, 1], [2, 0, 0, 0]])
    emissions, transitions, start, end = torch.randn(2, 4, 3), torch.randn(3, 3), torch.randn(3), torch.randn(3)
    chain = pb.LinearChain(lengths)
    scores = chain.combine(emissions, transitions, start, end)
    for b, n in enumerate(lengths.tolist()):
        path = tags[b, :n].tolist()
        value = sum(emissions[b, i, tag] for i, tag in enumerate(path)) + start[path[0]] + end[path[-1]]
        value += sum(transitions[a, c] for a, c in itertools.pairwise(path))
        torch.testing.assert_close(chain.score(scores, chain.from_tags(tags, 3))[b], value)


@pytest.mark.parametrize(("tags", "dtype"), [(1, torch.float32), (3, torch.float64), (17, torch.float32), (20, torch.float32)])
def test_combine_by_the_kernel_of_large_batches(tags, dtype, monkeypatch):
    """Values and derivatives of the formula, for strided emissions, and derivatives of the gradient."""
    monkeypatch.setattr(linear_chain, "LARGE", 0)
    torch.manual_seed(0)
    emissions = torch.randn(2, tags, 4, dtype=dtype).mT.requires_grad_()
    transitions = torch.randn(tags, tags, dtype=dtype, requires_grad=True)
    scores = pb.LinearChain().combine(emissions, transitions)
    between = torch.cat([transitions.new_zeros(1, tags, tags), transitions.expand(3, tags, tags)])
    expected = between + emissions[..., None, :]
    assert scores.grad_fn.name() == "_JoinBackward"
    assert torch.equal(scores, expected)
    direction = torch.randn(2, 4, tags, tags, dtype=dtype).mT.requires_grad_()
    found, wanted = (torch.autograd.grad(x, (emissions, transitions), direction, retain_graph=True) for x in (scores, expected))
    torch.testing.assert_close(found, wanted)
    several = torch.autograd.grad(scores, emissions, direction[None], retain_graph=True, is_grads_batched=True)[0]
    torch.testing.assert_close(several[0], wanted[0])
    first = torch.autograd.grad(scores, emissions, direction, create_graph=True)[0]
    assert torch.equal(torch.autograd.grad(first.sum(), direction)[0], torch.ones_like(direction))


def test_combine_takes_transitions_of_each_position():
    emissions, transitions = torch.randn(2, 4, 3), torch.randn(2, 3, 3, 3)
    scores = pb.LinearChain().combine(emissions, transitions)
    torch.testing.assert_close(scores[1, 2, 0, 1], transitions[1, 1, 0, 1] + emissions[1, 2, 1])


def test_tag_marginals_sum_to_one():
    chain = pb.LinearChain(torch.tensor([3, 1]))
    mu = chain.tag_marginals(chain.marginals(torch.randn(2, 3, 4, 4)))
    torch.testing.assert_close(mu.sum(-1), torch.tensor([[1.0, 1, 1], [1, 0, 0]]))


def test_other_readings():
    subset = pb.Subset(torch.tensor([2, 1]))
    assert subset.indices(subset.argmax(torch.tensor([[3.0, 1, 2], [0, 5, 1]]))).tolist() == [[0, 2], [1, -1]]
    matching = pb.Matching(torch.tensor([2, 1]))
    assert matching.columns(matching.argmax(torch.eye(2).repeat(2, 1, 1))).tolist() == [[0, 1], [0, -1]]
    tree = pb.BinaryTree(torch.tensor([2, 0]))
    assert tree.brackets(tree.argmax(torch.zeros(2, 2, 2))) == [[(0, 0), (0, 1), (1, 1)], []]
    segments = pb.Segmentation()
    assert segments.segments(segments.argmax(torch.zeros(1, 2, 5, 1)))[0] in ([(0, 2, 0)], [(0, 1, 0), (1, 2, 0)])
    path = pb.Alignment()
    assert path.path(path.argmax(-torch.ones(2, 3)))[0] == (0, 0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: pb.Subset(4).argmax(torch.zeros(2, 3)), "example 0 .*no feasible subset"),
        (lambda: pb.Subset(2, torch.tensor([3, 1])).marginals(torch.zeros(2, 3)), "example 1 "),
        (lambda: pb.Subset(torch.tensor([1, -1])).argmax(torch.zeros(2, 3)), r"k\[1\] is -1"),
        (lambda: pb.Matching().argmax(torch.zeros(1, 3, 2)), "example 0 .*no feasible matching"),
        (lambda: pb.Alignment(moves="forward").argmax(torch.zeros(1, 3, 2)), "example 0 .*no feasible path"),
        (lambda: pb.Alignment(torch.tensor([1, 0])).marginals(torch.zeros(2, 3, 2)), "example 1 "),
        (lambda: pb.Alignment(moves="up"), "'up'; it must be one of 'any', 'forward'"),
        (lambda: pb.LinearChain(torch.tensor([5])).argmax(torch.zeros(1, 4, 2, 2)), r"lengths\[0\] is 5"),
        (lambda: pb.LinearChain(torch.tensor([1, 1, 1])).argmax(torch.zeros(2, 4, 2, 2)), "lengths has shape"),
        (lambda: pb.LinearChain().argmax(torch.zeros(2, 4, 2, 3)), "a LinearChain needs"),
        (lambda: pb.LinearChain().from_tags(torch.tensor([[0, 3]]), 3), r"tags\[0, 1\] is 3"),
        (lambda: pb.LinearChain().combine(torch.zeros(2, 4, 3), torch.zeros(2, 2)), "a LinearChain needs"),
        (lambda: pb.LinearChain([2, 3]).from_tags(torch.tensor([[0, 1], [1, 0]]), 2), r"lengths\[1\] is 3; 2 positions"),
        (lambda: pb.LinearChain([1, 2, 2]).from_tags(torch.tensor([[0, 1], [1, 0]]), 2), "leading dimensions of lengths"),
        (lambda: pb.LinearChain([1, 2, 2]).combine(torch.zeros(2, 4, 3), torch.zeros(3, 3), end=torch.zeros(3)), "of lengths"),
        (lambda: pb.BinaryTree().log_prob(torch.zeros(2, 3, 3), torch.zeros(3, 3, 3)), r"are \[2\] and those of z \[3\]"),
        (lambda: pb.Alignment(moves=["any"]), "it must be one of 'any', 'forward'"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("lengths", ["3", [None, 1], [[1], [1, 2]]], ids=str)
def test_what_is_no_size_is_named(lengths):
    with pytest.raises(TypeError, match=r"lengths is .*; it must be an integer, or a list or tensor of integers"):
        pb.LinearChain(lengths)
    with pytest.raises(TypeError, match="k is "):
        pb.Subset(lengths)


def test_heads_of_what_is_no_tensor():
    with pytest.raises(TypeError, match=r"z is a list; .*torch\.as_tensor"):
        pb.DependencyTree().heads([[1.0]])


def test_no_segmentation_without_widths():
    assert pb.Segmentation().enumerate(2, 0, 1).shape == (0, 2, 0, 1)


def test_tags_are_integers():
    with pytest.raises(TypeError, match="they must be integers"):
        pb.LinearChain().from_tags(torch.tensor([[0.5]]), 3)


@pytest.mark.parametrize("operation", ["log_partition", "marginals", "entropy", "sample"])
def test_a_matching_says_what_it_cannot_do(operation):
    with pytest.raises(NotImplementedError, match=r"#P-hard.*sparsemap"):
        getattr(pb.Matching(), operation)(torch.zeros(1, 2, 2))


def test_a_matching_has_no_probabilities():
    with pytest.raises(NotImplementedError, match="#P-hard"):
        pb.Matching().log_prob(torch.zeros(1, 2, 2), torch.eye(2)[None])
    with pytest.raises(NotImplementedError, match="#P-hard"):
        pb.Matching().kl(torch.zeros(1, 2, 2), torch.zeros(1, 2, 2))


def test_a_subset_decomposes_on_request():
    torch.manual_seed(0)
    scores = torch.randn(20, 7, dtype=torch.float64)
    solution = pb.Subset(3).sparsemap_solution(scores)
    mean = (solution.weights[..., None] * solution.structures).sum(-2)
    torch.testing.assert_close(mean, solution.mu)
    assert (solution.structures.sum(-1)[solution.weights > 0] == 3).all()
    assert (solution.gap < 1e-12).all()


def test_long_sequences_keep_their_digits():
    """Thousands of steps and hundreds of tags: the marginals of every position sum to one."""
    chain = pb.LinearChain()
    mu = chain.tag_marginals(chain.marginals(torch.randn(1, 3000, 3, 3)))
    torch.testing.assert_close(mu.sum(-1), torch.ones(1, 3000))
    mu = chain.tag_marginals(chain.marginals(torch.randn(2, 3, 150, 150)))
    torch.testing.assert_close(mu.sum(-1), torch.ones(2, 3))
    mu = pb.Subset(500).marginals(torch.randn(1, 1500, dtype=torch.float64) * 5)
    torch.testing.assert_close(mu.sum(-1), torch.full((1,), 500.0, dtype=torch.float64))


@pytest.mark.parametrize("other", ["transitions", "start", "end"])
def test_combined_scores_have_the_dtype_that_pytorch_promotes_to(other):
    """Emissions of half precision lose nothing of transitions, start and end in float32."""
    torch.manual_seed(0)
    emissions = torch.randn(2, 4, 3).bfloat16()
    given = {"transitions": torch.randn(3, 3), "start": torch.randn(3), "end": torch.randn(3)}
    mixed = {name: x if name == other else x.bfloat16() for name, x in given.items()}
    found = pb.LinearChain([4, 2]).combine(emissions, **mixed)
    assert found.dtype == torch.float32
    wide = {name: x.float() for name, x in mixed.items()}
    torch.testing.assert_close(found, pb.LinearChain([4, 2]).combine(emissions.float(), **wide))
    assert pb.LinearChain().combine(emissions.double()[:, :0], **mixed).dtype == torch.float64
    assert pb.LinearChain().combine(emissions, *[x.bfloat16() for x in given.values()]).dtype == torch.bfloat16


@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64])
def test_tags_of_every_integer_dtype(dtype):
    """The index of a part, up to C^2, does not fit into the dtype of small tags."""
    tags = torch.tensor([[19, 18, 0], [7, 19, 19]])
    z = pb.LinearChain().from_tags(tags.to(dtype), 20)
    assert pb.LinearChain().tags(z).tolist() == tags.tolist()
    assert torch.equal(z, pb.LinearChain().from_tags(tags, 20))


def test_tags_that_broadcast_to_the_lengths():
    chain = pb.LinearChain(torch.tensor([3, 1]))
    assert chain.tags(chain.from_tags(torch.tensor([1, 0, 1]), 2)).tolist() == [[1, 0, 1], [1, -1, -1]]
    with pytest.raises(ValueError, match=r"tags\[0, 1\] is 5; with C = 2"):
        chain.from_tags(torch.tensor([1, 5, 1]), 2)


def test_combine_takes_a_start_and_an_end_of_each_example():
    emissions, transitions = torch.zeros(2, 3, 2), torch.zeros(2, 2)
    start, end = torch.tensor([[5.0, 0.0], [0.0, 7.0]]), torch.tensor([[0.0, 3.0], [2.0, 0.0]])
    chain = pb.LinearChain(torch.tensor([3, 2]))
    scores = chain.combine(emissions, transitions, start, end)
    assert chain.tags(chain.argmax(scores)).tolist() == [[0, 0, 1], [1, 0, -1]]
    assert chain.score(scores, chain.argmax(scores)).tolist() == [8.0, 9.0]
    with pytest.raises(ValueError, match=r"start has shape \[3\]; for 2 tags it needs \[\.\.\., 2\]"):
        chain.combine(emissions, transitions, torch.zeros(3))


@pytest.mark.parametrize(
    ("convert", "dims"),
    [
        (pb.LinearChain().tags, 3),
        (pb.LinearChain().tag_marginals, 3),
        (pb.Subset(1).indices, 1),
        (pb.Segmentation().segments, 3),
        (pb.BinaryTree().brackets, 2),
        (pb.Alignment().path, 2),
        (pb.Matching().columns, 2),
    ],
)
def test_what_is_no_structure_is_an_error(convert, dims):
    with pytest.raises(ValueError, match=r"has shape \[2\]; an? \w+ needs|has shape \[\]"):
        convert(torch.zeros((2,) * min(dims - 1, 1)))
    with pytest.raises(TypeError, match=r"is a list; an? .* torch\.as_tensor"):
        convert([[0.0]])
