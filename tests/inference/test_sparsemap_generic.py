"""SparseMAP of a user's own structure, of which the solver knows the argmax alone."""

import warnings

import pytest
import torch
from torch.testing import assert_close

import pullback as pb
from cases import CATEGORICAL
from pullback.inference.sparsemap.generic import project
from pullback.inference.sparsemap.solution import NotConverged


def test_the_active_set_of_a_users_structure_spans_the_face():
    """Half of 30 parts: where 0 < mu < 1 the Jacobian is that of a shift to the right sum."""

    class Half(pb.Structure):
        def argmax(self, scores):
            return torch.zeros_like(scores).scatter(-1, scores.topk(15).indices, 1.0)

    scores = (0.2 * CATEGORICAL.random(4, n=30, seed=23)).requires_grad_()
    mu = Half().sparsemap(scores)
    v = CATEGORICAL.random(4, n=30, seed=24)
    (gradient,) = torch.autograd.grad(mu, scores, v)
    inside = (mu > 1e-9) & (mu < 1 - 1e-9)
    assert (inside.sum(-1) > 20).all()
    mean = torch.where(inside, v, 0.0).sum(-1, keepdim=True) / inside.sum(-1, keepdim=True)
    assert_close(gradient, torch.where(inside, v - mean, 0.0))


def test_the_default_device_is_not_read():
    scores = CATEGORICAL.random(3, n=5)
    expected = project(CATEGORICAL.whole(), scores).mu
    with torch.device("meta"):
        solution = project(CATEGORICAL.whole(), scores)
    assert_close(solution.mu, expected)


def test_an_iteration_limit_of_the_generic_solver_is_reported():
    scores = CATEGORICAL.random(3, n=30, scale=0.01)
    with pytest.warns(NotConverged, match="stopped at 4 iterations before 3 of 3"):
        solution = project(CATEGORICAL.whole(), scores, max_iterations=4)
    assert not solution.converged.any()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert_close(project(CATEGORICAL.whole(), scores).mu, CATEGORICAL.whole().sparsemap(scores))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64], ids=str)
def test_a_users_structure_in_every_precision(dtype):
    scores = CATEGORICAL.random(2, 3, n=5, seed=17).to(dtype).requires_grad_()
    solution = project(CATEGORICAL.whole(), scores)
    assert solution.mu.dtype == solution.structures.dtype == dtype
    assert solution.gap.shape == solution.oracle_calls.shape == solution.converged.shape == (2, 3)
    assert_close(solution.mu, CATEGORICAL.whole().sparsemap(scores), atol=1e-3, rtol=1e-2)
    solution.mu[..., 0].sum().backward()
    assert scores.grad.dtype == dtype


def test_a_users_structure_without_examples():
    scores = torch.zeros(0, 4, requires_grad=True)
    solution = project(CATEGORICAL.whole(), scores)
    assert solution.mu.shape == (0, 4)
    solution.mu.sum().backward()


def test_a_users_structure_with_nothing_feasible_is_an_error():
    class Both(pb.Structure):
        def argmax(self, scores):
            return torch.ones_like(scores)

    with pytest.raises(ValueError, match=r"example 1 of the batch has no feasible structure"):
        Both().sparsemap(torch.tensor([[0.0, 1.0], [0.0, -torch.inf]]))
    with pytest.raises(ValueError, match=r"example 0 of the batch contains NaN"):
        Both().sparsemap(torch.tensor([[0.0, torch.nan]]))


def test_users_structures_may_have_different_numbers_of_parts():
    """Every subset of K parts: SparseMAP is the projection onto the cube."""

    class Subsets(pb.Structure):
        def argmax(self, scores):
            return (scores > 0).to(scores)

    scores = (CATEGORICAL.random(5, n=6, seed=25) + 0.5).requires_grad_()
    mu = Subsets().sparsemap(scores)
    assert_close(mu, scores.detach().clamp(0, 1))
    v = CATEGORICAL.random(5, n=6, seed=26)
    (gradient,) = torch.autograd.grad(mu, scores, v)
    assert_close(gradient, torch.where((scores > 0) & (scores < 1), v, 0.0))


class Worst(pb.Structure):
    def argmax(self, scores):
        return torch.zeros_like(scores).scatter(-1, scores.argmin(-1, keepdim=True), 1.0)


