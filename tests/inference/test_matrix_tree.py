"""Sums over all trees where peers go wrong: peaked scores, strong cycles, forbidden arcs; and the exact samplers."""

import decimal

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from cases import TREE_CASES
from each import each
from oracles import brute_force, chi_square_tail, everything, index_of, totals
from pullback.inference.front.family import backend
from pullback.inference.matrix_tree import cpu, kernels, wilson


@pytest.fixture(params=[case for case in TREE_CASES if not case.projective], ids=str)
def case(request):
    """All trees, single- and multi-root, on each backend."""
    with backend(request.param.backend):
        yield request.param


MULTIROOT = pytest.mark.parametrize("multiroot", [True, False], ids=["multiroot", "singleroot"])


def exact(scores, multiroot):
    """Log Z and the marginals by the textbook: determinant and inverse of the Laplacian, with 200 digits."""
    with decimal.localcontext(prec=200, Emax=10**9, Emin=-(10**9)):
        n = len(scores)
        w = [[decimal.Decimal(s).exp() for s in row] for row in scores.tolist()]
        into = [sum(w[h][m] for h in range(n) if multiroot or h != m) for m in range(n)]
        laplacian = [[into[m] if h == m else -w[h][m] for m in range(n)] for h in range(n)]
        if not multiroot:
            laplacian[0] = [w[m][m] for m in range(n)]
        determinant, inverse = _invert(laplacian)
        mu = torch.zeros(n, n, dtype=torch.float64)
        for h in range(n):
            for m in range(n):
                stays, leaves = inverse[m][m], inverse[m][h]
                if not multiroot:  # the first row holds the root's arcs instead of the words'
                    stays, leaves = (stays if m else 0), (leaves if h else 0)
                by_root = inverse[m][m] if multiroot else inverse[m][0]
                mu[h, m] = float(w[h][m] * (by_root if h == m else stays - leaves))
        return float(determinant.ln()), mu


def _invert(matrix):
    n = len(matrix)
    rows = [[*row, *[decimal.Decimal(int(i == j)) for j in range(n)]] for i, row in enumerate(matrix)]
    determinant = decimal.Decimal(1)
    for i in range(n):
        pivot = max(range(i, n), key=lambda r: abs(rows[r][i]))
        if pivot != i:
            rows[i], rows[pivot], determinant = rows[pivot], rows[i], -determinant
        determinant *= rows[i][i]
        rows[i] = [x / rows[i][i] for x in rows[i]]
        for r in range(n):
            if r != i:
                rows[r] = [x - rows[r][i] * y for x, y in zip(rows[r], rows[i], strict=True)]
    return determinant, [row[n:] for row in rows]


def strong_cycles(scores, strength=50.0):
    """Every word and its neighbour prefer each other."""
    scores = scores.clone()
    for i in range(0, scores.shape[-1] - 1, 2):
        scores[..., i, i + 1] += strength
        scores[..., i + 1, i] += strength
    return scores


@pytest.mark.parametrize("kind", ["1", "10", "20", "100", "cycles of 50", "half forbidden"])
def test_log_partition_and_marginals_against_200_digits(case, kind):
    n = 9
    scores = case.random(n=n, scale=float(kind) if kind.isdigit() else 3.0, seed=1).cpu()
    if kind == "cycles of 50":
        scores = strong_cycles(scores)
    if kind == "half forbidden":
        out = torch.rand(n, n, generator=torch.Generator().manual_seed(2)) < 0.5
        scores[out & ~torch.eye(n, dtype=torch.bool).roll(1, 1)] = -torch.inf
        scores[0, 0] = 1.0
    log_z, mu = exact(scores, case.multiroot)
    found = case.whole().marginals(scores.to(case.device)).cpu()
    assert_close(found, mu, atol=1e-13, rtol=0)
    assert_close(case.whole().log_partition(scores.to(case.device)).item(), log_z, rtol=1e-13, atol=1e-12)


@each("strength", [-50.0, 50.0, 1e6])
@each("operation", ["marginals", "log_partition", "entropy"])
def test_strong_cycles(case, strength, operation):
    scores = strong_cycles(case.random(3, n=5, seed=2), strength)
    found = getattr(case.whole(), operation)(scores).cpu()
    atol = 1e-3 if case.backend != "cpu" and strength == 1e6 else 1e-8
    assert_close(found, brute_force(case, operation, scores), atol=atol, rtol=1e-12)


