"""SparseMAP on a GPU: the projections, gradients and certificates of the CPU, or of the reference in the interpreter."""

from __future__ import annotations

import itertools

import pytest
import torch
from torch.testing import assert_close

import pullback as pb
from cases import QUICK
from pullback.inference._triton.support import constant, interpreting
from pullback.inference.front.family import backend
from pullback.inference.sparsemap import compiled, cuda, cuda_active_set
from pullback.inference.sparsemap.solution import NotConverged, SparseMAPSolution, VertexSet
from pullback.inference.trees.family import TREES

if not torch.cuda.is_available() and not interpreting():
    pytest.skip("needs a GPU, or Triton's interpreter: test_interpreter.py runs it there", allow_module_level=True)

RIGHT = "reference" if interpreting() else "cpu"
KINDS = pytest.mark.parametrize(
    ("projective", "multiroot"),
    [(True, True), (True, False), (False, True), (False, False)],
    ids=["projective", "projective-singleroot", "nonprojective", "nonprojective-singleroot"],
)
# small scores lie inside the polytope and need many trees, large ones need few
LARGE = [*itertools.product([1, 5, 16, 31], [0.1, 0.3, 1.0, 10.0]), (32, 1.0), (40, 0.3), (63, 1.0), (70, 1.0), (200, 20.0)]
if QUICK:
    LARGE = [(5, 0.3), (31, 1.0), (40, 0.3), (70, 1.0)]
SCORES = pytest.mark.parametrize(("n", "scale"), [(1, 1.0), (4, 0.3)] if interpreting() else LARGE)


def batch(n, scale=1.0, size=None, dtype=torch.float32):
    """Scores with NaN in the padding and some arcs forbidden, and lengths; on the CPU."""
    generator = torch.Generator().manual_seed(n)
    size = size or (2 if interpreting() else 6)
    scores = scale * torch.randn(size, n, n, generator=generator, dtype=torch.float64)
    if n > 3:
        scores[0, 0, 2] = scores[1, 3, 1] = -torch.inf
    lengths = torch.randint(0, n + 1, (size,), generator=generator)
    lengths[0] = n
    padding = torch.arange(n) >= lengths[:, None]
    return scores.masked_fill(padding[:, :, None] | padding[:, None, :], torch.nan).to(dtype), lengths


def solve(scores, lengths, projective, multiroot, warm_start=None, name="cuda"):
    """The solution, and the gradient of a weighted sum of it."""
    with backend(name):
        leaf = scores.detach().clone().requires_grad_()
        tree = pb.DependencyTree(lengths.to(leaf.device), projective, multiroot)
        solution = tree.sparsemap_solution(leaf, warm_start=warm_start)
        weights = torch.linspace(0.5, 1.5, leaf.numel(), dtype=leaf.dtype).reshape(leaf.shape).to(leaf.device)
        (gradient,) = torch.autograd.grad((solution.mu * weights).sum(), leaf)
    return solution, gradient


def gap_of(scores, lengths, mu, projective, multiroot):
    """The largest <s - mu, z - mu> of any tree, in float64: zero proves that mu is the projection."""
    real = torch.arange(scores.shape[-1]) < lengths[:, None]
    real = real[:, :, None] & real[:, None, :]
    s, mu = torch.where(real, scores, 0.0).double(), mu.detach().cpu().double()
    with backend(RIGHT):
        z = pb.DependencyTree(lengths, projective, multiroot).argmax(s - mu)
    used = (z > 0) | (mu > 0)
    return (torch.where(used, s - mu, 0.0) * (z - mu)).sum((-1, -2))


def assert_projects(scores, lengths, projective, multiroot, device, warm_start=None):
    found, gradient = solve(scores.to(device), lengths, projective, multiroot, warm_start)
    expected, expected_gradient = solve(scores.double(), lengths, projective, multiroot, name=RIGHT)
    assert found.converged.all()
    assert_close(found.mu.detach().cpu().double(), expected.mu.detach(), atol=2e-6, rtol=0)
    assert_close(gradient.cpu().double(), expected_gradient, atol=1e-5, rtol=0)
    assert (found.weights >= 0).all()
    mean = (found.weights[..., None, None] * found.structures.double()).sum(1)
    assert_close(found.mu.detach().double(), mean, atol=1e-6, rtol=0)
    assert (gap_of(scores, lengths, mean, projective, multiroot) < 1e-9).all()  # of mu the gap would show its rounding
    assert (found.gap < 1e-9).all()
    return found


