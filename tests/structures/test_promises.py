"""The promises of structures with parts of any shape, against enumeration, on the reference and the compiled backend."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest
import torch
from torch import Tensor

import pullback as pb
from cases import backends
from pullback.inference.family import backend


@dataclass(frozen=True)
class Entry:
    """How to make a structure for sizes of each example, its parts, and its enumeration for one example's sizes."""

    name: str
    make: Callable[..., pb.Structure]
    parts: tuple[int, ...]
    sizes: list[tuple[int, ...]]
    enumerate: Callable[..., Tensor]
    gibbs: bool = True

    def structure(self, rows: slice = slice(None), **options) -> pb.Structure:
        return self.make(*torch.tensor(self.sizes)[rows].unbind(1), **options)

    def all_of(self, example: int) -> Tensor:
        """Every structure of an example, `[S, *parts]`, padded."""
        z = self.enumerate(*self.sizes[example])
        padding = [p for full, own in zip(reversed(self.parts), reversed(z.shape[1:]), strict=True) for p in (0, full - own)]
        return torch.nn.functional.pad(z, padding).double()

    def scores(self, seed: int = 0, scale: float = 1.0) -> Tensor:
        generator = torch.Generator().manual_seed(seed)
        return scale * torch.randn(len(self.sizes), *self.parts, generator=generator, dtype=torch.float64)


ENTRIES = [
    Entry("chain", pb.LinearChain, (4, 3, 3), [(4,), (2,), (0,), (1,)], lambda n: pb.LinearChain().enumerate(n, 3)),
    Entry("subset", pb.Subset, (5,), [(2, 5), (1, 4), (0, 1), (3, 3)], lambda k, n: pb.Subset(k).enumerate(n)),
    Entry("segmentation", pb.Segmentation, (5, 3, 2), [(5,), (3,), (0,), (1,)], lambda n: pb.Segmentation().enumerate(n, 3, 2)),
    Entry("binary tree", pb.BinaryTree, (5, 5), [(5,), (3,), (0,), (1,)], lambda n: pb.BinaryTree().enumerate(n)),
    Entry("any moves", pb.Alignment, (4, 5), [(4, 5), (3, 2), (0, 0), (1, 4)], lambda n, m: pb.Alignment().enumerate(n, m)),
    Entry(
        "forward moves", lambda n, m, **o: pb.Alignment(n, m, "forward", **o), (4, 5), [(4, 5), (2, 3), (0, 0), (1, 4)],
        lambda n, m: pb.Alignment(moves="forward").enumerate(n, m),
    ),
    Entry(
        "matching", pb.Matching, (3, 4), [(3, 4), (2, 2), (0, 0), (1, 3)],
        lambda n, m: pb.Matching().enumerate(n, m), gibbs=False,
    ),
]  # fmt: skip
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
    found = []
    for name in ("reference", "cpu"):
        with backend(name):
            found.append(entry.structure().argmax(entry.scores(seed=5).round()))
    assert torch.equal(*found)


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
        shifted = (scores * 2**20 / 2**20).round(decimals=2) + size
        plain = (scores * 2**20 / 2**20).round(decimals=2)
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
    if operation == "marginals":
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


def test_bad_examples_are_named_or_nan(entry):
    scores = torch.where(mask_of(entry), entry.scores(), 0.0)
    bad = scores.clone()
    bad[0] = torch.where(mask_of(entry)[0], torch.nan, 0.0)
    with pytest.raises(ValueError, match="0 of the batch"):
        entry.structure(validate=True).argmax(bad)
    z = entry.structure(validate=False).argmax(bad)
    assert z[0].isnan().all()
    torch.testing.assert_close(z[1:], entry.structure().argmax(scores)[1:])
    if entry.gibbs:
        mu = entry.structure(validate=False).marginals(bad)
        assert mu[0].isnan().all()
        torch.testing.assert_close(mu[1:], entry.structure().marginals(scores)[1:])
