"""Half precision, large scores and long sentences."""

import pytest
import torch
from torch.testing import assert_close

from cases import DIFFERENTIABLE, value_and_gradient
from each import each
from oracles import assert_structures, brute_force

HALF = each("half", [torch.float16, torch.bfloat16])


@HALF
def test_half_precision_is_computed_in_float32_and_cast_back(case, half):
    scores = case.random(3, n=4, dtype=half, seed=1)
    dtype = case.result(half)
    for operation in case.operations.values():
        found = operation(case.whole(), scores)
        assert found.dtype == dtype
        assert torch.equal(found, operation(case.whole(), scores.float()).to(dtype))


@HALF
def test_gradients_of_half_precision_are_in_half_precision(case, half):
    scores = case.random(3, n=4, dtype=half, seed=1)
    for operation in case.differentiable.values():
        _, found = value_and_gradient(operation, case.whole(), scores)
        _, expected = value_and_gradient(operation, case.whole(), scores.float())
        assert found.dtype == half
        assert_close(found.float(), expected, atol=2e-2, rtol=2e-2)


def test_half_precision_under_autocast_stays_float32(case):
    for operation in case.operations.values():
        scores = case.random(3, n=4, dtype=torch.bfloat16, seed=1).requires_grad_()
        with torch.autocast(case.device, dtype=torch.bfloat16):
            found = operation(case.whole(), scores)
        assert found.dtype == torch.float32
        assert torch.equal(found, operation(case.whole(), scores.float()))
        if found.requires_grad:
            found.sum().backward()
            assert scores.grad.dtype == torch.bfloat16


def test_float64_under_autocast_stays_float64(case):
    scores = case.random(3, n=4, seed=1)
    for operation in case.operations.values():
        with torch.autocast(case.device, dtype=torch.bfloat16):
            found = operation(case.whole(), scores)
        assert torch.equal(found, operation(case.whole(), scores))


def extreme(case, dtype, kind):
    """Scores of a million, of one sign or mixed, each with noise beside it."""
    noise = case.random(8, n=4, dtype=dtype, seed=2)
    million = 1e6 * case.random(8, n=4, dtype=dtype, seed=3).sign()
    return {"all +1e6": noise + 1e6, "all -1e6": noise - 1e6, "mixed": noise + million}[kind]


EXTREMES = each("kind", ["all +1e6", "all -1e6", "mixed"])


@EXTREMES
def test_sums_of_scores_of_a_million(gibbs_case, dtype, kind):
    scores, structure = extreme(gibbs_case, dtype, kind), gibbs_case.whole()
    for operation in ("marginals", "entropy"):
        expected = brute_force(gibbs_case, operation, scores).to(gibbs_case.device)
        assert_close(getattr(structure, operation)(scores).double(), expected, atol=1e-3, rtol=0)
    assert (structure.entropy(scores) >= 0).all()
    log_z = brute_force(gibbs_case, "log_partition", scores)
    found = structure.log_partition(scores)
    assert_close(found, log_z.to(gibbs_case.device, dtype), rtol=4 * torch.finfo(dtype).eps, atol=1e-3)
    z = structure.argmax(scores)
    expected = (scores.double() * z).flatten(1).sum(1).cpu() + gibbs_case.own(z) - log_z
    assert_close(structure.log_prob(scores, z).double().cpu(), expected, atol=1e-3, rtol=0)


@EXTREMES
def test_structures_of_scores_of_a_million(case, dtype, kind):
    scores, structure = extreme(case, dtype, kind), case.whole()
    z = structure.argmax(scores)
    assert_structures(case, z)
    if case.projects:
        mu = structure.sparsemap(scores)
        assert_close(structure.score(scores, mu), structure.score(scores, z), rtol=1e-6, atol=3.0)
    if case.gibbs:
        assert_structures(case, structure.sample(scores))


@EXTREMES
def test_gradients_of_scores_of_a_million(gibbs_case, dtype, kind):
    scores = extreme(gibbs_case, dtype, kind)
    for operation in ("marginals", "log_partition", "entropy"):

        def oracle(_, s, operation=operation):
            return brute_force(gibbs_case, operation, s).to(gibbs_case.device)

        _, found = value_and_gradient(DIFFERENTIABLE[operation], gibbs_case.whole(), scores)
        _, expected = value_and_gradient(oracle, gibbs_case.whole(), scores.double())
        between = operation == "entropy" and kind == "mixed" and dtype == torch.float32
        tolerance = 5e-2 if between else 1e-3  # float32 rounds differences of two million to an eighth
        assert_close(found.double(), expected, atol=tolerance, rtol=0)


@pytest.mark.parametrize("scale", [0.0, 1.0, 1e6])
def test_long_sentences(tree, scale):
    """200 words in float32, 80 with scores of a million: columns of the marginals sum to one, and nothing overflows."""
    n = 12 if tree.is_slow else 80 if scale > 1 else 200
    lengths = [n, n // 4]
    scores = tree.random(2, n=n, dtype=torch.float32, scale=scale, seed=4)
    structure = tree.whole(torch.tensor(lengths))
    mu = structure.marginals(scores)
    for one, length in zip(mu, lengths, strict=True):
        assert_close(one[:length, :length].sum(0), torch.ones(length, device=tree.device), atol=1e-3, rtol=0)
    assert (mu >= 0).all()
    assert (mu <= 1 + 1e-5).all()
    entropy = structure.entropy(scores)
    assert (entropy >= 0).all()
    assert entropy.isfinite().all()
    assert_structures(tree, structure.argmax(scores), lengths)
    assert_structures(tree, structure.sample(scores), lengths)


@pytest.mark.parametrize(("n", "scale"), [(200, 1.0), (60, 100.0)])
@pytest.mark.parametrize("operation", ["marginals", "log_partition", "entropy"])
def test_gradients_of_long_sentences(tree, n, scale, operation):
    """A constant added to all heads of a word shifts every tree's score alike: only log Z sees it, one to one."""
    scores = tree.random(1, n=10 if tree.is_slow else n, dtype=torch.float32, scale=scale, seed=5)
    found, gradient = value_and_gradient(DIFFERENTIABLE[operation], tree.whole(), scores)
    assert found.isfinite().all()
    shift = torch.full_like(gradient.sum(1), 0.5 if operation == "log_partition" else 0.0)  # 0.5: the weight of log Z
    assert_close(gradient.sum(1), shift, atol=1e-3, rtol=0)


@each("scale", [10.0, 100.0])
def test_peaked_scores_are_not_nan(case, dtype, scale):
    scores = case.random(6, n=5, dtype=dtype, scale=scale, seed=6)
    for name, operation in case.operations.items():
        assert operation(case.whole(), scores).isfinite().all(), name


@each("scale", [10.0, 20.0, 100.0])
def test_marginals_of_peaked_scores_are_exact(gibbs_case, dtype, scale):
    """Where an LU of the Laplacian is off by 3e-3 at scores of 10 and NaN at 100."""
    scores = gibbs_case.random(6, n=5, dtype=dtype, scale=scale, seed=6)
    expected = brute_force(gibbs_case, "marginals", scores).to(gibbs_case.device, dtype)
    tolerance = {torch.float32: 2e-5, torch.float64: 1e-11}[dtype]
    assert_close(gibbs_case.whole().marginals(scores), expected, atol=tolerance, rtol=0)
