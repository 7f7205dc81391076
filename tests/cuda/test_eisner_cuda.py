"""Projective trees on a GPU: the results of the CPU, whatever the size of the batch, of the sentences and of the
scores.
"""

from __future__ import annotations

import itertools

import pytest
import torch
from torch.testing import assert_close

from cases import QUICK
from pullback.inference._triton.support import interpreting
from pullback.inference.eisner import cpu, cuda, cuda_inside, cuda_outside

if not torch.cuda.is_available() and not interpreting():
    pytest.skip("needs a GPU, or Triton's interpreter: test_interpreter.py runs it there", allow_module_level=True)

SIZES = [2, 31, 50, 101] if QUICK else [1, 2, 3, 15, 16, 30, 31, 32, 50, 51, 64, 101, 200]
KINDS = ["integers", "normal"] if QUICK else ["integers", "normal", "peaked", "million"]
SMALL = [("normal", 1), ("normal", 2), ("integers", 3), ("integers", 5), ("million", 4)]
SCORES = pytest.mark.parametrize(("kind", "n"), SMALL if interpreting() else list(itertools.product(KINDS, SIZES)))
RIGHT = cpu
ROOTS = pytest.mark.parametrize("multiroot", [True, False], ids=["multiroot", "singleroot"])
TOLERANCE = {torch.float32: 2e-5, torch.float64: 1e-7}


def batch(kind, n, dtype=torch.float32, size=None):
    """Scores with NaN in the padding and some arcs forbidden, lengths, a direction, and seeds; on the CPU."""
    generator = torch.Generator().manual_seed(n)
    size = size or (2 if interpreting() else 7)
    scores = torch.randn(size, n, n, generator=generator, dtype=torch.float64)
    if kind == "integers":
        scores = torch.randint(-1, 2, (size, n, n), generator=generator).double()
    scores *= {"peaked": 20.0, "million": 1e6}.get(kind, 1.0)
    if n > 3:
        scores[0, 0, 2] = scores[1, 3, 1] = -torch.inf
    lengths = torch.randint(0, n + 1, (size,), generator=generator)
    lengths[0] = n
    padding = torch.arange(n) >= lengths[:, None]
    scores = scores.masked_fill(padding[:, :, None] | padding[:, None, :], torch.nan)
    direction = torch.randn(size, n, n, generator=generator, dtype=torch.float64)
    seeds = torch.randint(-(2**63), 2**63 - 1, (size,), generator=generator)
    return scores.to(dtype), lengths, direction.to(dtype), seeds


def every_operation(module, scores, lengths, direction, seeds, multiroot):
    arguments = scores, lengths
    return {
        "argmax": module.argmax(*arguments, multiroot=multiroot, validate=False),
        "log_partition": module.log_partition(*arguments, multiroot=multiroot, validate=False),
        "marginals": module.marginals(*arguments, multiroot=multiroot, validate=False),
        "marginals_vjp": module.marginals_vjp(*arguments, direction, multiroot=multiroot, validate=False),
        "entropy": module.entropy(*arguments, multiroot=multiroot, validate=False),
        "entropy_gradient": module.entropy_gradient(*arguments, multiroot=multiroot, validate=False),
        "sample": module.sample(*arguments, seeds, multiroot=multiroot, validate=False),
    }


def assert_right(tensors, multiroot, device):
    """Trees are equal, numbers close to those of float64."""
    scores, lengths, direction, seeds = tensors
    found = every_operation(cuda, *(x.to(device) for x in tensors), multiroot)
    expected = every_operation(RIGHT, scores.double(), lengths, direction.double(), seeds, multiroot)
    expected["argmax"] = RIGHT.argmax(scores, lengths, multiroot=multiroot, validate=False)
    # each device draws in an order of its own: of the samples, the words that have a head are compared
    found["sample"], expected["sample"] = found["sample"].sum(1), expected["sample"].sum(1)
    for name, result in found.items():
        tolerance = 0.0 if name in ("argmax", "sample") else TOLERANCE[scores.dtype]
        relative = tolerance if name in ("log_partition", "entropy") else 0.0
        assert_close(result.cpu().double(), expected[name].double(), atol=tolerance, rtol=relative, msg=name)


@SCORES
@ROOTS
def test_every_operation(device, n, multiroot, kind):
    assert_right(batch(kind, n), multiroot, device)


