"""The GPU's kernels of chains, segmentations, binary trees, alignments and subsets agree with the CPU's."""

from __future__ import annotations

import functools

import pytest
import torch

import pullback as pb
from pullback.inference._triton.support import interpreting
from pullback.inference.alignment import cuda as alignment
from pullback.inference.chain import cuda as chain
from pullback.inference.engine.hypergraph import cuda as hypergraph
from pullback.inference.engine.hypergraph import tables
from pullback.inference.front.family import backend

if not torch.cuda.is_available() and not interpreting():
    pytest.skip("needs a GPU, or Triton's interpreter: test_interpreter.py runs it there", allow_module_level=True)

SIZES = torch.tensor([4, 2, 0, 1])
CASES = {
    "chain": (pb.LinearChain, (4, 3, 3), (SIZES,)),
    "segmentation": (pb.Segmentation, (4, 3, 2), (SIZES,)),
    "binary tree": (pb.BinaryTree, (4, 4), (SIZES,)),
    "alignment": (pb.Alignment, (4, 4), (SIZES, torch.tensor([4, 3, 0, 2]))),
    "subset": (pb.Subset, (4,), (torch.tensor([2, 2, 0, 0]), SIZES)),
}
SLOW = {"segmentation", "binary tree"}  # one with one child per edge and one with two, through the kernels for wide levels


def results(case, scores, on: str, device: torch.device) -> dict[str, torch.Tensor]:
    make, _, sizes = CASES[case]
    with backend(on):
        leaf = scores.to(device).requires_grad_()
        structure = make(*sizes, validate=False)
        mu, nats = structure.marginals(leaf), structure.entropy(leaf)
        direction = torch.linspace(-1, 1, mu.numel(), device=device, dtype=mu.dtype).reshape(mu.shape)
        found = {"argmax": structure.argmax(leaf.detach()), "mu": mu.detach(), "entropy": nats.detach()}
        if case == "subset":  # whose SparseMAP is a kernel of its own; the others' are in test_sparsemap_steps_cuda.py
            found["SparseMAP"] = structure.sparsemap(leaf.detach())
        found["log Z"] = structure.log_partition(leaf).detach()
        (found["slope"],) = torch.autograd.grad(mu, leaf, direction)
        (found["entropy's slope"],) = torch.autograd.grad(nats.sum(), leaf)
        (found["slope of log Z"],) = torch.autograd.grad(structure.log_partition(leaf).sum(), leaf)
        real = structure.allowed(torch.zeros_like(mu))
        log_p = structure.log_prob(leaf, torch.where(real, found["argmax"], torch.nan))  # whose padding is not read
        found["log p"] = log_p.detach()
        (found["slope of log p"],) = torch.autograd.grad(log_p.sum(), leaf)
        return {name: x.cpu() for name, x in found.items()}


@pytest.mark.parametrize("wide", [False, True], ids=["narrow", "wide"])
@pytest.mark.parametrize("case", CASES)
def test_as_on_the_cpu(case, wide, device, monkeypatch, poisoned):
    check_against_the_cpu(case, wide, device, monkeypatch, poisoned)


def test_chains_in_several_tiles(device, monkeypatch, poisoned):
    """Of two rows each, of which the last one is half empty."""
    monkeypatch.setattr(chain, "ONE_TILE", 0)
    monkeypatch.setattr(chain, "_tiles", lambda width: {"ROWS": 2, "num_warps": 4})
    check_against_the_cpu("chain", False, device, monkeypatch, poisoned)
    count = 100 if interpreting() else 400
    structure, scores = pb.LinearChain(validate=False), torch.zeros(count, 3, 3, 3, device=device)
    scores[:, 1, :, 2], scores[:, 2, 0] = 1.0, -torch.inf
    z, mu = structure.sample(scores), structure.marginals(scores[:1])[0]
    assert structure.log_prob(scores, z).isfinite().all()
    assert ((z.mean(0) - mu).abs() < 5 * (mu * (1 - mu) / count + 1e-9).sqrt()).all()


@pytest.mark.parametrize("case", ["chain", "alignment"])
def test_a_direction_on_parts_without_probability_does_not_count(case, device):
    make, parts, _ = CASES[case]
    leaf = torch.zeros(1, *parts, device=device)
    leaf[0, 2, 1] = -torch.inf
    mu = make(validate=False).marginals(leaf.requires_grad_())
    gamma = torch.linspace(-1, 1, mu.numel(), device=device).reshape(mu.shape)
    (expected,) = torch.autograd.grad(mu, leaf, torch.where(mu == 0, 0.0, gamma), retain_graph=True)
    (found,) = torch.autograd.grad(mu, leaf, torch.where(mu == 0, torch.inf, gamma))
    torch.testing.assert_close(found, expected)