@SCORES
@KINDS
def test_projections(device, n, scale, projective, multiroot):
    assert_projects(*batch(n, scale), projective, multiroot, device)


@pytest.mark.parametrize(("projective", "multiroot"), [(True, False), (False, True)])
def test_a_warm_start_changes_the_work_and_not_the_answer(device, projective, multiroot):
    scores, lengths = batch(3 if interpreting() else 20)
    cold = assert_projects(scores, lengths, projective, multiroot, device)
    warm = assert_projects(scores, lengths, projective, multiroot, device, warm_start=cold)
    assert (warm.oracle_calls <= cold.oracle_calls + 1).all()
    tree = pb.DependencyTree(lengths.to(device), projective, multiroot)
    assert_projects(scores, lengths, projective, multiroot, device, warm_start=tree.argmax(scores.to(device)))
    nonsense = torch.ones_like(scores, device=device)
    assert_projects(scores, lengths, projective, multiroot, device, warm_start=nonsense)


@pytest.mark.parametrize("most", [63, 0])
@pytest.mark.parametrize("multiroot", [True, False])
def test_the_oracles_in_global_memory(device, monkeypatch, most, multiroot):
    monkeypatch.setattr(cuda, "_MEDIUM", most)
    assert_projects(*batch(5 if interpreting() else 6, 0.5), True, multiroot, device)


@pytest.mark.parametrize("projective", [True, False])
def test_active_sets_that_do_not_fit_into_the_first_launch(device, monkeypatch, projective):
    monkeypatch.setattr(cuda, "_ROOM", 3)
    monkeypatch.setattr(cuda, "program_count", lambda sentences, scratch: 1)
    scores, lengths = batch(3, 0.05)
    found = assert_projects(scores, lengths, projective, True, device)
    assert found.weights.shape[-1] > 3
    assert_projects(scores, lengths, projective, True, device, warm_start=found)


@pytest.mark.skipif(not interpreting(), reason="changes a constant")
def test_changes_of_the_inverse_that_are_pending(device, monkeypatch):
    monkeypatch.setattr(cuda_active_set, "_SMALL", constant(0))
    assert_projects(*batch(4, 0.1), False, True, device)


@pytest.mark.parametrize(("unproven", "short"), [(0, 0), (1, 31), (1, 0)])
def test_the_active_set_spans_the_face(device, monkeypatch, unproven, short):
    """The middle of a square of trees, whose words 1 and 3 have two heads each, is halfway between opposite ones."""
    monkeypatch.setenv("PULLBACK_UNPROVEN_KERNELS", str(unproven))
    monkeypatch.setattr(cuda, "_SHORT", short)
    heads = torch.tensor([[[0, 0, 0, 2], [0, 2, 0, 0]]], dtype=torch.int32, device=device)
    arcs = 4 * heads + torch.arange(4, dtype=torch.int32, device=device)
    halves, two = torch.full((1, 2), 0.5, dtype=torch.float64, device=device), torch.tensor([2], device=device)
    opposite = VertexSet(arcs, halves, two, torch.Size([1]), torch.Size([4, 4]), torch.float32)
    scores = opposite.structures.mean(1)
    start = SparseMAPSolution(scores, two, two, two, opposite)
    found = pb.DependencyTree().sparsemap_solution(scores, warm_start=start)
    assert found.active_set.counts.tolist() == [2]
    found = pb.DependencyTree().sparsemap_solution(scores.requires_grad_(), warm_start=start)
    assert_close(found.mu, scores)
    trees = found.structures[0].flatten(1)
    assert torch.linalg.matrix_rank(trees - trees[0]) == 2


@pytest.mark.parametrize(("n", "rank"), [(3, 5)] if interpreting() else [(3, 5), (4, 11), (5, 19)])
def test_nonprojective_ties_of_all_trees(device, n, rank):
    """At scores of zero the whole polytope is the face, and the Jacobian projects onto its directions."""
    with backend("cuda"):
        scores = torch.zeros(1, n, n, dtype=torch.float64, device=device, requires_grad=True)
        mu = pb.DependencyTree(projective=False, multiroot=False).sparsemap(scores).flatten()
        (first,) = torch.autograd.grad(mu[0], scores, retain_graph=True)
        rows = [torch.autograd.grad(x, scores, retain_graph=True)[0].flatten() for x in mu] if not interpreting() else []
    if n == 3:
        assert_close(first[0, 0, 0].item(), 4 / 9)
    if rows:
        assert torch.linalg.matrix_rank(torch.stack(rows).cpu()) == rank


