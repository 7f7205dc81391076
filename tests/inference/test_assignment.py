"""The compiled search for matchings, at sizes that enumeration cannot reach: no exchange of columns may be better."""

import pytest
import torch

import pullback as pb


def best_exchange(scores, columns):
    """By how much rows could gain at most that pass their columns on in a cycle, or over free columns: by max-plus closure.

    Rows are nodes; each free column is one more, which gives itself up for nothing.
    """
    n, m = scores.shape[-2:]
    free = torch.ones(m, dtype=torch.bool).scatter(0, columns, False).nonzero()[:, 0]
    s, held = scores.double(), torch.cat([columns, free])
    own = s[torch.arange(n), columns]
    gain = torch.full((m, m), -torch.inf, dtype=torch.float64)
    gain[:n] = s[:, held] - own[:, None]
    gain[n:, :n] = 0.0
    for k in range(m):
        gain = torch.maximum(gain, gain[:, k : k + 1] + gain[k])
    return gain.diagonal().max().item()


def scores_of(kind, n, m, dtype):
    generator = torch.Generator().manual_seed(n + m)
    s = torch.randn(3, n, m, generator=generator, dtype=torch.float64)
    if kind == "ties":
        s = s.round()
    elif kind == "like rows":  # all rows want the same columns
        s = 0.1 * s + s[:, :1]
    elif kind == "mixed":
        s = s * 10.0 ** torch.randint(-6, 7, s.shape, generator=generator)
    elif kind == "zeros":  # the best of each row and column is exactly 0
        s = -torch.randint(0, 9, s.shape, generator=generator).double()
    return s.to(dtype)


@pytest.mark.parametrize("kind", ["normal", "ties", "like rows", "mixed", "zeros"])
@pytest.mark.parametrize(("n", "m"), [(17, 17), (13, 40), (40, 41)])
def test_no_exchange_is_better(kind, n, m, dtype):
    scores, matching = scores_of(kind, n, m, dtype), pb.Matching()
    columns = matching.columns(matching.argmax(scores))
    assert (columns >= 0).all()
    for s, found in zip(scores, columns, strict=True):
        assert len(found.unique()) == n
        assert best_exchange(s, found) <= (n * 1e-15 * s.abs().max().item() if kind != "ties" else 0.0)


@pytest.mark.parametrize("mask", [-1e9, -1e30, "min"])
@pytest.mark.parametrize(("n", "m"), [(16, 16), (16, 30)])
def test_large_masks_cost_no_digits(mask, n, m, dtype):
    """The same as -inf where a matching can do without them; where some rows cannot, the best for the others."""
    scores, matching = scores_of("normal", n, m, dtype), pb.Matching()
    forbidden = torch.rand(scores.shape, generator=torch.Generator().manual_seed(1)) < 0.8
    forbidden &= ~torch.eye(n, m, dtype=torch.bool)
    value = torch.finfo(dtype).min if mask == "min" else mask
    right = matching.argmax(scores.masked_fill(forbidden, -torch.inf))
    assert torch.equal(matching.argmax(scores.masked_fill(forbidden, value)), right)
    forbidden[:, :2] = True  # two rows with nothing else
    z, right = (matching.argmax(scores.masked_fill(forbidden, x)) for x in (value, -1e4))
    assert ((z * forbidden).sum((1, 2)) == 2).all()
    assert torch.equal(*((x * scores.masked_fill(forbidden, 0.0)).double().sum((1, 2)) for x in (z, right)))


def test_equal_scores_give_the_diagonal(dtype):
    for n, m in ((1, 1), (9, 9), (5, 20)):
        assert torch.equal(pb.Matching().argmax(torch.full((n, m), 3.0, dtype=dtype)), torch.eye(n, m, dtype=dtype))
