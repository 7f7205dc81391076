"""SparseMAP is the Euclidean projection onto the hull of the enumerated structures, and says so itself."""

import pytest
import torch
from torch.testing import assert_close

from cases import CATEGORICAL
from each import each
from oracles import everything, forbid, index_of, totals

GAP = {torch.float32: 1e-5, torch.float64: 1e-10}
SIZES = each("sizes", [(0, False), (1, False), (3, True), (4, False), (5, True)])  # n, and whether parts are forbidden


def scores_of(projected_case, dtype, sizes):
    """From well inside the polytope to far outside."""
    (n, forbidden), scale = sizes, torch.tensor([0.1, 1.0, 10.0], dtype=dtype, device=projected_case.device)
    scores = scale.reshape(3, *[1] * projected_case.event_dims) * projected_case.random(
        3, n=max(n, projected_case.smallest), dtype=dtype, seed=n
    )
    return forbid(projected_case, scores, seed=n) if forbidden else scores


def duality_gap(case, scores, mu):
    """The largest <s - mu, z - mu> over the enumerated set: the squared distance to the optimum is at most this."""
    s, mu = scores.double().cpu(), mu.double().cpu()
    slack = torch.where(s == -torch.inf, s, s - mu)
    own = torch.where(s == -torch.inf, 0.0, slack).mul(mu).sum()
    return totals(everything(case, s.shape[0]), slack, case.own).amax() - own


def size(scores):
    """What rounding is relative to."""
    return max(1.0, scores[scores > -torch.inf].double().abs().sum().item())


@SIZES
def test_no_structure_improves_on_the_projection_and_its_certificate_is_true(projected_case, dtype, sizes):
    scores = scores_of(projected_case, dtype, sizes)
    solution = projected_case.whole().sparsemap_solution(scores)
    assert solution.mu.dtype == dtype
    assert not solution.mu[scores == -torch.inf].any()
    for s, mu, gap in zip(scores, solution.mu, solution.gap, strict=True):
        assert gap <= GAP[dtype] * size(s)
        assert duality_gap(projected_case, s, mu) <= GAP[dtype] * size(s)
        assert duality_gap(projected_case, s, mu) <= gap.item() + 100 * torch.finfo(dtype).eps * size(s)


@SIZES
def test_the_projection_is_a_mean_of_structures(projected_case, dtype, sizes):
    scores = scores_of(projected_case, dtype, sizes)
    solution = projected_case.whole().sparsemap_solution(scores)
    batch, parts = scores.shape[0], scores.shape[1:]
    assert solution.structures.shape[:2] == solution.weights.shape
    assert solution.structures.shape[2:] == parts
    assert solution.converged.all()
    assert (solution.oracle_calls >= 1).all() or scores.numel() == 0 or projected_case.name in ("subset", "at most")
    assert (solution.weights >= 0).all()
    assert_close(solution.weights.sum(-1), torch.ones(batch).to(solution.weights))
    for structures, weights in zip(solution.structures, solution.weights, strict=True):
        used = index_of(projected_case, structures[weights > 0])
        assert len(used.unique()) == len(used)
    weights = solution.weights.reshape(*solution.weights.shape, *[1] * projected_case.event_dims)
    mean = (weights * torch.where(weights > 0, solution.structures.double(), 0.0)).sum(1)
    tolerance = {torch.float32: 1e-5, torch.float64: 1e-9}[dtype]
    assert_close(solution.mu.double(), mean, atol=tolerance, rtol=0)
    assert_close(solution.mu, projected_case.whole().sparsemap(scores), atol=tolerance, rtol=0)


def test_a_structure_is_its_own_projection(projected_case, dtype):
    z = everything(projected_case, 4).to(projected_case.device, dtype)[::5]
    assert_close(projected_case.whole().sparsemap(z), z)


def test_large_scores_give_the_argmax(projected_case, dtype):
    scores = projected_case.random(4, n=4, dtype=dtype, scale=1e4, seed=1)
    assert_close(projected_case.whole().sparsemap(scores), projected_case.whole().argmax(scores))


def test_a_warm_start_changes_the_work_and_not_the_answer(projected_case, dtype):
    structure = projected_case.whole()
    scores = projected_case.random(4, n=5, dtype=dtype, seed=2)
    cold = structure.sparsemap_solution(scores)
    assert_close(structure.sparsemap(scores, warm_start=structure.argmax(scores)), cold.mu)
    warm = structure.sparsemap_solution(scores, warm_start=cold)
    assert_close(warm.mu, cold.mu)
    assert (warm.oracle_calls <= cold.oracle_calls).all()


def test_a_tree_that_is_its_own_projection_is_taken_as_a_start(tree, dtype):
    structure = tree.whole()
    z = structure.argmax(tree.random(16, n=5, dtype=dtype, seed=3))
    warm, cold = structure.sparsemap_solution(z, warm_start=z), structure.sparsemap_solution(z)
    assert_close(warm.mu, z)
    assert (warm.oracle_calls < cold.oracle_calls).all()


def test_sparsemax_in_closed_form_equals_the_active_set(dtype):
    scores = CATEGORICAL.random(300, n=8, dtype=dtype, seed=3)
    assert_close(
        CATEGORICAL.whole().sparsemap(scores),
        CATEGORICAL.whole().sparsemap_solution(scores).mu,
        atol=1e-5,
        rtol=0,
    )


def test_a_single_root_projection_uses_single_root_trees_only(tree, dtype):
    """Projecting multi-root trees and renormalising would not do: the exact projection has one unit of root."""
    scores = tree.random(8, n=5, dtype=dtype, seed=4) + 2 * torch.eye(5, dtype=dtype, device=tree.device)
    roots = tree.whole().sparsemap(scores).diagonal(dim1=-2, dim2=-1).sum(-1)
    if tree.multiroot:
        assert (roots > 1.01).any()
    else:
        assert_close(roots, torch.ones_like(roots))


def test_it_stops_at_optimality_also_on_long_sentences(tree, dtype):
    n = 7 if tree.is_slow else 50
    scores = tree.random(3, n=n, dtype=dtype, seed=5)
    solution = tree.whole().sparsemap_solution(scores)
    assert solution.converged.all()
    gap = {torch.float32: 1e-4, torch.float64: 1e-10}[dtype]
    assert (solution.gap <= gap).all()
    s, mu = scores.double(), solution.mu.double()
    z = tree.whole().argmax(s - mu)  # the certificate anew: a best structure improves by no more than this
    assert (((s - mu) * (z - mu)).sum((1, 2)) <= gap).all()


def test_an_iteration_limit_that_is_hit_is_reported(tree):
    scores = tree.random(3, n=6, seed=6)
    with pytest.warns(RuntimeWarning, match=r"stopped at 2 iterations before 3 of 3 .* max_iterations"):
        solution = tree.whole().sparsemap_solution(scores, max_iterations=2)
    assert not solution.converged.any()
    assert (solution.gap > 1e-6).all()


def test_a_warm_start_of_another_shape(tree):
    with pytest.raises(ValueError, match=r"warm_start has shape \[3, 4, 4\] and scores \[3, 5, 5\]"):
        tree.whole().sparsemap(tree.random(3, n=5), warm_start=torch.zeros(3, 4, 4, device=tree.device))
