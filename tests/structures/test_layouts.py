"""Any leading dimensions, any strides, any integer type of lengths: the layout of the input changes nothing."""

import pytest
import torch

import pullback as pb
from cases import DIFFERENTIABLE, OPERATIONS, PER_PART, value_and_gradient

EACH = pytest.mark.parametrize("operation", OPERATIONS)


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


@EACH
@pytest.mark.parametrize("layout", [transposed, strided, offset, batch_last])
def test_strides_do_not_matter(case, dtype, operation, layout):
    scores = case.scores(3, n=4, dtype=dtype, seed=1)
    other = layout(scores)
    assert torch.equal(other, scores)
    expected = OPERATIONS[operation](case.structure(), scores)
    found = OPERATIONS[operation](case.structure(), other)
    if case.is_tree or scores.device.type == "cpu":
        assert torch.equal(found, expected)
    else:  # on a GPU the order of PyTorch's own sums depends on the strides
        tolerance = 4 * torch.finfo(dtype).eps
        torch.testing.assert_close(found, expected, atol=tolerance, rtol=tolerance)
    assert torch.equal(other, scores), "the input was written to"


@pytest.mark.parametrize("operation", DIFFERENTIABLE.values(), ids=DIFFERENTIABLE)
def test_expanded_scores_and_incoming_gradients(case, dtype, operation):
    one = case.scores(1, n=4, dtype=dtype, seed=2).requires_grad_()
    expanded = operation(case.structure(), one.expand(3, *case.parts(4)))
    assert torch.equal(expanded, operation(case.structure(), one.detach().repeat(3, *[1] * case.event_dims)))
    expanded.sum().backward()  # the incoming gradient of a sum is expanded too
    (alone,) = torch.autograd.grad(operation(case.structure(), one).sum(), one)
    torch.testing.assert_close(one.grad, 3 * alone)


@EACH
@pytest.mark.parametrize("batch", [(), (6,), (2, 3), (2, 1, 3)], ids=str)
def test_leading_dimensions(case, operation, batch):
    flat = case.scores(6, n=4, seed=3)[: torch.Size(batch).numel()]
    scores = flat.reshape(*batch, *case.parts(4))
    found = OPERATIONS[operation](case.structure(), scores)
    assert found.shape == (scores.shape if operation in PER_PART else batch)
    assert torch.equal(found.reshape(-1), OPERATIONS[operation](case.structure(), flat).reshape(-1))


@EACH
def test_lengths_of_several_structures_an_example(tree, operation):
    lengths = torch.tensor([[3, 0], [4, 1], [2, 4]])
    scores = tree.scores(3, 2, n=4, seed=4)
    found = OPERATIONS[operation](tree.structure(lengths), scores)
    flat = OPERATIONS[operation](tree.structure(lengths.flatten()), scores.flatten(0, 1))
    assert torch.equal(found.flatten(0, 1), flat)


@pytest.mark.parametrize("operation", ["argmax", *DIFFERENTIABLE])
@pytest.mark.parametrize("shape", [(), (1,), (2,), (3, 1), (1, 2)], ids=str)
def test_lengths_broadcast_against_the_batch(tree, operation, shape):
    lengths = torch.arange(1, 1 + torch.Size(shape).numel()).reshape(shape)
    scores = tree.scores(3, 2, n=4, seed=4)
    found = OPERATIONS[operation](tree.structure(lengths), scores)
    assert torch.equal(found, OPERATIONS[operation](tree.structure(lengths.expand(3, 2)), scores))


@pytest.mark.parametrize("operation", DIFFERENTIABLE.values(), ids=DIFFERENTIABLE)
def test_gradients_of_several_structures_an_example(tree, operation):
    lengths = torch.tensor([[3, 0], [4, 1], [2, 4]])
    scores = tree.scores(3, 2, n=4, seed=4)
    _, found = value_and_gradient(operation, tree.structure(lengths), scores)
    _, flat = value_and_gradient(operation, tree.structure(lengths.flatten()), scores.flatten(0, 1))
    assert torch.equal(found.flatten(0, 1), flat)


@EACH
@pytest.mark.parametrize("kind", [torch.uint8, torch.int16, torch.int32])
def test_lengths_of_any_integer_type(tree, operation, kind):
    scores = tree.scores(3, n=4)
    expected = OPERATIONS[operation](tree.structure(torch.tensor([3, 0, 4])), scores)
    assert torch.equal(OPERATIONS[operation](tree.structure(torch.tensor([3, 0, 4], dtype=kind)), scores), expected)


def test_lengths_may_be_a_list_or_a_number():
    scores = torch.randn(2, 4, 4, generator=torch.Generator().manual_seed(0))
    assert torch.equal(
        pb.DependencyTree([3, 2]).argmax(scores), pb.DependencyTree(torch.tensor([3, 2])).argmax(scores)
    )
    assert pb.DependencyTree(3).argmax(scores[0]).sum() == 3


@EACH
@pytest.mark.parametrize("batch", [(0,), (0, 2), (2, 0)], ids=str)
@pytest.mark.parametrize("n", [0, 1, 3])
def test_empty_batches(case, dtype, operation, batch, n):
    n = max(n, case.smallest)
    scores = torch.zeros(*batch, *case.parts(n), dtype=dtype, device=case.device)
    found = OPERATIONS[operation](case.structure(), scores)
    assert found.shape == (scores.shape if operation in PER_PART else batch)
    assert found.dtype == dtype
    if operation in DIFFERENTIABLE:
        assert value_and_gradient(DIFFERENTIABLE[operation], case.structure(), scores)[1].shape == scores.shape


def test_log_prob_and_score_of_many_structures_for_one_scores(case):
    """Structures `[S, ...]` broadcast against scores `[...]`."""
    scores, z = case.scores(n=3), case.structure().enumerate(3).double().to(case.device)
    for operation in (case.structure().score, case.structure().log_prob):
        assert torch.equal(operation(scores, z), operation(scores.expand_as(z), z))


def test_z_may_have_another_dtype(case):
    scores = case.scores(2, n=3)
    z = case.structure().argmax(scores)
    for operation in (case.structure().score, case.structure().log_prob):
        assert torch.equal(operation(scores, z.float()), operation(scores, z))


@EACH
def test_inputs_that_require_gradients_are_left_alone(case, operation):
    scores = case.scores(2, n=3).requires_grad_()
    before = scores.detach().clone()
    OPERATIONS[operation](case.structure(), scores)
    assert torch.equal(scores.detach(), before)
    assert scores.grad is None
