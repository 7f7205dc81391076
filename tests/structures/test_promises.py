"""The promises about values, for structures with parts of any shape: against enumeration, on the reference and the
compiled backend. Those about what may be passed are in `test_promised_inputs.py`.
"""

from __future__ import annotations

import pytest
import torch

import pullback as pb
from cases import ENTRIES
from each import each
from oracles import exact, mask_of, mean, poisoned
from pullback.inference.front.family import backend


@each("kind", ["normal", "ties", "large", "forbidden"])
def test_argmax_is_a_best_structure(entry, kind):
    scores = entry.scores(scale=1e6 if kind == "large" else 1.0)
    scores = scores.round() if kind == "ties" else scores
    if kind == "forbidden":
        scores = torch.where(torch.rand(scores.shape, generator=torch.Generator().manual_seed(3)) < 0.15, -torch.inf, scores)
    structure = entry.structure(validate=False)
    z = structure.argmax(poisoned(entry, scores))
    for example in range(len(entry.sizes)):
        everything, value, _ = exact(entry, scores, example)
        if not (value > -torch.inf).any():
            assert z[example].isnan().all()
            continue
        index = (everything == z[example]).flatten(1).all(1).nonzero()
        assert len(index) == 1, "not a structure"
        torch.testing.assert_close(value[index[0, 0]], value.max())


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
def test_ties_break_alike_on_every_backend(entry):
    found, scores = [], entry.scores(seed=5).round()
    for name in ("reference", "cpu"):
        with backend(name):
            found.append(entry.structure().argmax(scores))
    if entry.one_rule:
        assert torch.equal(*found)
    assert torch.equal(*(entry.structure().score(scores, z) for z in found))


@each("dtype", [torch.float64, torch.float32])
@each("scale", [1.0, 30.0])
def test_sums_over_structures(gibbs, dtype, scale):
    scores = gibbs.scores(scale=scale).to(dtype)
    structure = gibbs.structure()
    log_z, mu, nats = (f(poisoned(gibbs, scores)) for f in (structure.log_partition, structure.marginals, structure.entropy))
    tolerance = {"rtol": 1e-9, "atol": 1e-9} if dtype == torch.float64 else {"rtol": 2e-5, "atol": 2e-5}
    for example in range(len(gibbs.sizes)):
        z, value, p = exact(gibbs, scores.double(), example)
        log_p = torch.where(p > 0, value.log_softmax(0), 0.0)
        torch.testing.assert_close(log_z[example].double(), value.logsumexp(0), **tolerance)
        torch.testing.assert_close(mu[example].double(), mean(p, z), **tolerance)
        torch.testing.assert_close(nats[example].double(), -(p * log_p).sum(), **tolerance)


def test_gradients(gibbs):
    """Of marginals, entropy and log-partition, against the covariance of enumerated structures; padding gets exactly zero."""
    scores = gibbs.scores()
    direction = gibbs.scores(seed=9)
    leaf = poisoned(gibbs, scores).requires_grad_()
    structure, mask = gibbs.structure(), mask_of(gibbs)
    (of_mu,) = torch.autograd.grad((structure.marginals(leaf) * direction).sum(), leaf)
    (of_nats,) = torch.autograd.grad(structure.entropy(leaf).sum(), leaf)
    (of_log_z,) = torch.autograd.grad(structure.log_partition(leaf).sum(), leaf)
    for found in (of_mu, of_nats, of_log_z):
        assert (found[~mask] == 0).all()
    for example in range(len(gibbs.sizes)):
        z, value, p = exact(gibbs, scores, example)
        along = (z * direction[example]).flatten(1).sum(1)
        torch.testing.assert_close(of_mu[example], mean(p * (along - p @ along), z))
        surprise = -value.log_softmax(0)
        torch.testing.assert_close(of_nats[example], mean(p * (surprise - p @ surprise), z))
        torch.testing.assert_close(of_log_z[example], mean(p, z))


@each("mask", [-1e9, -1e18, -1e30, "finfo.min"])
@each("dtype", [torch.float64, torch.float32])
def test_a_large_finite_mask_is_like_minus_infinity(gibbs, mask, dtype):
    """Where a structure without the masked parts exists: values, marginals, entropies and their gradients."""
    mask = torch.finfo(dtype).min if mask == "finfo.min" else mask
    scores = gibbs.scores(seed=2).to(dtype)
    hidden = torch.rand(scores.shape, generator=torch.Generator().manual_seed(4)) < 0.2
    results = []
    for value in (-torch.inf, mask):
        leaf = torch.where(hidden, value, scores).requires_grad_()
        structure = gibbs.structure(validate=False)
        mu, nats, log_z = structure.marginals(leaf), structure.entropy(leaf), structure.log_partition(leaf)
        slope = torch.autograd.grad(mu.square().sum() + 3 * nats.sum(), leaf)[0]
        results.append([x.detach() for x in (mu, nats, log_z, slope, structure.argmax(leaf))])
    feasible = results[0][2].isfinite()
    assert feasible.any()
    for exactly, masked in zip(*results, strict=True):
        torch.testing.assert_close(masked[feasible], exactly[feasible], rtol=1e-4, atol=1e-5)


