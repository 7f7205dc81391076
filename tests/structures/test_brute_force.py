"""Every operation against enumeration, on every structure, backend and dtype: values, gradients, forbidden parts."""

import torch
from torch.testing import assert_close

from cases import DIFFERENTIABLE, TOLERANCE, value_and_gradient
from each import each
from oracles import assert_structures, brute_force, everything, forbid, totals

SIZES = each("size", [(0, False), (1, False), (3, True), (4, False), (5, True)])  # n, and whether parts are forbidden
EXPECTATIONS = ["marginals", "log_partition", "entropy"]


def scores_of(case, dtype, size):
    """Three examples, from flat to peaked."""
    n, forbidden = size
    n = max(n, case.smallest)
    scale = torch.tensor([0.3, 1.0, 5.0], dtype=dtype, device=case.device).reshape(3, *[1] * case.event_dims)
    scores = scale * case.random(3, n=n, dtype=dtype, seed=n)
    return forbid(case, scores, seed=n) if forbidden else scores


@SIZES
def test_argmax_is_a_structure_and_none_is_better(case, dtype, size):
    scores = scores_of(case, dtype, size)
    z = case.whole().argmax(scores)
    assert z.dtype == scores.dtype
    assert_structures(case, z)
    assert not z[scores == -torch.inf].any()
    best = brute_force(case, "best", scores)
    assert_close(case.whole().score(scores, z).double().cpu(), best, atol=1e-6, rtol=1e-6)


@SIZES
def test_expectations_and_their_gradients(gibbs_case, dtype, size):
    scores = scores_of(gibbs_case, dtype, size)
    for operation in EXPECTATIONS:

        def oracle(_, s, operation=operation):
            return brute_force(gibbs_case, operation, s).to(gibbs_case.device)

        value, slope = value_and_gradient(DIFFERENTIABLE[operation], gibbs_case.whole(), scores)
        right, right_slope = value_and_gradient(oracle, gibbs_case.whole(), scores.double())
        assert_close(value, right.to(dtype), atol=TOLERANCE[dtype], rtol=TOLERANCE[dtype])
        assert_close(slope, right_slope.to(dtype), atol=10 * TOLERANCE[dtype], rtol=10 * TOLERANCE[dtype])
        assert not slope[scores == -torch.inf].any()
        if operation == "marginals":
            assert not value[scores == -torch.inf].any()


@SIZES
def test_log_probabilities_of_all_structures(gibbs_case, dtype, size):
    for s in scores_of(gibbs_case, dtype, size):
        z = everything(gibbs_case, s.shape[0]).to(s.device)
        expected = totals(z, s, gibbs_case.own).log_softmax(0)
        found = gibbs_case.whole().log_prob(s, z.to(dtype))
        assert_close(found.double(), expected, atol=TOLERANCE[dtype], rtol=TOLERANCE[dtype])
        assert torch.equal(found == -torch.inf, expected == -torch.inf)


@SIZES
def test_score_is_the_inner_product(case, dtype, size):
    for s in scores_of(case, dtype, size):
        z = everything(case, s.shape[0])[:60].to(s)
        used = [sum(s[part].item() for part in map(tuple, one.nonzero().tolist())) for one in z]
        expected = (torch.tensor(used, dtype=torch.float64) + case.own(z)).to(case.device, dtype)
        assert_close(case.whole().score(s.expand_as(z), z), expected)