def test_the_order_of_the_words_does_not_matter(case):
    scores = case.random(n=10, scale=10.0, seed=3)
    order = torch.randperm(10, generator=torch.Generator().manual_seed(1)).to(case.device)
    found = case.whole().marginals(scores[order][:, order])
    assert_close(found, case.whole().marginals(scores)[order][:, order], atol=1e-12, rtol=0)


def test_a_constant_added_to_a_column_of_the_gradient_changes_nothing(case):
    """Each word has one head, so the columns of z sum to one; a large constant must not drown the rest."""
    scores = case.random(2, n=6, seed=4).requires_grad_()
    mu = case.whole().marginals(scores)
    grad = case.random(2, n=6, seed=5)
    (expected,) = torch.autograd.grad(mu, scores, grad, retain_graph=True)
    (found,) = torch.autograd.grad(mu, scores, grad + 1e6 * case.random(2, n=6, seed=6)[:, :1])
    assert_close(found, expected, atol=1e-6, rtol=0)


def test_a_single_root_above_a_word_that_no_other_leads_to(case):
    """The last word can only be the root's child, the first only that one's: no order of elimination rules it out."""
    scores = case.random(2, n=4, seed=7)
    scores[:, :3, 3] = -torch.inf
    scores[:, :3, 0] = -torch.inf
    for operation in ("marginals", "log_partition", "entropy"):
        found = getattr(case.whole(), operation)(scores).cpu()
        assert_close(found, brute_force(case, operation, scores))


@MULTIROOT
@pytest.mark.parametrize("exponents", [(0,), (0, 0, 0)], ids=["one-part", "three-parts"])
@pytest.mark.parametrize("forbidden", [False, True], ids=["all-arcs", "some-forbidden"])
def test_numbers_with_and_without_exponents_agree(multiroot, exponents, forbidden):
    n, lengths = 30, torch.tensor([30, 17, 1])
    generator = torch.Generator().manual_seed(3)
    scores, v = (4 * torch.randn(3, n, n, generator=generator, dtype=torch.float64) for _ in range(2))
    if forbidden:
        scores[torch.rand(3, n, n, generator=generator) < 0.3] = -torch.inf
        scores[:, 0] = 0.0
    none, arrays = np.empty((0, 0, 0)), (scores.numpy(), lengths.numpy(), np.arange(3))

    def solve(kind, direction):
        arcs, value, status = np.zeros((3, n, n)), np.zeros(3), np.full(3, -1)
        kernels.solve(0, 1, *arrays, kind, exponents, direction, multiroot, arcs, value, status)
        assert not status.any()
        return torch.from_numpy(arcs), torch.from_numpy(value)

    flags = (multiroot, True)
    mu, log_z = solve((0,), none)
    slope, entropy = solve((0, 0), none)
    product, _ = solve((0, 0), v.numpy())
    assert_close(cpu.entropy_gradient(scores, lengths, *flags), -slope, atol=1e-10, rtol=0)
    assert_close(cpu.marginals(scores, lengths, *flags), mu, atol=1e-12, rtol=0)
    assert_close(cpu.marginals_vjp(scores, lengths, v, *flags), product, atol=1e-11, rtol=0)
    assert_close(cpu.log_partition(scores, lengths, *flags), log_z)
    assert_close(cpu.entropy(scores, lengths, *flags), entropy, atol=1e-10, rtol=0)


@pytest.mark.parametrize("sampler", ["walks", "marginals", "either"])
def test_every_sampler_has_the_right_frequencies(case, sampler, monkeypatch):
    """With strong cycles the walks give up, often depending on a single root's child: that must not show."""
    if case.backend != "cpu":
        pytest.skip("other backends have one sampler")
    n, count = 4, 20000
    scores = case.random(n=n, seed=8)
    if sampler == "marginals":
        monkeypatch.setattr(wilson, "STEPS_PER_WORD", 0)
    if sampler == "either":
        scores = strong_cycles(scores, 4.0)
        monkeypatch.setattr(wilson, "STEPS_PER_WORD", 4)
    z = case.whole().sample(scores.expand(count, n, n), torch.Generator().manual_seed(1))
    counts = torch.bincount(index_of(case, z), minlength=len(everything(case, n)))
    assert chi_square_tail(counts, totals(everything(case, n), scores, case.own).softmax(0)) > 1e-4


def test_samples_of_strong_cycles_take_no_time(case):
    if case.is_slow:
        pytest.skip("it has no walks")
    scores = strong_cycles(case.random(4, n=40, seed=9))
    z = case.whole().sample(scores)
    assert (z.sum(1) == 1).all()
    assert (z.flatten(1) @ scores.flatten(1).T).diagonal().min() > 40 * 20  # one arc of every cycle is in the tree
