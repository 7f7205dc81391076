"""SparseMAP on the edges of a graph: Newton's method on flows, where an active set would need too many structures."""

import pytest
import torch
from torch.testing import assert_close

import pullback as pb
from pullback.inference.sparsemap import flow

SHAPES = {"chain": (5, 3, 3), "segmentation": (6, 3, 2), "one tag": (4, 1, 1), "one position": (1, 3, 3), "wide": (3, 5, 1)}
SCALES = [0.0, 1e-6, 1e-3, 0.1, 1.0, 10.0, 1e3]


@pytest.fixture(params=SHAPES)
def world(request, monkeypatch):
    """A structure with the shape of its scores and all members; searches go to Newton's method at once."""
    monkeypatch.setattr(flow, "_CALLS", 0)
    shape = SHAPES[request.param]
    make = pb.Segmentation if request.param in ("segmentation", "wide") else pb.LinearChain
    sizes = shape[:-1] if make is pb.LinearChain else shape
    return make(), shape, make().enumerate(*sizes).double().flatten(1)


def normal(*shape, seed):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def gap_among(members, scores, mu):
    """How much the best member improves on mu, for each example."""
    s, mu = scores.flatten(1), mu.detach().flatten(1)
    slack = torch.where(s == -torch.inf, -1e300, s - mu)
    own = torch.where(mu > 0, slack * mu, 0.0).sum(1)
    return (slack @ members.T).amax(1) - own


@pytest.mark.parametrize("scale", SCALES)
def test_no_member_improves(world, scale):
    structure, shape, members = world
    scores = scale * normal(8, *shape, seed=1)
    solution = structure.sparsemap_solution(scores)
    assert solution.converged.all()
    assert (gap_among(members, scores, solution.mu) <= 1e-13 * max(1.0, 10 * scale)).all()
    assert_close(solution.mu, (solution.weights[..., None, None, None] * solution.structures).sum(1))


def test_forbidden_parts_and_finite_masks(world):
    structure, shape, members = world
    scores = normal(8, *shape, seed=2)
    chosen = members[torch.arange(8) % len(members)].reshape(8, *shape).bool()
    taken = (torch.rand(8, *shape, generator=torch.Generator().manual_seed(3)) < 0.4) & ~chosen
    expected = structure.sparsemap(scores.masked_fill(taken, -torch.inf))
    assert not expected[taken].any()
    assert (gap_among(members, scores.masked_fill(taken, -torch.inf), expected) <= 1e-12).all()
    for mask in -1e9, -1e30, torch.finfo(torch.float64).min / 1e3:
        assert_close(structure.sparsemap(scores.masked_fill(taken, mask)), expected, atol=1e-6, rtol=0)


@pytest.mark.parametrize("scale", [1e-3, 0.3, 3.0])
def test_the_gradient_is_that_of_differences(world, scale):
    structure, shape, _ = world
    scores, v, step = scale * normal(4, *shape, seed=4), normal(4, *shape, seed=5), 1e-7
    leaf = scores.clone().requires_grad_()
    (found,) = torch.autograd.grad(structure.sparsemap(leaf), leaf, v)
    expected = (structure.sparsemap(scores + step * v) - structure.sparsemap(scores - step * v)) / (2 * step)
    assert_close(found, expected, atol=1e-6, rtol=0)


def test_equal_scores_have_the_projector_on_the_hull_as_jacobian():
    """Where a scorer of zeros starts, mu is inside the hull of all sequences."""
    chain, scores = pb.LinearChain(), torch.zeros(3, 3, 3, dtype=torch.float64)
    members = chain.enumerate(3, 3).double().flatten(1)
    leaf = scores.expand(27, 3, 3, 3).clone().requires_grad_()
    (found,) = torch.autograd.grad(chain.sparsemap(leaf), leaf, torch.eye(27, dtype=torch.float64).reshape(27, 3, 3, 3))
    directions = members - members[0]
    assert_close(found.flatten(1), torch.linalg.pinv(directions) @ directions)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_where_training_starts(dtype):
    """Nearly equal scores need thousands of structures, but few steps: their number is bounded, and so is the gap."""
    generator = torch.Generator().manual_seed(0)
    cases = [
        (pb.LinearChain(), torch.zeros(1, 50, 10, 10)),
        (pb.LinearChain(), 1e-6 * torch.randn(1, 60, 20, 20, generator=generator)),
        (pb.LinearChain(), torch.randn(1, 1500, 3, 3, generator=generator)),
        (pb.Segmentation(), torch.zeros(1, 100, 20, 5)),
        (pb.Segmentation(), torch.full((1, 100, 20, 5), -1.0)),
    ]
    for structure, scores in cases:
        leaf = scores.to(dtype).requires_grad_()
        solution = structure.sparsemap_solution(leaf)
        solution.mu.sum().backward()
        assert solution.converged.all()
        assert (solution.oracle_calls < 1000).all()
        s, mu = leaf.detach().double(), solution.mu.detach().double()
        best = structure.argmax(s - mu)
        assert ((s - mu) * (best - mu)).sum() <= {torch.float32: 1e-4, torch.float64: 1e-10}[dtype]
        assert leaf.grad.isfinite().all()


