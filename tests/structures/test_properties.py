"""Properties of inference over shapes, lengths and values that hypothesis chooses."""

import itertools

import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.testing import assert_close

from cases import DIFFERENTIABLE, PER_PART, value_and_gradient
from oracles import assert_structures, brute_force, everything

VALUES = [
    st.floats(-10, 10, width=32),
    st.sampled_from([-1.0, 0.0, 1.0]),  # ties
    st.one_of(st.floats(-1e4, 1e4, width=32), st.sampled_from([0.0, 1e-30, -1e-30, 300.0, -300.0])),
]


@st.composite
def batches(draw, case):
    """Scores `[..., *parts]` of float64 with some parts forbidden and one structure left, and lengths `[...]`."""
    batch = tuple(draw(st.lists(st.integers(0, 3), max_size=2)))
    n = draw(st.integers(case.smallest, 4 if case.kind or case.event_dims == 1 else 3))
    count = torch.Size(batch).numel()
    lengths = draw(st.lists(st.integers(0, n) if case.kind else st.just(n), min_size=count, max_size=count))
    values = VALUES[draw(st.integers(0, len(VALUES) - 1))]
    sentences = [_sentence(draw, case, n, length, values) for length in lengths]
    scores = torch.stack(sentences) if sentences else torch.zeros(0, *case.shape(n), dtype=torch.float64)
    return scores.reshape(*batch, *case.shape(n)).to(case.device), torch.tensor(lengths).long().reshape(batch)


def _sentence(draw, case, n, length, values):
    parts = list(itertools.product(*map(range, case.shape(length))))
    known = everything(case, length)
    kept = known[draw(st.integers(0, len(known) - 1))]
    scores = torch.full(case.shape(n), torch.nan, dtype=torch.float64)
    for part, value in zip(parts, draw(st.lists(values, min_size=len(parts), max_size=len(parts))), strict=True):
        scores[part] = value
    for part in draw(st.lists(st.sampled_from(parts), unique=True)) if parts else []:
        if not kept[part]:
            scores[part] = -torch.inf
    return scores


def made(case, lengths):
    return case.whole(lengths) if case.kind else case.whole()


def flat(case, scores, lengths):
    scores = scores.reshape(lengths.numel(), *case.shape(scores.shape[-case.event_dims]))
    return scores, lengths.flatten().tolist() if case.kind else None


@given(data=st.data())
def test_argmax_is_the_best_structure(case, data):
    scores, lengths = data.draw(batches(case))
    structure = made(case, lengths)
    z = structure.argmax(scores)
    assert z.shape == scores.shape
    assert_structures(case, *flat(case, z, lengths))
    assert not z[scores == -torch.inf].any()
    if lengths.numel():
        best = brute_force(case, "best", *flat(case, scores, lengths)).reshape(lengths.shape)
        assert_close(structure.score(scores, z).cpu(), best, atol=1e-9, rtol=1e-9)


@given(data=st.data())
def test_expectations_are_those_of_enumeration(gibbs_case, data):
    scores, lengths = data.draw(batches(gibbs_case))
    structure = made(gibbs_case, lengths)
    for operation in ("marginals", "log_partition", "entropy"):
        found, gradient = value_and_gradient(DIFFERENTIABLE[operation], structure, scores)
        assert gradient.isfinite().all()
        assert not gradient[~structure.allowed(scores)].any()
        if lengths.numel():
            expected = brute_force(gibbs_case, operation, *flat(gibbs_case, scores, lengths)).reshape(found.shape)
            assert_close(found.cpu(), expected, atol=1e-8, rtol=1e-8)


@given(data=st.data())
def test_sparsemap_is_in_the_hull_and_no_further_than_the_argmax(projected_case, data):
    scores, lengths = data.draw(batches(projected_case))
    structure = made(projected_case, lengths)
    solution = structure.sparsemap_solution(scores)
    assert solution.mu.shape == scores.shape
    assert solution.converged.all()
    allowed = structure.allowed(scores)
    assert not solution.mu[~allowed].any()
    assert (solution.mu >= 0).all()
    safe, z = torch.where(allowed, scores, 0), structure.argmax(scores)
    dims = tuple(range(-projected_case.event_dims, 0))
    slack = (safe - solution.mu) * (z - solution.mu)  # a structure in the direction of the scores improves nothing
    assert (slack.sum(dims) <= 1e-7 * safe.abs().sum(dims).clamp_min(1)).all()


@given(data=st.data())
def test_every_operation_accepts_what_is_feasible(case, data):
    scores, lengths = data.draw(batches(case))
    for name, operation in case.operations.items():
        found = operation(made(case, lengths), scores)
        assert found.isfinite().all(), name
        assert found.shape == (scores.shape if name in PER_PART else lengths.shape), name
