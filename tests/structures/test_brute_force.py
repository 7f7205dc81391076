"""Every operation against enumeration, on every structure, backend and dtype: values, gradients, forbidden parts."""

import pytest
import torch
from torch.testing import assert_close

from cases import DIFFERENTIABLE, TOLERANCE, value_and_gradient
from oracles import assert_structures, brute_force, everything, forbid

SIZES = pytest.mark.parametrize("n", range(6))
FORBIDDEN = pytest.mark.parametrize("forbidden", [False, True], ids=["all-parts", "some-forbidden"])
EXPECTATIONS = pytest.mark.parametrize("operation", ["marginals", "log_partition", "entropy"])


@pytest.fixture
def scores(case, dtype, n, forbidden):
    """Three examples, from flat to peaked."""
    n = max(n, case.smallest)
    scale = torch.tensor([0.3, 1.0, 5.0], dtype=dtype, device=case.device).reshape(3, *[1] * case.event_dims)
    scores = scale * case.scores(3, n=n, dtype=dtype, seed=n)
    return forbid(case, scores, seed=n) if forbidden else scores


@SIZES
@FORBIDDEN
def test_argmax_is_a_structure_and_none_is_better(case, scores):
    z = case.structure().argmax(scores)
    assert z.dtype == scores.dtype
    assert_structures(case, z)
    assert not z[scores == -torch.inf].any()
    best = brute_force(case, "best", scores)
    assert_close(case.structure().score(scores, z).double().cpu(), best, atol=1e-6, rtol=1e-6)


@SIZES
@FORBIDDEN
@EXPECTATIONS
def test_expectations(case, dtype, scores, operation):
    expected = brute_force(case, operation, scores).to(case.device, dtype)
    found = getattr(case.structure(), operation)(scores)
    assert_close(found, expected, atol=TOLERANCE[dtype], rtol=TOLERANCE[dtype])
    if operation == "marginals":
        assert not found[scores == -torch.inf].any()


@SIZES
@FORBIDDEN
@EXPECTATIONS
def test_gradients_of_expectations(case, dtype, scores, operation):
    def oracle(_, s):
        return brute_force(case, operation, s).to(case.device)

    _, found = value_and_gradient(DIFFERENTIABLE[operation], case.structure(), scores)
    _, expected = value_and_gradient(oracle, case.structure(), scores.double())
    assert_close(found, expected.to(dtype), atol=10 * TOLERANCE[dtype], rtol=10 * TOLERANCE[dtype])
    assert not found[scores == -torch.inf].any()


@SIZES
@FORBIDDEN
def test_log_probabilities_of_all_structures(case, dtype, scores):
    for s in scores:
        z = everything(case, scores.shape[-1]).to(s.device)
        expected = torch.where(z == 0, 0.0, s.double()).mul(z).flatten(1).sum(1).log_softmax(0)
        found = case.structure().log_prob(s, z.to(dtype))
        assert_close(found.double(), expected, atol=TOLERANCE[dtype], rtol=TOLERANCE[dtype])
        assert torch.equal(found == -torch.inf, expected == -torch.inf)


@SIZES
@FORBIDDEN
def test_score_is_the_inner_product(case, dtype, scores):
    for s in scores:
        z = everything(case, scores.shape[-1]).to(s)
        used = [sum(s[part].item() for part in map(tuple, one.nonzero().tolist())) for one in z]
        expected = torch.tensor(used, dtype=dtype, device=case.device)
        assert_close(case.structure().score(s.expand_as(z), z), expected)