@pytest.mark.parametrize("scale", [0.1, 1.0, 1e6])
def test_an_argmin_is_not_a_certificate(scale):
    with pytest.raises(ValueError, match=r"example \d of the batch has an argmax that is not the best structure"):
        Worst().sparsemap(CATEGORICAL.random(3, n=5, scale=scale, seed=27))


@pytest.mark.parametrize(
    ("argmax", "message"),
    [
        (lambda scores: scores.softmax(-1), "it must return zeros and ones"),
        (lambda scores: scores.argmax(-1), r"argmax returned \[3\] for scores of shape \[3, 5\]"),
        (lambda scores: None, "argmax returned NoneType for scores of shape"),
    ],
    ids=["averages", "indices", "nothing"],
)
def test_what_is_no_structure_is_an_error(argmax, message):
    class Broken(pb.Structure):
        def argmax(self, scores):
            return argmax(scores)

    with pytest.raises(ValueError, match=message):
        Broken().sparsemap(CATEGORICAL.random(3, n=5, seed=28))


def test_solved_examples_are_not_asked_again():
    """Unless the structure has attributes, such as lengths, that belong to the whole batch."""
    sizes = []

    class Best(pb.Structure):
        def argmax(self, scores):
            sizes.append(len(scores))
            return CATEGORICAL.whole().argmax(scores)

    scores = torch.stack([torch.zeros(12), torch.arange(12.0)])
    expected = CATEGORICAL.whole().sparsemap(scores)
    assert_close(Best().sparsemap(scores), expected)
    assert min(sizes) == 1
    with_lengths = Best()
    with_lengths.lengths = torch.tensor([12, 12])
    sizes.clear()
    assert_close(with_lengths.sparsemap(scores), expected)
    assert set(sizes) == {2}


def test_an_argmax_may_solve_another_search_of_the_same_size():
    class Searching(type(CATEGORICAL.whole())):
        def argmax(self, scores):
            project(CATEGORICAL.whole(), scores.flip(-1))
            return super().argmax(scores)

    scores = 0.1 * CATEGORICAL.random(3, n=6, seed=27)
    expected = CATEGORICAL.whole().sparsemap(scores)
    project(Searching(), scores)
    for some in (slice(0, 3), slice(1, 3)):  # the second search with memory that was kept for more examples
        assert_close(project(Searching(), scores[some]).mu, expected[some])


def test_a_users_structure_in_transforms():
    class Best(pb.Structure):
        def argmax(self, scores):
            return CATEGORICAL.whole().argmax(scores)

    scores, v = CATEGORICAL.random(3, n=5, seed=29), CATEGORICAL.random(3, n=5, seed=30)
    expected, tangent = torch.func.jvp(CATEGORICAL.whole().sparsemap, (scores,), (v,))
    assert_close(torch.vmap(Best().sparsemap)(scores), expected)
    assert_close(torch.func.jvp(Best().sparsemap, (scores,), (v,))[1], tangent)
    assert_close(torch.func.grad(lambda s: (Best().sparsemap(s) * v).sum())(scores), tangent)
    assert_close(torch.vmap(torch.func.grad(lambda s, u: (Best().sparsemap(s) * u).sum()))(scores, v), tangent)


def test_a_solution_is_shown_in_one_line():
    solution = project(CATEGORICAL.whole(), CATEGORICAL.random(2, n=5, seed=31))
    assert repr(solution).startswith("SparseMAPSolution(mu=[2, 5], gap<=")
    assert "\n" not in repr(solution)


def test_an_argmax_sees_float64_and_may_cast_inside():
    """What docs/write-a-structure.md says: s - mu is not rounded for the argmax, which may round it."""
    seen = []

    class Rounded(pb.Structure):
        event_dims = 2

        def argmax(self, scores):
            seen.append(scores.dtype)
            return pb.DependencyTree(validate=False).argmax(scores.float())

    scores = torch.randn(4, 6, 6, generator=torch.Generator().manual_seed(0))
    solution = Rounded().sparsemap_solution(scores)
    assert set(seen) == {torch.float64}
    assert solution.converged.all()
    torch.testing.assert_close(solution.mu, pb.DependencyTree().sparsemap(scores), atol=1e-6, rtol=0)