def test_entropy_of_large_scores(gibbs):
    """A constant on parts of which every structure has equally many changes nothing, however large."""
    if gibbs.structure().centre_dims is None:
        pytest.skip("no such constant")
    scores = gibbs.scores(seed=1)
    for size in (1e6, 1e8):
        shifted = scores.round(decimals=2) + size
        plain = scores.round(decimals=2)
        exactly = gibbs.structure().entropy((plain + size) - size)
        torch.testing.assert_close(gibbs.structure().entropy(shifted), exactly, rtol=1e-6, atol=1e-6)


def test_samples_are_structures_of_the_right_frequency(gibbs):
    scores = gibbs.scores()[:1].expand(4000, *gibbs.parts)
    structure = gibbs.make(*torch.tensor(gibbs.sizes)[0].unbind(0))
    z = structure.sample(scores, torch.Generator().manual_seed(0))
    everything, _, p = exact(gibbs, gibbs.scores(), 0)
    counts = torch.stack([(z == one).flatten(1).all(1).sum() for one in everything])
    assert counts.sum() == 4000
    assert (counts / 4000 - p).abs().max() < 4 * 0.5 / 4000**0.5


def test_sparsemap_is_the_projection(projected):
    """Its gap, against enumeration: no structure is better along s - mu, and mu is an average of structures."""
    scores = projected.scores()
    solution = projected.structure().sparsemap_solution(torch.where(mask_of(projected), scores, 0.0))
    assert solution.converged.all()
    average = (solution.weights.reshape(*solution.weights.shape, *[1] * len(projected.parts)) * solution.structures).sum(1)
    torch.testing.assert_close(average, solution.mu, rtol=1e-7, atol=1e-7)
    for example in range(len(projected.sizes)):
        z = projected.all_of(example)
        slack = torch.where(mask_of(projected)[example], scores[example], 0.0) - solution.mu[example]
        assert ((z * slack).flatten(1).sum(1).max() - (solution.mu[example] * slack).sum()) < 1e-8


def test_sparsemap_gradient_by_finite_differences(projected):
    leaf = projected.scores(seed=6).requires_grad_()
    structure = projected.structure()
    checks = {"eps": 1e-6, "atol": 1e-5, "rtol": 1e-4, "fast_mode": projected.is_slow}  # along random directions
    assert torch.autograd.gradcheck(structure.sparsemap, leaf, **checks)


def test_kl(gibbs):
    p_scores, q_scores = gibbs.scores(), gibbs.scores(seed=1)
    found = gibbs.structure().kl(p_scores, q_scores)
    for example in range(len(gibbs.sizes)):
        _, a, p = exact(gibbs, p_scores, example)
        _, b, _ = exact(gibbs, q_scores, example)
        torch.testing.assert_close(found[example], (p * (a.log_softmax(0) - b.log_softmax(0))).sum())


def test_log_probabilities_of_all_structures(gibbs):
    scores = gibbs.scores()
    for example, sizes in enumerate(gibbs.sizes):
        z, value, _ = exact(gibbs, scores, example)
        structure = gibbs.make(*torch.tensor(sizes, dtype=torch.long).unbind(0))
        found = structure.log_prob(poisoned(gibbs, scores)[example], z)
        torch.testing.assert_close(found, value.log_softmax(0))


def test_scores_of_a_million(gibbs):
    scores = gibbs.scores() + 1e6 * gibbs.scores(seed=7).sign()
    mu, log_z = gibbs.structure().marginals(scores), gibbs.structure().log_partition(scores)
    for example in range(len(gibbs.sizes)):
        z, value, p = exact(gibbs, scores, example)
        torch.testing.assert_close(mu[example], mean(p, z), rtol=0, atol=1e-6)
        torch.testing.assert_close(log_z[example], value.logsumexp(0))


def test_gradients_of_kl(gibbs):
    leaf, other = gibbs.scores().requires_grad_(), gibbs.scores(seed=1).requires_grad_()
    structure = gibbs.structure()
    ours, theirs = torch.autograd.grad(structure.kl(leaf, other).sum(), (leaf, other))
    torch.testing.assert_close(theirs, structure.marginals(other) - structure.marginals(leaf))
    for example in range(len(gibbs.sizes)):
        z, _, p = exact(gibbs, leaf.detach(), example)
        apart = (z * torch.where(mask_of(gibbs)[example], (leaf - other).detach()[example], 0.0)).flatten(1).sum(1)
        torch.testing.assert_close(ours[example], mean(p * (apart - p @ apart), z))


def test_every_structure_has_an_entry():
    """All that `pullback` exports is tested here, also where a constructor makes an object of a subclass."""
    exported = {x for x in vars(pb).values() if isinstance(x, type) and issubclass(x, pb.Structure)}
    tested = {next(x for x in type(entry.structure()).__mro__ if x in exported) for entry in ENTRIES}
    assert exported - {pb.Structure, pb.StructureWrapper} == tested
