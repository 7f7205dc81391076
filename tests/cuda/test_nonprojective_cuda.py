"""All trees on a GPU: the results of the CPU, or of the reference in the interpreter, whatever the size of the batch, of
the sentences and of the scores.
"""

from __future__ import annotations

import importlib
import itertools

import pytest
import torch
from torch.testing import assert_close

import pullback as pb
from cases import QUICK
from oracles import chi_square_tail, is_tree
from pullback.inference import chu_liu_edmonds, matrix_tree
from pullback.inference._triton.support import interpreting
from pullback.inference.chu_liu_edmonds import cuda as best
from pullback.inference.matrix_tree import cuda

if not torch.cuda.is_available() and not interpreting():
    pytest.skip("needs a GPU, or Triton's interpreter: test_interpreter.py runs it there", allow_module_level=True)

SIZES = [2, 30, 64] if QUICK else [1, 2, 3, 15, 16, 30, 33, 64, 101, 200]
KINDS = ["integers", "normal", "cycles", "million", "sparse"]
SMALL = [("normal", 1), ("normal", 2), ("integers", 4), ("cycles", 4), ("million", 3), ("sparse", 4)]
SCORES = pytest.mark.parametrize(("kind", "n"), SMALL if interpreting() else list(itertools.product(KINDS, SIZES)))
RIGHT = "reference" if interpreting() else "cpu"
ROOTS = pytest.mark.parametrize("multiroot", [True, False], ids=["multiroot", "singleroot"])
TOLERANCE = {torch.float32: 2e-5, torch.float64: 1e-7}


def batch(kind, n, dtype=torch.float32, size=None):
    """Scores with NaN in the padding, lengths, a direction, and seeds; on the CPU."""
    generator = torch.Generator().manual_seed(n)
    size = size or (2 if interpreting() else 7)
    scores = torch.randn(size, n, n, generator=generator, dtype=torch.float64)
    if kind == "integers":
        scores = torch.randint(-1, 2, (size, n, n), generator=generator).double()
    if kind == "million":
        scores *= 1e6
    if kind == "cycles":  # two words that prefer each other by far
        pairs = torch.arange(n)
        scores[:, pairs, (pairs ^ 1).clamp_max(n - 1)] = 50.0
        scores[:, pairs, pairs] -= 50.0
    if kind == "sparse":  # one tree is left, and its only root anywhere
        scores = scores.masked_fill(torch.rand(size, n, n, generator=generator) < 0.7, -torch.inf)
        for one in scores:
            order = torch.randperm(n, generator=generator)
            one[order[:-1], order[1:]] = 0.0
            one[order[0], order[0]] = 0.0
    lengths = torch.full((size,), n)
    if kind != "sparse":
        lengths[1:] = torch.randint(0, n + 1, (size - 1,), generator=generator)
    padding = torch.arange(n) >= lengths[:, None]
    scores = scores.masked_fill(padding[:, :, None] | padding[:, None, :], torch.nan)
    direction = torch.randn(size, n, n, generator=generator, dtype=torch.float64)
    seeds = torch.randint(-(2**63), 2**63 - 1, (size,), generator=generator)
    return scores.to(dtype), lengths, direction.to(dtype), seeds


def expectations(module, scores, lengths, direction, multiroot):
    return {
        "log_partition": module.log_partition(scores, lengths, multiroot=multiroot, validate=False),
        "marginals": module.marginals(scores, lengths, multiroot=multiroot, validate=False),
        "marginals_vjp": module.marginals_vjp(scores, lengths, direction, multiroot=multiroot, validate=False),
        "entropy": module.entropy(scores, lengths, multiroot=multiroot, validate=False),
        "entropy_gradient": module.entropy_gradient(scores, lengths, multiroot=multiroot, validate=False),
    }


def every_operation(scores, lengths, direction, seeds, multiroot):
    return expectations(cuda, scores, lengths, direction, multiroot) | {
        "argmax": best.argmax(scores, lengths, multiroot=multiroot, validate=False),
        "sample": cuda.sample(scores, lengths, seeds, multiroot=multiroot, validate=False),
    }


def right_for(algorithm):
    return importlib.import_module(f"{algorithm.__name__}.{RIGHT}")


def totals(scores, z):
    return torch.where(z > 0, scores.double(), 0.0).sum((1, 2))


