"""The projection onto the local polytope: optimal there, and SparseMAP wherever it is an average of trees."""

from __future__ import annotations

import itertools

import pytest
import torch
from torch import Tensor

import pullback as pb
from cases import Entry
from each import each


def corners(n: int, multiroot: bool) -> Tensor:
    """One head for each word, and a root: trees or not."""
    roots = [sum(h == m for m, h in enumerate(heads)) for heads in itertools.product(range(n), repeat=n)]
    right = [count >= 1 if multiroot else count == 1 for count in roots]
    heads = torch.tensor(list(itertools.product(range(n), repeat=n)))[torch.tensor(right)]
    return torch.nn.functional.one_hot(heads, n).mT.double()


@each("scale", [0.01, 1.0, 100.0, 1e6])
@each("n", [1, 2, 3, 4])
def test_no_corner_improves_on_it(tree: Entry, n: int, scale: float) -> None:
    scores = tree.random(20, n=n, scale=scale)
    mu = tree.whole().local_projection(scores)
    z = corners(n, tree.multiroot).to(mu.device)
    gap = torch.einsum("bij,sij->bs", (scores - mu), z).amax(1) - ((scores - mu) * mu).sum((-1, -2))
    assert (gap <= 1e-9 * max(1.0, scale)).all()
    assert (mu >= 0).all()
    torch.testing.assert_close(mu.sum(-2), torch.ones_like(mu[:, 0]), atol=1e-9, rtol=0)
    roots = mu.diagonal(dim1=-2, dim2=-1).sum(-1)
    assert (roots >= 1 - 1e-9).all()
    assert tree.multiroot or (roots <= 1 + 1e-9).all()


@pytest.mark.parametrize("n", [1, 2, 5, 12])
def test_inner_points_are_projected_as_by_sparsemap(tree: Entry, n: int) -> None:
    n = min(n, 4) if tree.is_slow else n
    scores = tree.random(6, n=n)
    step = 1e-3 * tree.random(6, n=n, seed=1)
    structure = tree.whole()
    target = structure.marginals(0.1 * scores) - step / n
    torch.testing.assert_close(structure.local_projection(target), structure.sparsemap(target), atol=1e-9, rtol=0)


def test_padding_and_forbidden_arcs(tree: Entry) -> None:
    lengths = torch.tensor([5, 3, 1, 0])
    scores = tree.random(4, n=5)
    scores[:, 1, 2] = scores[:, 0, 0] = -torch.inf
    scores[2:, 0, 0] = 0.0
    words = torch.arange(5) < lengths[:, None]
    real = (words[:, :, None] & words[:, None, :]).to(scores.device)
    found = tree.whole(lengths).local_projection(torch.where(real, scores, torch.nan))
    assert (found[~real] == 0).all()
    assert (found[scores == -torch.inf] == 0).all()
    for i, length in enumerate(lengths.tolist()[:2]):
        alone = tree.whole().local_projection(scores[i : i + 1, :length, :length])
        torch.testing.assert_close(found[i, :length, :length], alone[0])


@pytest.mark.parametrize("scale", [1.0, 1e6, 1e12])
def test_words_that_only_have_the_root(scale: float) -> None:
    scores = scale * torch.randn(8, 4, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    scores[:, :, 2] = torch.where(torch.arange(4) == 2, scores[:, :, 2], -torch.inf)
    mu = pb.DependencyTree(multiroot=False).local_projection(scores)
    expected = torch.eye(4, dtype=torch.float64)[2].expand(8, 4)
    torch.testing.assert_close(mu.diagonal(dim1=-2, dim2=-1), expected, atol=1e-9, rtol=0)


@pytest.mark.parametrize(
    ("what", "multiroot"), [("no root", True), ("no head", True), ("two roots", False), ("nan", True), ("inf", True)]
)
def test_what_has_no_projection_is_an_error(what: str, multiroot: bool) -> None:
    scores = torch.zeros(2, 3, 3)
    if what == "no root":
        scores[1].fill_diagonal_(-torch.inf)
    elif what == "no head":
        scores[1, :, 2] = -torch.inf
    elif what == "two roots":
        scores[1, :2, 1:] = scores[1, 2, 1] = -torch.inf
        scores[1, 1, 1] = 0.0
    else:
        scores[1, 0, 1] = torch.nan if what == "nan" else torch.inf
    with pytest.raises(ValueError, match="1"):
        pb.DependencyTree(multiroot=multiroot).local_projection(scores)


def test_small_steps_keep_their_digits_in_float32() -> None:
    """The steps are 1e-6, a few units in the last place of marginals."""
    scores = torch.randn(4, 12, 12, generator=torch.Generator().manual_seed(0))
    gamma = torch.randn(4, 12, 12, generator=torch.Generator().manual_seed(1))
    moved = []
    for s, g in ((scores, gamma), (scores.double(), gamma.double())):
        tree, update = pb.DependencyTree(), pb.parts.LocallyProjected(1e-6)
        state = update.init(tree, s, tree.marginals(s))
        moved.append(update.step(tree, state, g).moved.double())
    assert (moved[0] - moved[1]).norm() < 1e-4 * moved[1].norm()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_other_precisions_and_shapes(dtype: torch.dtype) -> None:
    scores = torch.randn(2, 3, 4, 4, generator=torch.Generator().manual_seed(0)).to(dtype)
    found = pb.DependencyTree().local_projection(scores)
    assert found.shape == scores.shape
    exact = pb.DependencyTree().local_projection(scores.double())
    torch.testing.assert_close(found.double(), exact, atol=torch.finfo(dtype).eps, rtol=0)
    assert pb.DependencyTree().local_projection(scores[:0]).shape == (0, 3, 4, 4)


@pytest.mark.parametrize("steps", [1, 2, 5])
def test_small_steps_of_spigot_ce_are_those_of_the_exact_projection(steps: int) -> None:
    generator = torch.Generator().manual_seed(steps)
    weights = torch.randn(7, 7, generator=generator, dtype=torch.float64)
    gradients = []
    for update in (pb.parts.Projected(1e-3), pb.parts.LocallyProjected(1e-3)):
        scores = torch.randn(4, 7, 7, generator=torch.Generator().manual_seed(0), dtype=torch.float64).requires_grad_()
        estimator = pb.PulledBack(pb.losses.CrossEntropy(), pb.parts.FromMarginals(), update, steps)
        loss = estimator.objective(pb.DependencyTree(), scores, lambda z: ((z * weights).sum((-1, -2)) - 1) ** 2)
        loss.sum().backward()
        gradients.append(scores.grad)
    assert gradients[0].abs().max() > 1e-5
    torch.testing.assert_close(*gradients, atol=1e-9, rtol=1e-6)


def test_other_structures_project_exactly() -> None:
    scores = torch.tensor([[0.3, -0.2, 0.1]])
    assert torch.equal(pb.Categorical().local_projection(scores), pb.Categorical().sparsemap(scores))
    state = pb.parts.LocallyProjected().init(pb.Subset(2), scores, pb.Subset(2).marginals(scores))
    found = pb.parts.LocallyProjected().step(pb.Subset(2), state, scores).mu
    torch.testing.assert_close(found, pb.parts.Projected().step(pb.Subset(2), state, scores).mu)