def test_a_flow_is_decomposed_into_independent_paths():
    chain = pb.LinearChain(torch.tensor([6, 3, 1, 0]))
    solution = chain.sparsemap_solution(1e-3 * normal(4, 6, 4, 4, seed=6))
    for structures, weights in zip(solution.structures.flatten(2), solution.weights, strict=True):
        used = structures[weights > 0]
        assert_close(weights.sum(), torch.tensor(1.0, dtype=torch.float64))
        assert torch.linalg.matrix_rank(used - used[0]) == len(used) - 1
    assert [int((w > 0).sum()) for w in solution.weights[2:]] == [4, 1]


def test_a_limit_of_steps_is_reported_with_a_mean_of_structures(monkeypatch):
    monkeypatch.setattr(flow, "_CALLS", 0)
    scores = normal(3, 12, 4, 4, seed=7)
    with pytest.warns(pb.NotConverged, match="stopped at 3 iterations"):
        solution = pb.LinearChain().sparsemap_solution(scores, max_iterations=3)
    assert not solution.converged.any()
    tags = solution.mu.sum((-1, -2))
    assert_close(tags, torch.ones_like(tags))
    assert_close(solution.mu[:, :-1].sum(-2), solution.mu[:, 1:].sum(-1))
    z = pb.LinearChain().argmax(scores - solution.mu)
    assert_close(((scores - solution.mu) * (z - solution.mu)).sum((1, 2, 3)), solution.gap)


@pytest.mark.parametrize("structure", [pb.LinearChain(), pb.BinaryTree(), pb.DependencyTree()], ids=lambda s: type(s).__name__)
def test_a_tolerance_bounds_the_gap_and_saves_calls(structure):
    shape = (30, 5, 5) if isinstance(structure, pb.LinearChain) else (20, 20)
    scores = normal(4, *shape, seed=8)
    exact, rough = structure.sparsemap_solution(scores), structure.sparsemap_solution(scores, tolerance=0.1)
    assert rough.converged.all()
    assert (rough.gap <= 0.1).all()
    assert (rough.oracle_calls < exact.oracle_calls).all()
    assert ((rough.mu - exact.mu).square().flatten(1).sum(1) <= rough.gap + 1e-12).all()
    for wrong in -1.0, "small", float("nan"):
        with pytest.raises(ValueError, match="tolerance is"):
            structure.sparsemap(scores, tolerance=wrong)


CENTRED = [
    pb.DependencyTree(), pb.DependencyTree(multiroot=False), pb.DependencyTree(projective=False),
    pb.DependencyTree(projective=False, multiroot=False),
]  # fmt: skip


@pytest.mark.parametrize("structure", CENTRED, ids=repr)
def test_equal_scores_of_trees_are_projected_at_once(structure):
    scores = torch.full((2, 5, 5), 0.3, dtype=torch.float64)
    solution = structure.sparsemap_solution(scores)
    assert (solution.oracle_calls <= 2).all()
    members = structure.enumerate(5).double().flatten(1)
    assert (gap_among(members, scores[:1], solution.mu[:1]) <= 1e-14).all()


def test_nearly_equal_scores_of_matchings():
    matching, scores = pb.Matching(), 1e-3 * normal(4, 3, 4, seed=9)
    solution = matching.sparsemap_solution(scores)
    assert (gap_among(matching.enumerate(3, 4).double().flatten(1), scores, solution.mu) <= 1e-14).all()
    assert_close(matching.sparsemap(torch.zeros(3, 4)), torch.full((3, 4), 0.25))


def test_what_a_limit_leaves_of_long_sentences_of_nearly_equal_scores():
    """Thousands of trees would be needed; a few hundred already have a small gap."""
    scores = 1e-6 * normal(1, 50, 50, seed=10)
    leaf = scores.requires_grad_()
    with pytest.warns(pb.NotConverged):
        solution = pb.DependencyTree().sparsemap_solution(leaf, max_iterations=60)
    assert solution.oracle_calls <= 61
    assert solution.gap <= 1e-4
    solution.mu.sum().backward()
    assert leaf.grad.isfinite().all()
    assert pb.DependencyTree().sparsemap_solution(scores.detach(), tolerance=1e-3).converged.all()
