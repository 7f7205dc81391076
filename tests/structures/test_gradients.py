"""Gradients against finite differences, and what happens when they are differentiated again."""

import pytest
import torch
from torch.testing import assert_close

import pullback as pb
from cases import CATEGORICAL, DIFFERENTIABLE
from each import each
from oracles import everything, forbid

# `fast_mode` compares the derivatives along random directions, which is enough for what is slow
EACH = pytest.mark.parametrize("operation", DIFFERENTIABLE.values(), ids=DIFFERENTIABLE)


@each("n", [1, 3])
def test_gradcheck(case, n):
    scores = case.random(2 if n == 1 else 1, n=max(n, case.smallest), seed=3).requires_grad_()
    checks = {"atol": 1e-6, "check_forward_ad": True, "fast_mode": case.is_slow}
    for operation in case.differentiable.values():
        assert torch.autograd.gradcheck(lambda s, f=operation: f(case.whole(), s), scores, **checks)


@EACH
def test_gradcheck_of_a_ragged_batch(tree, operation):
    structure = tree.whole(torch.tensor([3, 0, 1, 2]))
    scores = tree.random(4, n=3, seed=4).requires_grad_()
    checks = {"atol": 1e-6, "check_forward_ad": True, "fast_mode": True}
    assert torch.autograd.gradcheck(lambda s: operation(structure, s), scores, **checks)


def test_gradcheck_of_log_prob_of_any_structure(gibbs_case):
    z = everything(gibbs_case, 3).to(gibbs_case.device)
    scores = gibbs_case.random(n=3, seed=5).requires_grad_()
    assert torch.autograd.gradcheck(lambda s: gibbs_case.whole().log_prob(s, z), scores)


def test_score_is_differentiable_in_both(case):
    """The gradient of <s, z> is z in the scores and s in the structure, and nothing where there is no part."""
    scores = case.random(2, n=3, seed=6).requires_grad_()
    z = case.whole().argmax(scores).requires_grad_()
    case.whole().score(scores, z).sum().backward()
    assert torch.equal(scores.grad, z)
    if not case.own(z.detach()).any():
        assert torch.equal(z.grad, torch.where(case.whole().allowed(scores), scores, 0.0))


def test_score_has_finite_gradients_where_parts_are_forbidden(case):
    scores = forbid(case, case.random(2, n=3, seed=6)).requires_grad_()
    z = case.whole().argmax(scores).requires_grad_()
    case.whole().score(scores, z).sum().backward()
    assert torch.equal(scores.grad, z)
    assert z.grad.isfinite().all()


@each("n", [1, 3])
def test_the_hessian_of_log_partition_is_the_jacobian_of_marginals(gibbs_case, n):
    scores = gibbs_case.random(n=max(n, gibbs_case.smallest), seed=7)
    hessian = torch.autograd.functional.hessian(gibbs_case.whole().log_partition, scores)
    jacobian = torch.autograd.functional.jacobian(gibbs_case.whole().marginals, scores)
    assert_close(hessian, jacobian)
    assert n == 1 or hessian.any()


def test_log_partition_and_log_prob_can_be_differentiated_twice(gibbs_case):
    scores = gibbs_case.random(2, n=3, seed=8).requires_grad_()
    z = everything(gibbs_case, 3)[:2].to(gibbs_case.device)
    for operation in (gibbs_case.whole().log_partition, lambda s: gibbs_case.whole().log_prob(s, z)):
        assert torch.autograd.gradgradcheck(operation, scores, fast_mode=gibbs_case.is_slow)


@pytest.mark.parametrize("operation", ["marginals", "sparsemap", "entropy"])
def test_a_second_derivative_is_an_error_never_zero(tree, operation):
    scores = tree.random(2, n=3, seed=9).requires_grad_()
    loss = DIFFERENTIABLE[operation](tree.whole(), scores).square().sum()
    (gradient,) = torch.autograd.grad(loss, scores, create_graph=True)
    with pytest.raises(NotImplementedError, match="second derivative"):
        gradient.square().sum().backward()


@pytest.mark.parametrize("structure", [pb.DependencyTree(), pb.DependencyTree(projective=False), pb.BinaryTree()], ids=repr)
@pytest.mark.parametrize("operation", ["marginals", "entropy"])
def test_so_it_is_along_a_constant_direction(structure, operation):
    scores = torch.randn(2, 4, 4, requires_grad=True)
    found = getattr(structure, operation)(scores)
    (gradient,) = torch.autograd.grad(found, scores, torch.randn_like(found), create_graph=True)
    with pytest.raises(NotImplementedError, match="second derivative"):
        gradient.square().sum().backward()


def test_a_third_derivative_of_log_partition_is_an_error(tree):
    scores = tree.random(n=3, seed=9).requires_grad_()
    (first,) = torch.autograd.grad(tree.whole().log_partition(scores), scores, create_graph=True)
    (second,) = torch.autograd.grad(first.square().sum(), scores, create_graph=True)
    with pytest.raises(NotImplementedError, match="second derivative"):
        second.square().sum().backward()


@pytest.mark.parametrize("operation", ["marginals", "sparsemap", "entropy"])
def test_categoricals_can_be_differentiated_twice(operation):
    scores = CATEGORICAL.random(2, n=4, seed=10).requires_grad_()
    assert torch.autograd.gradgradcheck(lambda s: DIFFERENTIABLE[operation](CATEGORICAL.whole(), s), scores)


def test_argmax_and_sample_have_no_gradient(case):
    scores = case.random(2, n=3).requires_grad_()
    assert not case.whole().argmax(scores).requires_grad
    assert not case.gibbs or not case.whole().sample(scores).requires_grad
