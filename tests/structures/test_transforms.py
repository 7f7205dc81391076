"""Forward mode, and the transforms of torch.func: right or an error, never silently zero."""

import warnings

import pytest
import torch
from torch.autograd import forward_ad
from torch.testing import assert_close

import pullback as pb
from cases import DIFFERENTIABLE, ENTRIES, OPERATIONS
from each import each
from pullback.estimators.registry import create

EACH = each("operation", DIFFERENTIABLE.values())


def jacobian(function, scores):
    """By one backward pass for each output."""
    return torch.autograd.functional.jacobian(function, scores)


def along(matrix, direction):
    return (matrix * direction).flatten(matrix.dim() - direction.dim()).sum(-1)


@each("dtype", [torch.float32, torch.float64])
def test_jvp_is_the_jacobian_times_the_direction(case, dtype):
    scores, direction = case.random(2, n=3, dtype=dtype, seed=1), case.random(2, n=3, dtype=dtype, seed=2)
    for operation in case.differentiable.values():

        def function(s, operation=operation):
            return operation(case.whole(), s)

        value, found = torch.func.jvp(function, (scores,), (direction,))
        assert_close(value, function(scores))
        assert found.dtype == value.dtype
        assert_close(found, along(jacobian(function, scores), direction), atol=1e-5, rtol=1e-4)


def test_transforms_compose(case):
    """Jacobians by rows and by columns, and the gradient of a sum."""
    scores = case.random(n=3, seed=3)
    for operation in case.differentiable.values():

        def function(s, operation=operation):
            return operation(case.whole(), s)

        expected = jacobian(function, scores)
        assert_close(torch.func.jacrev(function)(scores), expected)
        assert_close(torch.func.jacfwd(function)(scores), expected)
        slope = torch.func.grad(lambda s, f=function: f(s).square().sum())(scores)
        leaf = scores.clone().requires_grad_()
        function(leaf).square().sum().backward()
        assert_close(slope, leaf.grad)


@pytest.mark.parametrize("entry", [entry for entry in ENTRIES if entry.gibbs], ids=lambda entry: entry.name)
@EACH
def test_several_gradients_at_once(entry, operation):
    """`is_grads_batched`, which vectorised Jacobians take: each is what a backward pass by itself gives."""
    scores, structure = entry.scores(seed=9).requires_grad_(), entry.structure()
    if operation not in entry.differentiable.values():
        pytest.skip("not an operation of this structure")
    value = operation(structure, scores)
    directions = torch.stack([torch.full_like(value, 2.0), torch.linspace(-1, 1, value.numel()).reshape(value.shape)])
    expected = [torch.autograd.grad(operation(structure, scores), scores, each)[0] for each in directions.to(value.dtype)]
    found = torch.autograd.grad(value, scores, directions.to(value.dtype), is_grads_batched=True)[0]
    assert_close(found, torch.stack(expected))


def test_the_hessian_of_log_partition(tree):
    scores, direction = tree.random(n=3, seed=4), tree.random(n=3, seed=5)
    gradient = torch.func.grad(tree.whole().log_partition)
    expected = jacobian(tree.whole().marginals, scores)
    assert_close(torch.func.jvp(gradient, (scores,), (direction,))[1], along(expected, direction))
    assert_close(torch.func.hessian(tree.whole().log_partition)(scores), expected)
    assert_close(torch.func.jacrev(gradient)(scores), expected)


@EACH
def test_tangents_of_padding_are_not_read(tree, operation):
    lengths = torch.tensor([2, 0, 3])
    scores, direction = tree.random(3, n=3, seed=6), tree.random(3, n=3, seed=7)
    padding = torch.arange(3) >= lengths[:, None]
    padding = (padding[:, None, :] | padding[:, :, None]).to(scores.device)
    structure = tree.whole(lengths)
    found = [
        torch.func.jvp(lambda s: operation(structure, s), (scores,), (direction.masked_fill(padding, fill),))[1]
        for fill in (0.0, torch.nan)
    ]
    assert torch.equal(*found)


def test_sparsemap_of_nearly_equal_scores_spans_its_face(tree):
    """In forward mode, too, active sets are completed: J is the identity along the hull inside the polytope."""
    scores, direction = 1e-3 * tree.random(n=4, seed=8), tree.random(n=4, seed=9)
    _, found = torch.func.jvp(tree.whole().sparsemap, (scores,), (direction,))
    leaf = scores.clone().requires_grad_()
    tree.whole().sparsemap(leaf).backward(direction)
    assert_close(found, leaf.grad)


