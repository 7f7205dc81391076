"""The two SparseMAP solvers: against an independent one, against each other, and at their limits."""

import pytest
import torch
from torch.testing import assert_close

import pullback as pb
from cases import CATEGORICAL, TREE_CASES
from each import each
from oracles import everything
from pullback.inference.sparsemap import compiled
from pullback.inference.sparsemap.generic import project
from pullback.inference.sparsemap.solution import NotConverged
from pullback.inference.trees.family import TREES

COMPILED = pytest.mark.parametrize("case", [case for case in TREE_CASES if case.backend == "cpu"], ids=str)


class OnlyArgmax(pb.Structure):
    """A tree structure of which the solver knows the argmax alone."""

    event_dims = 2

    def __init__(self, tree):
        self.argmax = tree.argmax

    def argmax(self, scores):
        raise NotImplementedError


def over_the_simplex(structures, scores, steps=2000):
    """The projection by accelerated projected gradients over the weights of all structures."""
    z = structures.flatten(1)
    step = 1 / torch.linalg.matrix_norm(z @ z.T, 2)
    p = q = torch.full((len(z),), 1 / len(z), dtype=torch.float64)
    t = 1.0
    for _ in range(steps):
        new = CATEGORICAL.whole().sparsemap(q - step * (z @ (z.T @ q - scores.flatten())))
        if (q - new) @ (new - p) > 0:
            t = 1.0
        t_new = (1 + (1 + 4 * t * t) ** 0.5) / 2
        moved = (new - q).abs().max()  # zero at the projection alone
        q = new + (t - 1) / t_new * (new - p)
        p, t = new, t_new
        if moved < 1e-13:
            break
    return (p @ z).reshape(scores.shape)


def true_gap(structure, scores, mu):
    """The largest <s - mu, z - mu>, by the argmax in float64."""
    residual = scores.double() - mu.double()
    return structure.score(residual, structure.argmax(residual)) - structure.score(residual, mu.double())


def random_trees(case, *batch, n, seed):
    return case.whole().argmax(case.random(*batch, n=n, seed=seed))


_PROJECTIONS = {}


@each("scale", [0.0, 0.1, 1.0])
@pytest.mark.parametrize("n", [2, 3, 4])
def test_another_solver_finds_the_same_projection(tree, n, scale):
    scores = tree.random(2, n=n, scale=scale, seed=n)
    key = (tree.kind, n, scale)
    if key not in _PROJECTIONS:  # the solver is slow, and the same for every backend
        _PROJECTIONS[key] = torch.stack([over_the_simplex(everything(tree, n), s) for s in scores.cpu()])
    assert_close(tree.whole().sparsemap(scores).cpu(), _PROJECTIONS[key], atol=1e-6, rtol=0)


@COMPILED
@pytest.mark.parametrize("n", [1, 2, 6, 9])
def test_the_generic_solver_equals_the_fused_one(case, dtype, n):
    scores = case.random(3, n=n, dtype=dtype, seed=n).masked_fill(case.random(3, n=n, seed=1) < -1.2, -torch.inf)
    scores[:, 0] = case.random(3, n=n, dtype=dtype)[:, 0]  # word 0 as the root and the head of all others is left
    fused = case.whole().sparsemap_solution(scores)
    generic = project(OnlyArgmax(case.whole()), scores)
    assert_close(fused.mu, generic.mu, atol=1e-6 if dtype == torch.float32 else 1e-12, rtol=0)
    assert fused.converged.all()
    assert generic.converged.all()


@COMPILED
def test_gradients_of_the_generic_solver(case):
    structure = OnlyArgmax(case.whole())
    scores = case.random(2, n=4, seed=5).requires_grad_()
    assert torch.autograd.gradcheck(structure.sparsemap, scores, atol=1e-6)
    direction = case.random(2, n=4, seed=6)
    (generic,) = torch.autograd.grad(structure.sparsemap(scores), scores, direction)
    (fused,) = torch.autograd.grad(case.whole().sparsemap(scores), scores, direction)
    assert_close(generic, fused)