def assert_right(tensors, multiroot, device):
    """Numbers are close to those of float64; the best trees are trees, as good as the CPU's; samples are allowed trees."""
    scores, lengths, direction, _ = tensors
    found = {name: result.cpu() for name, result in every_operation(*(x.to(device) for x in tensors), multiroot).items()}
    expected = expectations(right_for(matrix_tree), scores.double(), lengths, direction.double(), multiroot)
    for name, result in expected.items():
        tolerance = TOLERANCE[scores.dtype]
        relative = tolerance if name in ("log_partition", "entropy") else 0.0
        assert_close(found[name].double(), result, atol=tolerance, rtol=relative, msg=name)
    best_totals = totals(scores, right_for(chu_liu_edmonds).argmax(scores, lengths, multiroot=multiroot, validate=False))
    assert_close(totals(scores, found["argmax"]), best_totals, atol=1e-9, rtol=1e-12)
    for z in (found["argmax"], found["sample"]):
        assert totals(scores, z).isfinite().all()
        for one, length in zip(z, lengths.tolist(), strict=True):
            inside = one[:length, :length]
            assert one.sum() == length
            assert (inside.sum(0) == 1).all()
            assert is_tree(inside.argmax(0).tolist() if length else [], False, multiroot)


@SCORES
@ROOTS
def test_every_operation(device, n, multiroot, kind):
    assert_right(batch(kind, n), multiroot, device)


@pytest.mark.parametrize("n", [3] if interpreting() else [4, 30, 70])
@ROOTS
def test_every_operation_in_float64(device, n, multiroot):
    assert_right(batch("normal", n, torch.float64), multiroot, device)


@ROOTS
def test_in_small_tiles_and_one_program_for_several_sentences(device, multiroot, monkeypatch):
    """The loops that long sentences need; what is left of one sentence does not show in the next."""
    monkeypatch.setattr(cuda, "_shape", lambda n: {"ROWS": 2, "COLUMNS": 16, "num_warps": 4, "num_stages": 1})
    monkeypatch.setattr(best, "tile", lambda n: {"ROWS": 2, "COLUMNS": 16, "LEVELS": 4, "num_warps": 4, "num_stages": 1})
    for module in (cuda, best):
        monkeypatch.setattr(module, "program_count", lambda sentences, scratch: 1)
    assert_right(batch("normal", 5), multiroot, device)


@ROOTS
def test_samples_have_the_right_frequencies(device, multiroot):
    n, size = (3, 200) if interpreting() else (4, 100_000)
    tree = pb.DependencyTree(projective=False, multiroot=multiroot)
    scores = torch.randn(1, n, n, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    scores[0, 2, 1] = -torch.inf
    everything = tree.enumerate(n)
    probabilities = totals(scores, everything).softmax(0)
    seeds = torch.randint(-(2**63), 2**63 - 1, (size,), generator=torch.Generator().manual_seed(1))
    many = scores.expand(size, n, n).to(device), torch.full((size,), n, device=device), seeds.to(device)
    z = cuda.sample(*many, multiroot=multiroot, validate=False).cpu()
    names = n ** torch.arange(n)
    drawn = (z.argmax(1) * names).sum(1)
    counts = torch.bincount(drawn, minlength=n**n)[(everything.argmax(1) * names).sum(1)].double()
    assert counts.sum() == size
    assert chi_square_tail(counts, probabilities) > 1e-4


def test_nan_and_infeasible_sentences_do_not_spoil_their_neighbours(device):
    scores, lengths, direction, seeds = (x.to(device) for x in batch("normal", 3, size=4))
    lengths[:] = 3
    scores = torch.where(scores.isnan(), 0.5, scores)
    clean = every_operation(scores, lengths, direction, seeds, True)
    scores[1, 0, 1], scores[2, :, 2] = torch.nan, -torch.inf
    found = every_operation(scores, lengths, direction, seeds, True)
    for name, result in found.items():
        assert torch.equal(result[[0, 3]], clean[name][[0, 3]]), name
        assert result[1:3].isnan().all(), name


def test_strides_and_empty_batches(device):
    scores, lengths, direction, seeds = (x.to(device) for x in batch("normal", 3))
    flipped = scores.transpose(1, 2).contiguous().transpose(1, 2)
    same = every_operation(flipped, lengths.repeat_interleave(2)[::2], direction, seeds, True)
    for name, result in every_operation(scores, lengths, direction, seeds, True).items():
        assert torch.equal(same[name], result), name
    for result in every_operation(*(x[:0] for x in (scores, lengths, direction, seeds)), True).values():
        assert len(result) == 0
    no_words = torch.zeros(2, 0, 0, device=device), torch.zeros(2, dtype=torch.long, device=device)
    assert torch.equal(cuda.log_partition(*no_words, True, False).cpu(), torch.zeros(2, dtype=torch.float64))
    assert best.argmax(*no_words, True, False).shape == (2, 0, 0)


@pytest.mark.parametrize("size", [1, 4096])
@ROOTS
def test_batches_of_one_and_of_thousands(gpu, size, multiroot):
    assert_right(tuple(x[:size] for x in batch("normal", 10, size=max(size, 2))), multiroot, gpu)