def test_chains_without_positions(device):
    structure, scores = pb.LinearChain(validate=False), torch.zeros(2, 0, 3, 3, device=device, requires_grad=True)
    for operation in ("log_partition", "entropy"):
        assert getattr(structure, operation)(scores).tolist() == [0.0, 0.0]
    for operation in ("argmax", "marginals", "sample"):
        assert getattr(structure, operation)(scores).shape == scores.shape


def check_against_the_cpu(case, wide, device, monkeypatch, poisoned):
    if wide:
        if case not in SLOW:
            pytest.skip("the same kernels")
        monkeypatch.setattr(hypergraph, "_launches", {})  # which remember tiles
        monkeypatch.setattr(hypergraph, "_tile", lambda edges, nodes, name: (hypergraph.kernels, {"NODES": 2, name: 2}))
        monkeypatch.setattr(hypergraph, "_chunk", lambda edges, name: {"NODES": 2, name: 2})
    make, parts, sizes = CASES[case]
    scores = torch.randn(4, *parts, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    scores[0] = torch.where(scores[0] < -1.0, -torch.inf, scores[0])
    scores = torch.where(make(*sizes).allowed(torch.zeros(4, *parts)), scores, torch.nan)
    ours = results(case, scores, "cpu", torch.device("cpu"))
    with poisoned():
        found = results(case, scores, "cuda", device)
    for name, expected in ours.items():
        torch.testing.assert_close(found[name], expected, equal_nan=True, msg=lambda text, name=name: f"{name}: {text}")


@pytest.mark.parametrize("moves", ["any", "forward"])
@pytest.mark.parametrize(("n", "m"), [(5, 9), (9, 5), (6, 6), (1, 7)])
def test_alignments_in_bands(n, m, moves, device, monkeypatch, poisoned):
    """Of four rows each, so that values and probabilities pass from one band to the next."""
    if moves == "forward" and n > m:
        pytest.skip("has no path")
    monkeypatch.setattr(alignment, "MOST_LANES", 4)
    columns = torch.tensor([m, m, max(m - 3, 1), m, 0])
    rows = torch.tensor([n, min(n, 5), 1, n, 0]).minimum(columns if moves == "forward" else torch.tensor(n))
    monkeypatch.setitem(CASES, "bands", (functools.partial(pb.Alignment, moves=moves), (n, m), (rows, columns)))
    scores = torch.randn(5, n, m, generator=torch.Generator().manual_seed(n), dtype=torch.float64)
    scores[1, n // 2, m // 2] = -1e30
    scores[3, 0, 0] = torch.inf
    scores = torch.where(pb.Alignment(rows, columns).allowed(torch.zeros(5, n, m)), scores, torch.nan)
    ours = results("bands", scores, "reference", torch.device("cpu"))
    with poisoned():
        found = results("bands", scores, "cuda", device)
    for name, expected in ours.items():
        torch.testing.assert_close(found[name], expected, equal_nan=True, msg=lambda text, name=name: f"{name}: {text}")


@pytest.mark.parametrize(("n", "m"), [(1100, 1300), (2100, 30)])
@pytest.mark.parametrize("moves", ["any", "forward"])
def test_long_alignments(n, m, moves, gpu):
    """More rows than a band has."""
    if moves == "forward":
        n, m = sorted((n, m))
    scores = torch.randn(2, n, m, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    structure = pb.Alignment(torch.tensor([n, n // 2]), torch.tensor([m, m]), moves=moves, validate=False)
    assert torch.equal(structure.argmax(scores.to(gpu)).cpu(), structure.argmax(scores))
    torch.testing.assert_close(structure.marginals(scores.to(gpu)).cpu(), structure.marginals(scores))
    torch.testing.assert_close(structure.entropy(scores.to(gpu)).cpu(), structure.entropy(scores))


def test_a_batch_of_more_alignments_than_programs(device, monkeypatch):
    monkeypatch.setattr(alignment, "program_count", lambda *args, **options: 2)
    scores = torch.randn(5, 4, 6, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    scores[1] = torch.nan
    structure = pb.Alignment(torch.tensor([4, 4, 2, 3, 4]), torch.tensor([6, 6, 5, 1, 6]), validate=False)
    with backend("cpu"):
        expected = structure.marginals(scores), structure.argmax(scores)
    with backend("cuda"):
        found = structure.marginals(scores.to(device)).cpu(), structure.argmax(scores.to(device)).cpu()
    for ours, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(ours, theirs, equal_nan=True)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_cuda_graph_keeps_the_tables_that_it_reads(gpu, monkeypatch):
    monkeypatch.setattr(tables, "ROOM", 0)
    structure, scores = pb.BinaryTree(validate=False), torch.randn(3, 6, 6, device=gpu)
    expected = structure.marginals(scores)  # compiles, and makes the tables
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        mu = structure.marginals(scores)
    for n in range(7, 12):
        structure.marginals(torch.randn(3, n, n, device=gpu))
    torch.cuda.empty_cache()
    taken = [torch.full((size,), 2**30, dtype=torch.int32, device=gpu) for size in range(1, 2000, 7)]
    mu.zero_()
    graph.replay()
    assert torch.equal(mu, expected), f"tables were overwritten by {len(taken)} tensors"


@pytest.mark.parametrize("case", CASES)
def test_samples_and_bad_examples(case, device):
    make, parts, sizes = CASES[case]
    structure = make(*(size[:1].to(device) for size in sizes), validate=False)
    scores = torch.zeros(6, *parts, device=device)
    z = structure.sample(scores)
    assert structure.log_prob(scores, z).isfinite().all()
    bad = scores.clone()
    bad[3] = torch.nan
    mu = structure.marginals(bad)
    assert mu[3].isnan().all()
    assert mu[:3].isfinite().all()
    assert structure.argmax(bad)[3].isnan().all()


def seed_of_the_largest(counter: int) -> int:
    """The int64 seed whose number `counter` (from 1) is the largest below 1: splitmix64, backwards."""
    x = (1 << 64) - 1
    for shift, factor in [(31, 0x94D049BB133111EB), (27, 0xBF58476D1CE4E5B9), (30, 1)]:
        y = x
        for _ in range(64 // shift):
            y = x ^ (y >> shift)
        x = y * pow(factor, -1, 1 << 64) % (1 << 64)
    seed = (x - counter * 0x9E3779B97F4A7C15) % (1 << 64)
    return seed - (1 << 64) if seed >= 1 << 63 else seed


@pytest.mark.parametrize("tile", [1, 64], ids=["several tiles", "one tile"])
@pytest.mark.parametrize(("make", "parts", "used"), [(pb.LinearChain, (2, 3, 3), 2), (pb.BinaryTree, (4, 4), 7)])
def test_a_sample_is_whole_for_the_largest_random_number(make, parts, used, tile, device, monkeypatch):
    """Rounding must not put the number above the sum of all weights, where no edge of a node would be chosen."""
    monkeypatch.setattr(chain, "ONE_TILE", tile)
    seeds = torch.tensor([seed_of_the_largest(counter) for counter in range(1, 9)] * 4)
    scores = torch.randn(len(seeds), *parts, generator=torch.Generator().manual_seed(0))
    with backend("cuda"):
        z = make(validate=False).seeded_sample(scores.to(device), seeds.to(device))
    assert (z.flatten(1).sum(1) == used).all()


@pytest.mark.parametrize(("n", "k"), [(1, 0), (1, 1), (7, 3), (100, 10), (300, 299)])
@pytest.mark.parametrize("scale", [0.01, 1.0, 1e9, 0.0], ids=["flat", "ordinary", "sharp", "integers"])
def test_picks_as_the_reference_does(n, k, scale, device):
    """Argmax with its ties, and the capped simplex; forbidden items, zeros of both signs, masks of -1e30."""
    generator = torch.Generator().manual_seed(n)
    scores = torch.randn(4, n, generator=generator) * scale
    scores = scores if scale else torch.randint(-2, 2, (4, n), generator=generator).float()
    scores[1, torch.randperm(n, generator=generator)[: n - k]] = -torch.inf
    scores[2, torch.randperm(n, generator=generator)[: n - k]] = -1e30
    scores[3] = torch.where(scores[3] < 0, -0.0, scores[3])
    own = pb.Subset(k, validate=False)
    with backend("reference"):
        z, mu = own.argmax(scores), own.sparsemap(scores)
    with backend("cuda"):
        assert torch.equal(own.argmax(scores.to(device)).cpu(), z)
        found = own.sparsemap(scores.to(device)).cpu()
    torch.testing.assert_close(found, mu)
    assert torch.equal(found > 0, mu > 0)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_one_k_for_all_examples_waits_for_nothing(device):
    structure, scores = pb.Subset(2), torch.randn(5, 9, device=device, requires_grad=True)
    structure.marginals(scores)  # compiles
    torch.cuda.set_sync_debug_mode("error")
    try:
        structure.marginals(scores.detach())
        structure.sparsemap(scores).sum().backward()
    finally:
        torch.cuda.set_sync_debug_mode("default")