@pytest.mark.parametrize("n", [3] if interpreting() else [4, 30, 70])
@ROOTS
def test_every_operation_in_float64(device, n, multiroot):
    assert_right(batch("normal", n, torch.float64), multiroot, device)


def test_loops_over_sentences_spans_and_splits(device, monkeypatch):
    """Those of sentences of more than 127 words; and what is left of one sentence in the scratch is not in the next."""
    monkeypatch.setattr(cuda, "_tile", lambda n: ({"ROWS": 2, "LANES": 8}, 1))
    monkeypatch.setattr(cuda, "program_count", lambda sentences, scratch: 1)
    monkeypatch.setattr(cuda, "_plan", cuda._plan.__wrapped__)
    assert_right(batch("normal", 6), True, device)


@pytest.mark.skipif(not interpreting(), reason="on a GPU the order is not ours to choose")
@pytest.mark.parametrize("first", ["right", "left"])
def test_the_order_in_which_warps_write_does_not_matter(device, monkeypatch, first):
    """All left items of a width before all right ones, or after: the other side's must not be looked at yet."""
    scores, lengths, direction, _ = (x[:1] for x in batch("normal", 4))

    def sums():
        return [
            cuda.entropy(scores, lengths, True, False),
            cuda.marginals_vjp(scores, lengths, direction, True, False),
            cuda.log_partition(scores.double(), lengths, True, False),
        ]

    expected = sums()
    inside, spans_of = cuda_inside.inside, cuda_inside.spans_of

    def one_side_after_the_other(*args):
        for on_left in (first == "left", first != "left"):

            def some_spans(*position, on_left=on_left):
                start, left, real = spans_of(*position)
                return start, left, real & (left == on_left)

            monkeypatch.setattr(cuda_inside, "spans_of", some_spans)
            inside(*args)
        monkeypatch.setattr(cuda_inside, "spans_of", spans_of)

    monkeypatch.setattr(cuda_inside, "inside", one_side_after_the_other)
    monkeypatch.setattr(cuda_outside, "inside", one_side_after_the_other)
    for found, right in zip(sums(), expected, strict=True):
        assert torch.equal(found, right)


def test_nan_and_infeasible_sentences_do_not_spoil_their_neighbours(device):
    scores, lengths, direction, seeds = batch("normal", 3, size=4)
    lengths[:] = 3
    scores = torch.where(scores.isnan(), 0.5, scores)
    clean = every_operation(cuda, scores.to(device), lengths.to(device), direction.to(device), seeds.to(device), True)
    scores[1, 0, 1], scores[2, :, 2] = torch.nan, -torch.inf
    found = every_operation(cuda, scores.to(device), lengths.to(device), direction.to(device), seeds.to(device), True)
    for name, result in found.items():
        assert torch.equal(result[[0, 3]], clean[name][[0, 3]]), name
        assert result[1:3].isnan().all(), name


def test_strides_and_empty_batches(device):
    tensors = scores, lengths, direction, seeds = [x.to(device) for x in batch("normal", 3)]
    flipped = [x.transpose(1, 2).contiguous().transpose(1, 2) for x in (scores, direction)]
    every_other = [x.repeat_interleave(2)[::2] for x in (lengths, seeds)]
    found = every_operation(cuda, flipped[0], every_other[0], flipped[1], every_other[1], True)
    for name, result in every_operation(cuda, *tensors, True).items():
        assert torch.equal(found[name], result), name
    none = (x[:0] for x in tensors)
    for result in every_operation(cuda, *none, True).values():
        assert len(result) == 0
    no_words = torch.zeros(2, 0, 0, device=device), torch.zeros(2, dtype=torch.long, device=device)
    assert torch.equal(cuda.log_partition(*no_words, True, False).cpu(), torch.zeros(2, dtype=torch.float64))
    assert cuda.argmax(*no_words, True, False).shape == (2, 0, 0)


@pytest.mark.parametrize("size", [1, 4096])
@pytest.mark.parametrize("n", [10, 31])
def test_batches_of_one_and_of_thousands(gpu, size, n):
    assert_right(batch("normal", n, size=max(size, 2)), True, gpu)
    scores, lengths, direction, seeds = (x[:1] for x in batch("normal", n, size=2))
    assert_right((scores, lengths, direction, seeds), False, gpu)