def test_without_room_for_another_tree_it_says_so(device, monkeypatch):
    monkeypatch.setattr(cuda, "_ROOM", 2)
    monkeypatch.setattr(cuda, "active_set_capacity", lambda n: 4)
    scores, lengths = batch(3, 0.05, size=2)
    with backend("cuda"), pytest.warns(NotConverged, match=r"4 trees a sentence at most; 1 of 2 .* scores.cpu"):
        solution = pb.DependencyTree(lengths.to(device), validate=True).sparsemap_solution(scores.to(device))
    assert not solution.converged[0]
    assert solution.gap[0] > 1e-4
    assert_close(solution.weights[0].sum().item(), 1.0)


def test_nan_and_infeasible_sentences_do_not_spoil_their_neighbours(device):
    scores, lengths = batch(2, size=4)
    lengths[:] = 2
    scores = torch.where(scores.isnan(), 0.5, scores)
    tree = pb.DependencyTree(lengths.to(device), validate=False)
    with backend("cuda"):
        clean = tree.sparsemap(scores.to(device))
        scores[1, 0, 1], scores[2, :, 1] = torch.nan, -torch.inf
        found = tree.sparsemap(scores.to(device))
    assert torch.equal(found[[0, 3]], clean[[0, 3]])
    assert found[1].isnan().all()
    assert found[2].isnan().all()
    with backend("cuda"), pytest.raises(ValueError, match="sentence 1"):
        pb.DependencyTree(lengths.to(device), validate=True).sparsemap(scores.to(device))


def test_empty_batches_and_sentences(device):
    with backend("cuda"):
        assert pb.DependencyTree().sparsemap(torch.zeros(0, 3, 3, device=device)).shape == (0, 3, 3)
        assert pb.DependencyTree().sparsemap(torch.zeros(2, 0, 0, device=device)).shape == (2, 0, 0)
        nothing = torch.full((2, 2, 2), torch.nan, device=device)
        for scores in (torch.zeros(2, 0, 0, device=device), nothing):
            solution = pb.DependencyTree(torch.zeros(2, dtype=torch.long)).sparsemap_solution(scores)
            assert solution.converged.all()
            assert torch.equal(solution.weights.cpu(), torch.ones(2, 1, dtype=torch.float64))
            assert not solution.structures.any()
            assert not solution.mu.any()


def test_a_small_step_from_a_tree(gpu):
    """SPIGOT's projection, of 64 sentences of 30 words."""
    generator = torch.Generator().manual_seed(0)
    scores, lengths = torch.randn(64, 30, 30, generator=generator), torch.full((64,), 30)
    for projective in (True, False):
        z = pb.DependencyTree(projective=projective).argmax(scores)
        moved = z - 0.1 * torch.randn(64, 30, 30, generator=generator)
        assert_projects(moved, lengths, projective, True, gpu, warm_start=z.to(gpu))


def test_thousands_of_sentences(gpu):
    assert_projects(*batch(8, size=4096), True, True, gpu)


def test_the_jacobian_of_hundreds_of_nonprojective_trees(gpu):
    """Trees that almost depend on each other (singular values down to 7e-6): one product with their inverse is off by 4e-4."""
    size, n, generator = 8, 40, torch.Generator().manual_seed(0)
    scores = (0.3 * torch.randn(size, n, n, generator=generator)).double()
    direction = torch.randn(size, n, n, generator=generator).double()
    starts = torch.zeros(size, 0, n, dtype=torch.int32), torch.zeros(size, 0, dtype=torch.float64)
    _, vertices, _, counts, *_ = TREES.sparsemap(scores, torch.full((size,), n), *starts, 10_000, True, 0.0, False, False, True)
    found = cuda.sparsemap_vjp(vertices.to(gpu), counts.to(gpu), direction.to(gpu))
    assert_close(found.cpu(), compiled.sparsemap_vjp(vertices, counts, direction), atol=1e-5, rtol=0)
