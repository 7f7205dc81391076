"""Any leading dimensions, any strides, any integer type of lengths: the layout of the input changes nothing."""

import pytest
import torch

import pullback as pb
from cases import DIFFERENTIABLE, OPERATIONS, PER_PART, value_and_gradient
from each import each
from oracles import everything


def transposed(scores):
    return scores.transpose(-1, -2).contiguous().transpose(-1, -2) if scores.dim() > 2 else scores.T.contiguous().T


def strided(scores):
    wide = torch.full((*scores.shape[:-1], 2 * scores.shape[-1]), torch.nan).to(scores)
    wide[..., ::2] = scores
    return wide[..., ::2]


def offset(scores):
    return torch.cat([scores[:1], scores])[1:]


def batch_last(scores):
    return scores.movedim(0, -1).contiguous().movedim(-1, 0)


@each("layout", [transposed, strided, offset, batch_last])
def test_strides_do_not_matter(case, dtype, layout):
    scores = case.random(3, n=4, dtype=dtype, seed=1)
    other = layout(scores)
    assert torch.equal(other, scores)
    for operation in case.operations.values():
        expected, found = operation(case.whole(), scores), operation(case.whole(), other)
        if case.name != "categorical" or scores.device.type == "cpu":
            assert torch.equal(found, expected)
        else:  # on a GPU the order of PyTorch's own sums depends on the strides
            tolerance = 4 * torch.finfo(dtype).eps
            torch.testing.assert_close(found, expected, atol=tolerance, rtol=tolerance)
        assert torch.equal(other, scores), "the input was written to"


def test_expanded_scores_and_incoming_gradients(case, dtype):
    one = case.random(1, n=4, dtype=dtype, seed=2).requires_grad_()
    for operation in case.differentiable.values():
        expanded = operation(case.whole(), one.expand(3, *case.shape(4)))
        assert torch.equal(expanded, operation(case.whole(), one.detach().repeat(3, *[1] * case.event_dims)))
        (found,) = torch.autograd.grad(expanded.sum(), one)  # the incoming gradient of a sum is expanded too
        (alone,) = torch.autograd.grad(operation(case.whole(), one).sum(), one)
        torch.testing.assert_close(found, 3 * alone)


@each("batch", [(), (6,), (2, 3), (2, 1, 3)])
def test_leading_dimensions(case, batch):
    flat = case.random(6, n=4, seed=3)[: torch.Size(batch).numel()]
    scores = flat.reshape(*batch, *case.shape(4))
    for name, operation in case.operations.items():
        found = operation(case.whole(), scores)
        assert found.shape == (scores.shape if name in PER_PART else batch)
        assert torch.equal(found.reshape(-1), operation(case.whole(), flat).reshape(-1))


def test_lengths_of_several_structures_an_example(tree):
    lengths = torch.tensor([[3, 0], [4, 1], [2, 4]])
    scores = tree.random(3, 2, n=4, seed=4)
    for operation in OPERATIONS.values():
        found = operation(tree.whole(lengths), scores)
        flat = operation(tree.whole(lengths.flatten()), scores.flatten(0, 1))
        assert torch.equal(found.flatten(0, 1), flat)


@pytest.mark.parametrize("shape", [(), (1,), (2,), (3, 1), (1, 2)], ids=str)
def test_lengths_broadcast_against_the_batch(tree, shape):
    lengths = torch.arange(1, 1 + torch.Size(shape).numel()).reshape(shape)
    scores = tree.random(3, 2, n=4, seed=4)
    for name in ("argmax", *DIFFERENTIABLE):
        found = OPERATIONS[name](tree.whole(lengths), scores)
        assert torch.equal(found, OPERATIONS[name](tree.whole(lengths.expand(3, 2)), scores))


def test_gradients_of_several_structures_an_example(tree):
    lengths = torch.tensor([[3, 0], [4, 1], [2, 4]])
    scores = tree.random(3, 2, n=4, seed=4)
    for operation in DIFFERENTIABLE.values():
        _, found = value_and_gradient(operation, tree.whole(lengths), scores)
        _, flat = value_and_gradient(operation, tree.whole(lengths.flatten()), scores.flatten(0, 1))
        assert torch.equal(found.flatten(0, 1), flat)


@each("kind", [torch.uint8, torch.int16, torch.int32])
def test_lengths_of_any_integer_type(entry, kind):
    if not entry.sizes[0]:
        pytest.skip("no sizes")
    sizes = torch.tensor(entry.sizes).unbind(1)
    for operation in entry.operations.values():
        expected = operation(entry.make(*sizes), entry.scores())
        assert torch.equal(operation(entry.make(*(size.to(kind) for size in sizes)), entry.scores()), expected)


def test_lengths_may_be_a_list_or_a_number():
    scores = torch.randn(2, 4, 4, generator=torch.Generator().manual_seed(0))
    assert torch.equal(pb.DependencyTree([3, 2]).argmax(scores), pb.DependencyTree(torch.tensor([3, 2])).argmax(scores))
    assert pb.DependencyTree(3).argmax(scores[0]).sum() == 3


@each("batch", [(0,), (0, 2), (2, 0)])
@each("n", [0, 3])
def test_empty_batches(case, dtype, batch, n):
    scores = torch.zeros(*batch, *case.shape(max(n, case.smallest)), dtype=dtype, device=case.device)
    for name, operation in case.operations.items():
        found = operation(case.whole(), scores)
        assert found.shape == (scores.shape if name in PER_PART else batch)
        assert found.dtype == dtype
        if name in DIFFERENTIABLE:
            assert value_and_gradient(operation, case.whole(), scores)[1].shape == scores.shape


def test_log_prob_and_score_of_many_structures_for_one_scores(gibbs_case):
    """Structures `[S, ...]` broadcast against scores `[...]`."""
    scores, z = gibbs_case.random(n=3), everything(gibbs_case, 3).to(gibbs_case.device)
    for operation in (gibbs_case.whole().score, gibbs_case.whole().log_prob):
        torch.testing.assert_close(operation(scores, z), operation(scores.expand_as(z), z))


def test_z_may_have_another_dtype(gibbs_case):
    scores = gibbs_case.random(2, n=3)
    z = gibbs_case.whole().argmax(scores)
    for operation in (gibbs_case.whole().score, gibbs_case.whole().log_prob):
        assert torch.equal(operation(scores, z.float()), operation(scores, z))


def test_inputs_that_require_gradients_are_left_alone(case):
    scores = case.random(2, n=3).requires_grad_()
    before = scores.detach().clone()
    for operation in case.operations.values():
        operation(case.whole(), scores)
        assert torch.equal(scores.detach(), before)
        assert scores.grad is None
