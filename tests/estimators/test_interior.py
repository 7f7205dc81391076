"""Steps that stay inside the marginal polytope: certified only where SparseMAP agrees, and never outside."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

import pullback as pb
from cases import Entry
from oracles import forbid
from pullback.inference.trees import interior

SMALL, LARGE = 1e-5, 0.3


class Projecting(pb.DependencyTree):
    """Trees without the shortcut: every step is projected by SparseMAP."""

    def step_inside(self, scores: Tensor, mu: Tensor, step: Tensor) -> None:
        return None


class Counting(pb.DependencyTree):
    """Trees that remember, for each SparseMAP, how many calls of its oracle each sentence took."""

    def __init__(self, lengths: Tensor | None = None) -> None:
        super().__init__(lengths)
        self.oracle_calls: list[Tensor] = []

    def sparsemap(self, scores: Tensor, **options: object) -> Tensor:
        solution = self.sparsemap_solution(scores, **options)
        self.oracle_calls.append(solution.oracle_calls)
        return solution.mu


def _noise(like: Tensor, seed: int = 1) -> Tensor:
    values = torch.randn(like.shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    return values.to(like.device, like.dtype)


def _projected(structure: pb.Structure, scores: Tensor, point: Tensor) -> Tensor:
    return structure.sparsemap(torch.where(structure.allowed(scores), point, -torch.inf))


def _padded(values: Tensor, lengths: Tensor) -> Tensor:
    words = torch.arange(values.shape[-1]) < lengths[..., None]
    real = (words[..., None, :] & words[..., :, None]).to(values.device)
    return torch.where(real, values, torch.nan)


@pytest.mark.parametrize("size", [SMALL, 1e-3, 1e-2, LARGE])
def test_what_is_certified_is_the_projection(tree: Entry, size: float) -> None:
    n = 4 if tree.is_slow else 14
    lengths = torch.tensor([n, n - 1, 3, 2, 1, 0, n, n])
    structure = tree.whole(lengths)
    scores = _padded(tree.random(len(lengths), n=n), lengths)
    mu = structure.marginals(scores)
    step = _padded(size * _noise(scores), lengths)
    moved, inside = structure.step_inside(scores, mu, step)
    if size == SMALL:
        assert inside.all()
    if size == LARGE:
        assert not inside.all()
    expected = _projected(structure, scores, mu - step)
    torch.testing.assert_close((mu - moved)[inside], expected[inside], atol=1e-10, rtol=0)


@pytest.mark.parametrize("projective", [True, False])
def test_later_rounds_certify_more_and_no_less_rightly(projective: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    scores = 0.5 * torch.randn(12, 14, 14, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    tree = pb.DependencyTree(projective=projective)
    mu, step = tree.marginals(scores), 3e-3 * _noise(scores)
    moved, inside = tree.step_inside(scores, mu, step)
    monkeypatch.setattr(interior, "ROUNDS", 1)
    _, first = tree.step_inside(scores, mu, step)
    assert inside.sum() > first.sum() + 5
    expected = _projected(tree, scores, mu - step)
    torch.testing.assert_close((mu - moved)[inside], expected[inside], atol=1e-10, rtol=0)


def test_an_inaccurate_solution_certifies_nothing(dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    scores = torch.randn(4, 14, 14, dtype=dtype, generator=torch.Generator().manual_seed(0))
    tree = pb.DependencyTree()
    mu, step = tree.marginals(scores), SMALL * _noise(scores)
    assert tree.step_inside(scores, mu, step)[1].all()
    monkeypatch.setitem(interior.MAX_ITERATIONS, dtype, 3)
    assert not tree.step_inside(scores, mu, step)[1].any()


@pytest.mark.parametrize("seed", range(3))
def test_forbidden_parts_do_not_move(tree: Entry, seed: int) -> None:
    scores = forbid(tree, tree.random(6, n=4, seed=seed), seed=seed)
    structure = tree.whole()
    mu, step = structure.marginals(scores), SMALL * _noise(scores, seed)
    moved, inside = structure.step_inside(scores, mu, step)
    assert inside.any()
    assert (moved[scores == -torch.inf] == 0).all()
    expected = _projected(structure, scores, mu - step)
    torch.testing.assert_close((mu - moved)[inside], expected[inside], atol=1e-10, rtol=0)


@pytest.mark.parametrize("by", [-1e-3, 1e-3])
def test_two_words_are_certified_exactly_up_to_the_boundary(by: float) -> None:
    """Of two words one may head the other, or none: mu[0, 1] + mu[1, 0] <= 1 bounds the polytope, no sign does."""
    scores = torch.tensor([[0.0, 3.0], [3.0, 0.0]], dtype=torch.float64)
    heads = (1 + by) / 2
    point = torch.tensor([[1 - heads, heads], [heads, 1 - heads]], dtype=torch.float64)
    tree = pb.DependencyTree()
    mu = tree.marginals(scores)
    moved, inside = tree.step_inside(scores, mu, mu - point)
    torch.testing.assert_close(mu - moved, point)
    assert inside.item() == (by < 0)


def test_a_start_that_is_not_the_marginals_is_projected() -> None:
    """The scores say nothing about it: under their own marginals the step would pass as one that stays inside."""
    tree, scores = pb.DependencyTree(), torch.zeros(2, 2, dtype=torch.float64)
    start = torch.tensor([[0.501, 0.499], [0.499, 0.501]], dtype=torch.float64)
    gamma = torch.tensor([[0.0, -0.004], [-0.004, 0.0]], dtype=torch.float64)
    state = pb.parts.Projected(1.0).init(tree, scores, start, vertex=tree.argmax(scores))
    mu = pb.parts.Projected(1.0).step(tree, state, gamma).mu
    torch.testing.assert_close(mu, torch.full((2, 2), 0.5, dtype=torch.float64))


def test_a_point_just_outside_is_never_certified(tree: Entry) -> None:
    n = 4 if tree.is_slow else 14
    structure, scores = tree.whole(), tree.random(16, n=n, scale=0.5)
    mu = structure.marginals(scores)
    far = mu - _noise(scores)
    border = structure.sparsemap(far)
    along, _ = structure.step_inside(scores, mu, far - border)
    outward = along / along.flatten(1).norm(dim=1)[:, None, None]
    _, inside = structure.step_inside(scores, mu, mu - (border + 1e-3 * outward))
    assert not inside.any()


def test_a_sentence_does_not_depend_on_its_batch(tree: Entry) -> None:
    n = 4 if tree.is_slow else 14
    structure, scores = tree.whole(), tree.random(4, n=n)
    scores = scores * torch.tensor([0.1, 1.0, 4.0, 1e6], device=scores.device, dtype=scores.dtype)[:, None, None]
    mu, step = structure.marginals(scores), SMALL * _noise(scores)
    moved, inside = structure.step_inside(scores, mu, step)
    for b in range(4):
        alone, certain = structure.step_inside(scores[b], mu[b], step[b])
        torch.testing.assert_close(alone, moved[b])
        assert torch.equal(certain, inside[b])
    assert inside[:2].all()
    assert not inside[3]


@pytest.mark.parametrize("bad", [torch.nan, torch.inf, 1e300])
def test_a_broken_step_is_not_certified_and_harms_no_other(bad: float) -> None:
    tree, scores = pb.DependencyTree(), torch.zeros(2, 5, 5, dtype=torch.float64)
    step = SMALL * _noise(scores)
    step[0, 1, 2] = bad
    _, inside = tree.step_inside(scores, tree.marginals(scores), step)
    assert inside.tolist() == [False, True]


@pytest.mark.parametrize("shape", [(0, 3, 3), (2, 0, 0), (1, 1), (2, 3, 1, 1)])
def test_where_there_is_nothing_to_move(shape: tuple[int, ...], dtype: torch.dtype) -> None:
    tree, scores = pb.DependencyTree(), torch.zeros(shape, dtype=dtype)
    moved, inside = tree.step_inside(scores, tree.marginals(scores), torch.ones_like(scores))
    assert moved.shape == shape
    assert inside.shape == shape[:-2]
    assert inside.all()
    assert (moved == 0).all()


@pytest.mark.parametrize("half", [torch.float16, torch.bfloat16])
def test_half_precision_is_float32_rounded(half: torch.dtype) -> None:
    tree = pb.DependencyTree(torch.tensor([7, 5]))
    scores = torch.randn(2, 7, 7, generator=torch.Generator().manual_seed(0)).to(half)
    step = (1e-3 * _noise(scores.float())).to(half)
    moved, inside = tree.step_inside(scores, tree.marginals(scores), step)
    wide, known = tree.step_inside(scores.float(), tree.marginals(scores.float()), step.float())
    assert moved.dtype == half
    assert torch.equal(moved, wide.to(half))
    assert torch.equal(inside, known)
    assert inside.all()


class Decoder(nn.Module):
    """L(mu) = <c, mu> + <d, mu>^2, c small for the first sentences, large for the last."""

    def __init__(self, scores: Tensor, sizes: list[float]) -> None:
        super().__init__()
        scale = torch.tensor(sizes, dtype=scores.dtype)[:, None, None]
        self.c, self.d = scale * _noise(scores, 2), scale.sqrt() * _noise(scores, 3)

    def forward(self, mu: Tensor) -> Tensor:
        return (self.c * mu).flatten(1).sum(1) + (self.d * mu).flatten(1).sum(1).square()


def _gradient(structure: pb.Structure, scores: Tensor, sizes: list[float], steps: int) -> Tensor:
    leaf = scores.clone().requires_grad_()
    pb.SPIGOTCE(1.0, steps).objective(structure, leaf, Decoder(scores.nan_to_num(), sizes)).sum().backward()
    assert leaf.grad is not None
    return leaf.grad


@pytest.mark.parametrize("steps", [1, 2, 5])
@pytest.mark.parametrize("projective", [True, False])
@pytest.mark.parametrize("sizes", [[1e-5, 1e-4, 1e-3, 1e-4], [1e-5, 1e-3, 0.1, 3.0], [1.0, 1.0, 10.0, 10.0]])
def test_spigot_ce_has_the_gradient_of_projections(steps: int, projective: bool, sizes: list[float]) -> None:
    lengths = torch.tensor([6, 4, 6, 5])
    scores = torch.randn(4, 6, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    scores[0, 2, 1] = -torch.inf
    scores = _padded(scores, lengths)
    found = _gradient(pb.DependencyTree(lengths, projective), scores, sizes, steps)
    expected = _gradient(Projecting(lengths, projective), scores, sizes, steps)
    torch.testing.assert_close(found, expected, atol=1e-10, rtol=0)


@pytest.mark.parametrize("steps", [1, 3])
def test_sparsemap_works_only_on_sentences_that_may_be_outside(steps: int) -> None:
    scores = torch.randn(4, 7, 7, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    none, some = Counting(), Counting()
    _gradient(none, scores, [SMALL] * 4, steps)
    assert none.oracle_calls == []
    _gradient(some, scores, [SMALL, SMALL, SMALL, 3.0], steps)
    assert len(some.oracle_calls) == steps
    for calls in some.oracle_calls:
        assert (calls[:3] <= 2).all()
        assert calls[3] > 1


def test_small_steps_keep_their_digits_in_float32() -> None:
    scores = torch.randn(4, 7, 7, generator=torch.Generator().manual_seed(0))
    found = _gradient(pb.DependencyTree(), scores, [1e-7] * 4, steps=1)
    exact = _gradient(pb.DependencyTree(), scores.double(), [1e-7] * 4, steps=1)
    torch.testing.assert_close(found.double(), exact, rtol=1e-4, atol=1e-12)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("projective", [True, False])
def test_on_a_gpu_a_step_waits_for_nothing_and_is_captured(projective: bool) -> None:
    generator = torch.Generator().manual_seed(0)
    scores = torch.randn(4, 7, 7, generator=generator)
    expected = pb.DependencyTree(projective=projective)
    step = torch.tensor([SMALL, SMALL, 1.0, 1.0])[:, None, None] * _noise(scores)
    mu = expected.marginals(scores)
    update, tree = pb.parts.Projected(), pb.DependencyTree(projective=projective)
    state = update.init(expected, scores, mu, vertex=expected.argmax(scores), from_marginals=True)
    wanted = update.step(expected, state, step).moved
    scores, mu, step = scores.cuda(), mu.cuda(), step.cuda()

    def move() -> Tensor:
        state = update.init(tree, scores, mu, vertex=tree.argmax(scores), from_marginals=True)
        return update.step(tree, state, step).moved

    move()
    torch.cuda.set_sync_debug_mode("error")
    try:
        moved = move()
    finally:
        torch.cuda.set_sync_debug_mode("default")
    torch.testing.assert_close(moved.cpu(), wanted, atol=1e-6, rtol=1e-4)
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        move()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        captured = move()
    graph.replay()
    torch.testing.assert_close(captured, moved)