def test_an_argmax_has_the_tangent_zero(case):
    _, tangent = torch.func.jvp(case.whole().argmax, (case.random(2, n=3),), (case.random(2, n=3, seed=1),))
    assert not tangent.any()


def test_vmap_is_a_batch(case):
    scores = case.random(2, 3, n=4, seed=11)
    for operation in (OPERATIONS["argmax"], *case.differentiable.values()):
        expected = operation(case.whole(), scores)
        for dim in (0, 1):
            with warnings.catch_warnings():
                warnings.simplefilter("error")  # as of "a performance drop"
                found = torch.vmap(lambda s, f=operation: f(case.whole(), s), in_dims=dim, out_dims=dim)(scores)
            assert_close(found, expected)


def test_gradients_of_each_example(case):
    scores = case.random(3, n=4, seed=12)
    for operation in case.differentiable.values():

        def loss(s, operation=operation):
            return operation(case.whole(), s).square().sum()

        found = torch.vmap(torch.func.grad(loss))(scores)
        assert_close(found, torch.stack([torch.func.grad(loss)(s) for s in scores]))


def test_vmap_over_scores_and_lengths(tree):
    scores, lengths = tree.random(4, n=4, seed=13), torch.tensor([4, 0, 1, 3]).to(tree.device)
    found = torch.vmap(lambda s, length: tree.whole(length).marginals(s))(scores, lengths)
    assert_close(found, tree.whole(lengths).marginals(scores))


def test_vmap_over_nothing(tree):
    assert torch.vmap(tree.whole().marginals)(tree.random(2, 0, n=3)).shape == (2, 0, 3, 3)


def test_bad_values_are_errors_inside_of_transforms(gibbs_case):
    scores = torch.full_like(gibbs_case.random(n=3), torch.nan)
    with pytest.raises(ValueError, match="NaN"):
        torch.func.grad(lambda s: gibbs_case.whole().log_partition(s).sum())(scores)


@pytest.mark.parametrize("operation", ["marginals", "sparsemap", "entropy"])
def test_a_second_derivative_is_an_error_never_zero(tree, operation):
    scores, direction = tree.random(n=3, seed=9), tree.random(n=3, seed=10)
    gradient = torch.func.grad(lambda s: DIFFERENTIABLE[operation](tree.whole(), s).square().sum())
    with pytest.raises(NotImplementedError, match="second derivative"):
        torch.func.jvp(gradient, (scores,), (direction,))


@pytest.mark.parametrize("name", ["ste-identity", "spigot"])
def test_surrogates_refuse_rather_than_be_zero(name):
    """They are defined by what a backward pass returns."""
    scores = torch.randn(2, 4, dtype=torch.float64)
    estimator, structure = create(name), pb.Categorical()
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(scores, torch.ones_like(scores))
        with pytest.raises((RuntimeError, NotImplementedError), match="jvp"):
            estimator.objective(structure, dual, lambda z: (z**2).sum(-1))


@pytest.mark.parametrize(("name", "parts"), [("DependencyTree", (4, 4)), ("LinearChain", (3, 2, 2)), ("BinaryTree", (4, 4))])
@pytest.mark.parametrize("operation", ["argmax", "marginals", "log_partition"])
def test_scores_without_values_give_results_without_values(name, parts, operation):
    call, scores = getattr(getattr(pb, name)(), operation), torch.zeros(2, *parts)
    assert call(scores.to("meta")).is_meta
    assert call(scores.to("meta")).shape == call(scores).shape


@EACH
def test_jvp_of_expanded_scores(operation):
    """Scores whose examples, or pairs of tags, are one memory location: as those of their own memory.

    The direction is expanded in the same way: PyTorch's `jvp` refuses others, of any function, before it calls it.
    """
    generator = torch.Generator().manual_seed(0)
    chain, shape = pb.LinearChain(), (2, 3, 2, 2)
    for part in ((1, 3, 2, 2), (2, 3, 1, 2), (2, 3, 2, 1), (2, 1, 2, 2)):
        scores, direction = (torch.randn(part, generator=generator, dtype=torch.float64) for _ in range(2))

        def function(s):
            return operation(chain, s)

        def expanding(s):
            return operation(chain, s.expand(shape))

        own = torch.func.jvp(function, *((x.expand(shape).clone(),) for x in (scores, direction)))
        assert_close(torch.func.jvp(function, *((x.expand(shape),) for x in (scores, direction))), own)
        assert_close(torch.func.jvp(expanding, (scores,), (direction,)), own)
    with pytest.raises(
        RuntimeError, match="single memory location"
    ):  # which tells when the library may be tested with these, too
        torch.func.jvp(torch.sin, (scores.expand(shape),), (direction.expand(shape).clone(),))