@COMPILED
@pytest.mark.parametrize("n", [1, 7, 20])
def test_the_jacobian_is_an_orthogonal_projector(case, n):
    scores = case.random(3, n=n, seed=2).requires_grad_()
    mu = case.whole().sparsemap(scores)
    v, w = case.random(3, n=n, seed=3), case.random(3, n=n, seed=4)
    (pv,) = torch.autograd.grad(mu, scores, v, retain_graph=True)
    (pw,) = torch.autograd.grad(mu, scores, w, retain_graph=True)
    (ppv,) = torch.autograd.grad(mu, scores, pv)
    assert_close(ppv, pv)
    assert_close((pv * w).sum(), (v * pw).sum())
    assert not pv[mu == 0].any()
    assert_close(pv.sum(-2), torch.zeros_like(pv.sum(-2)))


def test_gradients_with_hundreds_of_active_trees():
    """After hundreds of updates an inverse is inaccurate; the face that the Jacobian needs must not depend on it."""
    tree, generator = pb.DependencyTree(projective=False), torch.Generator().manual_seed(2)
    scores, along = (torch.randn(4, 70, 70, generator=generator) for _ in range(2))
    leaf, along = (0.3 * scores).double().requires_grad_(), along.double()
    mu = tree.sparsemap(leaf)
    (gradient,) = torch.autograd.grad(mu, leaf, along)
    ahead, behind = (tree.sparsemap(leaf.detach() + step * along) for step in (1e-6, -1e-6))
    assert_close(gradient, (ahead - behind) / 2e-6, atol=1e-5, rtol=0)


@COMPILED
@pytest.mark.parametrize("scale", [1e-3, 1.0])
def test_no_sentence_is_left_unsolved(case, dtype, scale):
    n = 50 if scale == 1.0 else 20
    scores = case.random(40 if scale == 1.0 else 3, n=n, dtype=dtype, scale=scale, seed=7)
    solution = case.whole().sparsemap_solution(scores)
    assert solution.converged.all()
    assert (solution.gap <= 1e-10).all()
    assert (true_gap(case.whole(), scores, solution.mu) <= (1e-10 if dtype == torch.float64 else 1e-5)).all()
    assert ((solution.weights > 0).sum(-1) <= n * (n - 1) + 1).all()


@COMPILED
@pytest.mark.parametrize("n", [3, 12])
def test_ties(case, dtype, n):
    """All trees are as good, so the projection is the shortest point; it exists although its weights are not unique."""
    solution = case.whole().sparsemap_solution(torch.zeros(2, n, n, dtype=dtype))
    assert solution.converged.all()
    assert (solution.gap <= 1e-10).all()
    assert_close(solution.mu[0], solution.mu[1])


@COMPILED
def test_huge_scores(case, dtype):
    scores = case.random(20, n=15, dtype=dtype, scale=1e6, seed=8)
    assert torch.equal(case.whole().sparsemap(scores), case.whole().argmax(scores))
    small = case.random(5, n=15, seed=9)
    assert_close(case.whole().sparsemap(small + 2.0**20), case.whole().sparsemap(small), atol=1e-7, rtol=0)


def test_scores_beyond_the_range_of_float32(tree):
    """An oracle that is rough at first finds no tree there, which does not mean that there is none."""
    scores = 1e200 * tree.random(3, n=4, seed=9)
    assert_close(tree.whole().sparsemap(scores), tree.whole().argmax(scores))


