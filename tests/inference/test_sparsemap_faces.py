"""SparseMAP's gradient is the projector onto the face of the solution: the active set has to span it."""

import pytest
import torch
from torch.testing import assert_close

import pullback as pb
from cases import TREE_CASES

COMPILED = [case for case in TREE_CASES if not case.is_slow]
PROJECTIVE = [case for case in COMPILED if case.projective]


def normal(*shape, seed):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def by_differences(structure, scores, v, step):
    return (structure.sparsemap(scores + step * v) - structure.sparsemap(scores - step * v)) / (2 * step)


@pytest.mark.parametrize("case", COMPILED, ids=str)
def test_the_active_set_spans_the_face(case):
    """A point of a large face may be the mean of a few of its trees; the gradient needs them all."""
    z = case.structure().argmax(case.scores(16, n=30, seed=20))
    scores = (z - 0.1 * case.scores(16, n=30, seed=21)).requires_grad_()
    v = case.scores(16, n=30, seed=22)
    (gradient,) = torch.autograd.grad(case.structure().sparsemap(scores), scores, v)
    assert_close(gradient, by_differences(case.structure(), scores.detach(), v, step=1e-7), atol=1e-5, rtol=0)


@pytest.mark.parametrize("case", PROJECTIVE, ids=str)
def test_faces_of_hundreds_of_dimensions(case):
    """Scores that hardly differ: the search alone finds most of the trees that span the face, not all."""
    structure = case.structure(torch.tensor([4, 30, 0]))
    scores, v = case.scores(3, n=31, scale=1e-2, seed=30), case.scores(3, n=31, seed=31)
    expected = by_differences(structure, scores, v, step=1e-6)
    for dtype in torch.float64, torch.float32:
        s = scores.to(dtype).requires_grad_()
        solution = structure.sparsemap_solution(s)
        assert_close(solution.mu, (solution.weights[..., None, None] * solution.structures).sum(1).to(dtype))
        (gradient,) = torch.autograd.grad(solution.mu, s, v.to(dtype))
        assert (gradient - expected).norm() <= 1e-4 * expected.norm(), dtype


def test_inside_the_polytope_all_directions_are_found():
    """There the Jacobian is known: a word's heads share what each of them gets."""
    n = 40
    scores = (1e-3 * normal(1, n, n, seed=n) + 0.05 * torch.eye(n)).requires_grad_()
    solution = pb.DependencyTree(projective=False).sparsemap_solution(scores)
    assert solution.structures.shape[1] == n * (n - 1) + 1
    v = normal(1, n, n, seed=1)
    (gradient,) = torch.autograd.grad(solution.mu, scores, v)
    assert_close(gradient, v - v.mean(-2, keepdim=True))


def test_the_trees_of_an_active_set_do_not_depend_on_each_other():
    """Where many tie, the distance of a tree from the span of others may be rounding: it shows nothing new."""
    generator = torch.Generator().manual_seed(3)
    scores = [torch.randn(70, 70, generator=generator, dtype=torch.float64) for _ in range(3)][-1].requires_grad_()
    solution = pb.DependencyTree(projective=False, multiroot=False).sparsemap_solution(scores)
    trees = solution.structures.flatten(1)
    assert torch.linalg.matrix_rank(trees - trees[0]) == len(trees) - 1
    (gradient,) = torch.autograd.grad(solution.mu.square().sum(), scores)
    assert gradient.isfinite().all()
