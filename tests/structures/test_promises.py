"""The promises of structures with parts of any shape, against enumeration, on the reference and the compiled backend."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from torch import Tensor

import pullback as pb
from cases import ENTRIES, Entry, backends
from pullback.inference.family import backend

EXPECTATIONS = ["marginals", "log_partition", "entropy"]
GIBBS = [entry for entry in ENTRIES if entry.gibbs]


@pytest.fixture(params=[b for b in backends if b != "cuda"])
def name_of_backend(request: pytest.FixtureRequest) -> Iterator[str]:
    with backend(request.param):
        yield request.param


@pytest.fixture(params=ENTRIES, ids=lambda entry: entry.name)
def entry(request: pytest.FixtureRequest, name_of_backend: str) -> Entry:
    return request.param


@pytest.fixture(params=GIBBS, ids=lambda entry: entry.name)
def gibbs(request: pytest.FixtureRequest, name_of_backend: str) -> Entry:
    return request.param


def mask_of(entry: Entry) -> Tensor:
    return entry.structure().allowed(torch.zeros(len(entry.sizes), *entry.parts))


def poisoned(entry: Entry, scores: Tensor) -> Tensor:
    return torch.where(mask_of(entry), scores, torch.nan)


def exact(entry: Entry, scores: Tensor, example: int) -> tuple[Tensor, Tensor, Tensor]:
    """All structures of an example, their scores and probabilities."""
    z = entry.all_of(example)
    s = torch.where(mask_of(entry)[example], scores[example], 0.0)
    value = (torch.where(z > 0, s, 0.0)).flatten(1).sum(1)
    return z, value, value.softmax(0)


def mean(p: Tensor, z: Tensor) -> Tensor:
    return (p.reshape(-1, *[1] * (z.dim() - 1)) * z).sum(0)


@pytest.mark.parametrize("kind", ["normal", "ties", "large", "forbidden"])
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


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
@pytest.mark.parametrize("scale", [1.0, 30.0])
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


@pytest.mark.parametrize("mask", [-1e9, -1e18, -1e30, torch.finfo(torch.float32).min])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
def test_a_large_finite_mask_is_like_minus_infinity(gibbs, mask, dtype):
    """Where a structure without the masked parts exists: values, marginals, entropies and their gradients."""
    scores = gibbs.scores(seed=2).to(dtype)
    hidden = torch.rand(scores.shape, generator=torch.Generator().manual_seed(4)) < 0.2
    results = []
    for value in (-torch.inf, mask):
        leaf = torch.where(hidden, value, scores).requires_grad_()
        structure = gibbs.structure(validate=False)
        mu, nats, log_z = structure.marginals(leaf), structure.entropy(leaf), structure.log_partition(leaf)
        slope = torch.autograd.grad(mu.square().sum() + nats.sum(), leaf)[0]
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


def test_sparsemap_is_the_projection(entry):
    """Its gap, against enumeration: no structure is better along s - mu, and mu is an average of structures."""
    scores = entry.scores()
    solution = entry.structure().sparsemap_solution(torch.where(mask_of(entry), scores, 0.0))
    assert solution.converged.all()
    average = (solution.weights.reshape(*solution.weights.shape, *[1] * len(entry.parts)) * solution.structures).sum(1)
    torch.testing.assert_close(average, solution.mu, rtol=1e-7, atol=1e-7)
    for example in range(len(entry.sizes)):
        z = entry.all_of(example)
        slack = torch.where(mask_of(entry)[example], scores[example], 0.0) - solution.mu[example]
        assert ((z * slack).flatten(1).sum(1).max() - (solution.mu[example] * slack).sum()) < 1e-8


def test_sparsemap_gradient_by_finite_differences(entry):
    leaf = entry.scores(seed=6).requires_grad_()
    structure = entry.structure()
    assert torch.autograd.gradcheck(structure.sparsemap, leaf, eps=1e-6, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("operation", ["argmax", "marginals", "log_partition", "entropy", "sparsemap", "sample"])
def test_layouts(gibbs, operation):
    """Leading dimensions, sizes that broadcast, strides, half precision, and an empty batch."""
    structure = gibbs.structure(slice(0, 2))
    run = getattr(structure, operation)
    if operation != "sample":
        scores = gibbs.scores()[:2]
        alone = run(scores)
        stacked = torch.stack([scores, scores + 1])
        torch.testing.assert_close(run(stacked)[0], alone)
        strided = torch.stack([scores, scores], -1)[..., 0]
        assert not strided.is_contiguous()
        torch.testing.assert_close(run(strided), alone)
        assert run(scores.bfloat16()).dtype == torch.bfloat16
        torch.testing.assert_close(run(scores.half()).float(), run(scores.half().float()), rtol=1e-3, atol=1e-3)
    empty = getattr(gibbs.structure(slice(0, 0)), operation)(gibbs.scores()[:0])
    assert len(empty) == 0


@pytest.mark.parametrize("operation", ["marginals", "log_partition", "entropy"])
def test_transforms(gibbs, operation):
    """Forward mode agrees with backward mode, vmap with a loop, and second derivatives of marginals raise."""
    structure = gibbs.structure()
    run = getattr(structure, operation)
    scores, direction = gibbs.scores(), gibbs.scores(seed=8)
    _, along = torch.func.jvp(run, (scores,), (direction,))
    leaf = scores.requires_grad_()
    result = run(leaf)
    weight = torch.linspace(0.5, 1.5, result.numel(), dtype=result.dtype).reshape(result.shape)
    (back,) = torch.autograd.grad((result * weight).sum(), leaf)
    torch.testing.assert_close((along * weight).sum(), (back * direction).sum())
    mapped = torch.vmap(run)(torch.stack([scores.detach(), direction]))
    torch.testing.assert_close(mapped[1], run(direction))
    if operation == "marginals" and not gibbs.twice:
        (slope,) = torch.autograd.grad(structure.marginals(leaf).square().sum(), leaf, create_graph=True)
        with pytest.raises(NotImplementedError, match="second derivative"):
            slope.sum().backward()


def test_kl(gibbs):
    p_scores, q_scores = gibbs.scores(), gibbs.scores(seed=1)
    found = gibbs.structure().kl(p_scores, q_scores)
    for example in range(len(gibbs.sizes)):
        _, a, p = exact(gibbs, p_scores, example)
        _, b, _ = exact(gibbs, q_scores, example)
        torch.testing.assert_close(found[example], (p * (a.log_softmax(0) - b.log_softmax(0))).sum())


@pytest.mark.parametrize("value", [torch.nan, torch.inf, -torch.inf], ids=["NaN", "+inf", "infeasible"])
def test_bad_examples_are_named_or_nan(entry, value):
    scores = torch.where(mask_of(entry), entry.scores(), 0.0)
    bad = scores.clone()
    bad[0] = torch.where(mask_of(entry)[0], value, 0.0)
    for operation in ["argmax", *(EXPECTATIONS if entry.gibbs else []), *(["sample"] if entry.gibbs else [])]:
        with pytest.raises(ValueError, match=r"0 of the batch|scores\[0\]"):
            _seeded(entry.structure(validate=True), operation, bad)
        found = _seeded(entry.structure(validate=False), operation, bad)
        assert found[0].isnan().all()
        torch.testing.assert_close(found[1:], _seeded(entry.structure(), operation, scores)[1:])


def test_one_infinite_score_ends_no_sample_in_a_loop(gibbs):
    scores = torch.where(mask_of(gibbs), gibbs.scores(), 0.0)
    scores[0].view(-1)[mask_of(gibbs)[0].view(-1).nonzero()[0]] = torch.inf
    with pytest.raises(ValueError, match=r"contains \+inf"):
        _seeded(gibbs.structure(validate=True), "sample", scores)


def _seeded(structure, operation, scores):
    torch.manual_seed(0)
    return getattr(structure, operation)(scores)


def test_scores_have_a_shape_and_a_dtype(entry):
    with pytest.raises(ValueError, match=r"scores has shape \[.*\]; an? \w+ needs \[\.\.\., "):
        entry.structure().argmax(torch.zeros(entry.parts[1:]))
    with pytest.raises(TypeError, match=r"scores have dtype torch.int64; .*scores\.float\(\)"):
        entry.structure().argmax(torch.zeros(len(entry.sizes), *entry.parts, dtype=torch.long))


def test_log_probabilities_of_all_structures(gibbs):
    scores = gibbs.scores()
    for example, sizes in enumerate(gibbs.sizes):
        z, value, _ = exact(gibbs, scores, example)
        structure = gibbs.make(*torch.tensor(sizes, dtype=torch.long).unbind(0))
        found = structure.log_prob(poisoned(gibbs, scores)[example], z)
        torch.testing.assert_close(found, value.log_softmax(0))


def test_sizes_broadcast_against_the_batch(entry):
    """One size for all examples, and sizes `[B]` for scores `[samples, B, *parts]`."""
    if not entry.sizes[0]:
        pytest.skip("no sizes")
    scores, together = entry.scores(), torch.tensor(entry.sizes)
    one = entry.make(*together[0].unbind(0)).argmax(scores)
    assert torch.equal(one, entry.make(*together[:1].expand_as(together).unbind(1)).argmax(scores))
    several = entry.structure().argmax(torch.stack([scores, -scores]))
    assert torch.equal(several[1], entry.structure().argmax(-scores))
    with pytest.raises(ValueError, match=r"has shape \[2\] and scores .* of shape \[\d\]"):
        entry.make(*together[:2].unbind(1)).argmax(scores)


@pytest.mark.parametrize("operation", ["marginals", "sparsemap"])
def test_incoming_gradients_outside_of_the_parts_are_ignored(gibbs, operation):
    leaf = torch.where(mask_of(gibbs), gibbs.scores(), 0.0).requires_grad_()
    result, incoming = getattr(gibbs.structure(), operation)(leaf), gibbs.scores(seed=3)
    (clean,) = torch.autograd.grad(result, leaf, incoming, retain_graph=True)
    (found,) = torch.autograd.grad(result, leaf, torch.where(mask_of(gibbs), incoming, torch.nan))
    assert torch.equal(found, clean)
    assert not found[~mask_of(gibbs)].any()


@pytest.mark.parametrize("operation", EXPECTATIONS)
def test_expanded_scores(gibbs, operation):
    """The incoming gradient of a sum is expanded, too."""
    one = gibbs.scores()[:1].requires_grad_()
    structure = gibbs.structure(slice(0, 1))
    result = getattr(structure, operation)(one.expand(3, *gibbs.parts))
    (found,) = torch.autograd.grad(result.sum(), one)
    (alone,) = torch.autograd.grad(getattr(structure, operation)(one).sum(), one)
    torch.testing.assert_close(found, 3 * alone)


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


def test_sparsemap_takes_a_limit_and_a_start(entry):
    scores = torch.where(mask_of(entry), entry.scores(), 0.0)
    structure = entry.structure()
    z = structure.argmax(scores)
    found = structure.sparsemap(scores, warm_start=z, max_iterations=10_000)
    torch.testing.assert_close(found, structure.sparsemap(scores), rtol=0, atol=1e-7)
    assert structure.sparsemap_solution(scores, warm_start=z, max_iterations=10_000).converged.all()


def test_an_operation_that_cannot_be_says_so():
    for operation in ("marginals", "log_partition", "entropy", "sample"):
        with pytest.raises(NotImplementedError, match=r"#P-hard|permanent|matching"):
            getattr(pb.Matching(), operation)(torch.zeros(2, 3))


def test_every_structure_has_an_entry():
    """What `pullback` exports is what is tested here."""
    exported = {x for x in vars(pb).values() if isinstance(x, type) and issubclass(x, pb.Structure)}
    tested = {type(entry.structure()) for entry in ENTRIES}
    assert exported - {pb.Structure, pb.Wrapper} == tested