@COMPILED
def test_neighbours_in_the_batch_do_not_matter(case, dtype):
    lengths = torch.arange(50) % 13
    scores = case.random(50, n=12, dtype=dtype, seed=10)
    structure = pb.DependencyTree(lengths, case.projective, case.multiroot)
    before = torch.get_num_threads()
    together = structure.sparsemap_solution(scores)
    try:
        torch.set_num_threads(2)
        shared = structure.sparsemap_solution(scores)
    finally:
        torch.set_num_threads(before)
    assert_close(shared.mu, together.mu, atol=1e-6, rtol=0)
    for b in (0, 1, 2, 24, 25, 38, 49):
        n = int(lengths[b])
        alone = case.whole().sparsemap(scores[b, :n, :n])
        assert_close(together.mu[b, :n, :n], alone, atol=1e-6, rtol=0)
        assert together.mu[b].sum().round() == n


def test_a_warm_start_is_only_a_hint(tree, dtype):
    """Whatever it is: good or bad, a structure or not, forbidden, of other scores, or by the other solver."""
    structure, n = tree.whole(), 5
    scores = tree.random(3, n=n, dtype=dtype, seed=11)
    scores[:, 1, 3] = -torch.inf
    expected = structure.sparsemap(scores)
    other = structure.sparsemap_solution(tree.random(3, n=n, dtype=dtype, seed=12))
    generic = project(OnlyArgmax(structure), tree.random(3, n=n, dtype=dtype, seed=13))
    cycle = torch.eye(n, dtype=dtype).roll(1, 0).expand(3, n, n)
    hints = [
        structure.argmax(scores),
        structure.argmax(-scores.nan_to_num(neginf=0.0)).to(dtype),
        torch.eye(n, dtype=dtype).expand(3, n, n),
        torch.zeros(3, n, n, dtype=dtype),
        torch.full((3, n, n), torch.nan, dtype=dtype),
        cycle,
        other,
        generic,
        structure.sparsemap_solution(scores),
    ]
    for hint in hints:
        solution = structure.sparsemap_solution(scores, warm_start=hint)
        assert_close(solution.mu, expected, atol=1e-6, rtol=0)
        assert solution.converged.all()
    assert not structure.sparsemap(scores, warm_start=hints[1])[:, 1, 3].any()


@COMPILED
def test_a_warm_start_saves_calls(case):
    """SPIGOT's projection: from a tree to a point close by."""
    z = random_trees(case, 8, n=10, seed=14)
    scores = z - 0.02 * case.random(8, n=10, seed=15)
    cold = case.whole().sparsemap_solution(scores)
    again = case.whole().sparsemap_solution(scores, warm_start=cold)
    assert (again.oracle_calls <= 3).all()
    assert (again.oracle_calls < cold.oracle_calls).all()
    assert_close(again.mu, cold.mu)


@pytest.mark.parametrize("solve", [lambda s, z: pb.DependencyTree().sparsemap(s, warm_start=z),
                                   lambda s, z: project(OnlyArgmax(pb.DependencyTree()), s, warm_start=z)],
                         ids=["fused", "generic"])  # fmt: skip
def test_a_warm_start_of_another_shape_is_an_error(solve):
    with pytest.raises(ValueError, match=r"warm_start has shape \[2, 3, 3\] and scores \[2, 4, 4\]; pass"):
        solve(torch.zeros(2, 4, 4), torch.zeros(2, 3, 3))
    with pytest.raises(ValueError, match=r"warm_start has shape \[3, 4, 4\] and scores \[2, 4, 4\]; pass"):
        solve(torch.zeros(2, 4, 4), pb.DependencyTree().sparsemap_solution(torch.zeros(3, 4, 4)))


def test_an_iteration_limit_is_reported(tree):
    scores = tree.random(3, n=6, seed=16)
    with pytest.warns(NotConverged, match="stopped at 3 iterations before 3 of 3"):
        solution = tree.whole().sparsemap_solution(scores, max_iterations=3)
    assert not solution.converged.any()
    assert_close(solution.gap, true_gap(tree.whole(), scores, solution.mu))
    assert (solution.gap > 0).all()
    assert_close(solution.mu, (solution.weights[..., None, None] * solution.structures).sum(1))


