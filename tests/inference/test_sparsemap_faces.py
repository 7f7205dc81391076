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
    z = case.whole().argmax(case.random(16, n=30, seed=20))
    scores = (z - 0.1 * case.random(16, n=30, seed=21)).requires_grad_()
    v = case.random(16, n=30, seed=22)
    (gradient,) = torch.autograd.grad(case.whole().sparsemap(scores), scores, v)
    assert_close(gradient, by_differences(case.whole(), scores.detach(), v, step=1e-7), atol=1e-5, rtol=0)


@pytest.mark.parametrize("case", PROJECTIVE, ids=str)
def test_faces_of_hundreds_of_dimensions(case):
    """Scores that hardly differ: the search alone finds most of the trees that span the face, not all."""
    structure = case.whole(torch.tensor([4, 30, 0]))
    scores, v = case.random(3, n=31, scale=1e-2, seed=30), case.random(3, n=31, seed=31)
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


def jacobian(structure, scores):
    s = scores.clone().requires_grad_()
    mu = structure.sparsemap(s)
    rows = torch.eye(s.numel(), dtype=s.dtype).reshape(-1, *s.shape)
    return torch.stack([torch.autograd.grad(mu, s, row, retain_graph=True)[0].flatten() for row in rows])


def projector_onto(directions):
    return torch.linalg.pinv(directions) @ directions


@pytest.mark.parametrize(("n", "rank"), [(3, 5), (4, 11), (5, 19)])
def test_all_scores_equal(n, rank):
    """Where a scorer of zeros starts: all trees tie, and mu is inside their hull."""
    structure = pb.DependencyTree(projective=False, multiroot=False)
    trees = structure.enumerate(n).double().flatten(1)
    found = jacobian(structure, torch.zeros(n, n, dtype=torch.float64))
    assert torch.linalg.matrix_rank(found) == rank
    assert_close(found, projector_onto(trees - trees[0]))


def test_two_words_that_tie():
    scores = torch.tensor([[0.0, 1, 1], [0, 0, 0], [1, 1, 0]], dtype=torch.float64)
    assert_close(jacobian(pb.DependencyTree(), scores)[0, 0], torch.tensor(0.25, dtype=torch.float64))


class Any(pb.Structure):
    """A user's structure: the best of a list."""

    def __init__(self, members):
        self.members = members

    def argmax(self, scores):
        return self.members.to(scores)[(scores @ self.members.to(scores).T).argmax(-1)]


def tied(n, seed):
    """Small integers, halves or quarters."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(-1, 3, (n, n), generator=generator).double() / (1, 2, 4)[seed % 3]


@pytest.mark.parametrize("case", COMPILED, ids=str)
@pytest.mark.parametrize("generic", [False, True], ids=["tree", "users"])
def test_exact_ties(case, generic):
    """Where the projection has a derivative, which differences show, the completed face gives it."""
    for n, seed in [(2, 0), (3, 1), (3, 2), (4, 3), (4, 4), (5, 5), (5, 6), (5, 7)]:
        scores, v = tied(n, seed), normal(6, n, n, seed=seed)
        structure = case.whole()
        solve = structure
        if generic:
            members = structure.enumerate(n).double().flatten(1)
            scores, v, solve = scores.flatten(), v.flatten(1), Any(members)
        mu, step = solve.sparsemap(scores), 1e-5
        right = (solve.sparsemap(scores + step * v) - mu) / step
        left = (mu - solve.sparsemap(scores - step * v)) / step
        if (right - left).abs().max() < 1e-6:
            found = v.flatten(1) @ jacobian(solve, scores)
            assert_close(found, right.flatten(1), atol=1e-6, rtol=0)