def test_the_operator(tree, dtype):
    scores = tree.random(3, n=4, dtype=dtype, seed=18).requires_grad_()
    lengths = torch.tensor([4, 2, 0], device=tree.device)
    start = torch.zeros(3, 0, 4, dtype=torch.int32, device=tree.device)
    weights = torch.zeros(3, 0, dtype=torch.float64, device=tree.device)
    flags = tree.projective, tree.multiroot, True
    utilities = "test_schema", "test_autograd_registration", "test_faketensor"
    args = scores, lengths, start, weights, 100, True, 0.0, *flags
    torch.library.opcheck(TREES.sparsemap, args, test_utils=utilities)


@COMPILED
def test_compiled_models(case):
    structure = case.whole(torch.tensor([5, 3]))

    def model(s):
        z = structure.argmax(s)
        return (structure.sparsemap(2 * s).square() + structure.sparsemap(z - 0.1 * s, warm_start=z)).sum()

    scores = case.random(2, n=5, seed=19)
    eager, compiled = scores.clone().requires_grad_(), scores.clone().requires_grad_()
    model(eager).backward()
    torch.compile(model, fullgraph=True, backend="aot_eager")(compiled).backward()
    assert_close(compiled.grad, eager.grad)


@pytest.mark.parametrize("n", [5, 7, 8], ids=["fits", "ends just below", "grows"])
@pytest.mark.parametrize("complete", [False, True])
def test_active_sets_beyond_the_first_room_lose_nothing(monkeypatch, n, complete):
    monkeypatch.setattr(compiled, "_ROOM", 16)
    generator = torch.Generator().manual_seed(0)
    scores = 1e-3 * torch.randn(3, n, n, generator=generator, dtype=torch.float64)
    matching = pb.Matching()
    found = matching.sparsemap_solution(scores.requires_grad_(complete))
    z = matching.enumerate(n, n).double().flatten(1)
    apart = (scores - found.mu).detach().flatten(1)
    gap = (apart @ z.T).amax(1) - (apart * found.mu.detach().flatten(1)).sum(1)
    assert_close(gap, torch.zeros_like(gap), atol=1e-12, rtol=0)
    assert_close((found.weights[..., None, None] * found.structures).sum(1), found.mu.detach())
    assert_close(found.weights.sum(1), torch.ones_like(gap))


def test_scores_of_very_different_sizes_converge(tree):
    """Beside scores of 1e6, weights are known to 1e-10: what they still gain by then is rounding."""
    generator = torch.Generator().manual_seed(2)
    sizes = 10 ** (9 * torch.rand(8, 5, 5, generator=generator, dtype=torch.float64) - 3)
    scores = (tree.random(8, n=5, seed=21).cpu() * sizes).to(tree.device)
    solution = tree.whole().sparsemap_solution(scores)
    assert solution.converged.all()
    assert (solution.oracle_calls < 100).all()
    assert (solution.gap <= 1e-9).all()


@pytest.mark.parametrize("structure", [pb.LinearChain(), OnlyArgmax(pb.LinearChain())], ids=["family", "argmax alone"])
def test_a_warm_start_whose_score_leaves_the_range_is_ignored(structure):
    """Large finite masks: the sum of two is -inf in float64, and nothing is better or worse than that by a number."""
    scores = torch.zeros(2, 4, 2, 2, dtype=torch.float64)
    z = pb.LinearChain().argmax(scores)
    assert z.sum() == 8
    scores[0, 1:3].masked_fill_(z[0, 1:3] > 0, torch.finfo(torch.float64).min)
    warm, cold = structure.sparsemap_solution(scores, warm_start=z), structure.sparsemap_solution(scores)
    assert_close(warm.mu, cold.mu)
    assert not (warm.mu[0] * z[0])[1:3].any()
    assert warm.gap.isfinite().all()
