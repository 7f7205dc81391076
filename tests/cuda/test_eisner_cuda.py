"""Projective trees on a GPU: the CPU's results, whatever the size of the batch, of the sentences and of the scores."""

from __future__ import annotations

import pytest
import torch
from torch.testing import assert_close

from pullback.inference.eisner import cpu, cuda
from pullback.inference.triton_support import interpreting

SMALL, ALL = [1, 2, 5], [1, 2, 3, 15, 16, 30, 31, 32, 63, 64, 101, 200]
SIZES = pytest.mark.parametrize("n", SMALL if interpreting() else ALL)
ROOTS = pytest.mark.parametrize("multiroot", [True, False], ids=["multiroot", "singleroot"])
SCORES = pytest.mark.parametrize("kind", ["integers", "normal", "peaked", "million"])
TOLERANCE = {torch.float32: 2e-5, torch.float64: 1e-7}


def batch(kind, n, dtype=torch.float32, size=None):
    """Scores with NaN in the padding and some arcs forbidden, lengths, a direction, and seeds; on the CPU."""
    generator = torch.Generator().manual_seed(n)
    size = size or (3 if interpreting() else 7)
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
        "argmax": module.argmax(*arguments, multiroot, False),
        "log_partition": module.log_partition(*arguments, multiroot, False),
        "marginals": module.marginals(*arguments, multiroot, False),
        "marginals_vjp": module.marginals_vjp(*arguments, direction, multiroot, False),
        "entropy": module.entropy(*arguments, multiroot, False),
        "sample": module.sample(*arguments, seeds, multiroot, False),
    }


def assert_as_on_the_cpu(tensors, multiroot, device):
    """Trees are equal, numbers close to those of float64."""
    scores, lengths, direction, seeds = tensors
    found = every_operation(cuda, *(x.to(device) for x in tensors), multiroot)
    expected = every_operation(cpu, scores.double(), lengths, direction.double(), seeds, multiroot)
    expected["argmax"] = cpu.argmax(scores, lengths, multiroot, False)
    for name, result in found.items():
        tolerance = 0.0 if name in ("argmax", "sample") else TOLERANCE[scores.dtype]
        relative = tolerance if name in ("log_partition", "entropy") else 0.0
        assert_close(result.cpu().double(), expected[name].double(), atol=tolerance, rtol=relative, msg=name)


@SIZES
@ROOTS
@SCORES
def test_as_on_the_cpu(device, n, multiroot, kind):
    assert_as_on_the_cpu(batch(kind, n), multiroot, device)


@pytest.mark.parametrize("n", [4] if interpreting() else [4, 30, 70])
@ROOTS
def test_in_float64_as_on_the_cpu(device, n, multiroot):
    assert_as_on_the_cpu(batch("normal", n, torch.float64), multiroot, device)


@ROOTS
def test_one_program_for_several_sentences(device, multiroot, monkeypatch):
    """What is left of one sentence in the scratch does not show in the next."""
    monkeypatch.setattr(cuda, "program_count", lambda sentences, scratch: 1)
    assert_as_on_the_cpu(batch("normal", 4), multiroot, device)


def test_more_spans_and_splits_than_a_program_looks_at_together(device, monkeypatch):
    """The loops that sentences of more than 127 words need."""
    monkeypatch.setattr(cuda, "_tile", lambda n: ({"ROWS": 2, "LANES": 8}, 1))
    assert_as_on_the_cpu(batch("normal", 7, size=2), True, device)


def test_nan_and_infeasible_sentences_do_not_spoil_their_neighbours(device):
    scores, lengths, direction, seeds = batch("normal", 4, size=4)
    lengths[:] = 4
    scores = torch.where(scores.isnan(), 0.5, scores)
    clean = every_operation(cuda, scores.to(device), lengths.to(device), direction.to(device), seeds.to(device), True)
    scores[1, 0, 1], scores[2, :, 3] = torch.nan, -torch.inf
    found = every_operation(cuda, scores.to(device), lengths.to(device), direction.to(device), seeds.to(device), True)
    for name, result in found.items():
        assert torch.equal(result[[0, 3]], clean[name][[0, 3]]), name
    for name in ("log_partition", "marginals", "marginals_vjp", "entropy"):
        assert found[name][1].isnan().all(), name
    for name in ("argmax", "sample"):
        assert not found[name][1:3].any(), name
    assert found["log_partition"][2] == -torch.inf
    assert not found["marginals"][2].any()


def test_strides_and_empty_batches(device):
    scores, lengths, direction, seeds = batch("normal", 5)
    flipped = scores.transpose(1, 2).contiguous().transpose(1, 2)
    assert torch.equal(
        cuda.argmax(flipped.to(device), lengths.to(device), True, False),
        cuda.argmax(scores.to(device), lengths.to(device), True, False),
    )
    none = (x[:0].to(device) for x in (scores, lengths, direction, seeds))
    for result in every_operation(cuda, *none, True).values():
        assert len(result) == 0
    no_words = torch.zeros(2, 0, 0, device=device), torch.zeros(2, dtype=torch.long, device=device)
    assert torch.equal(cuda.log_partition(*no_words, True, False).cpu(), torch.zeros(2, dtype=torch.float64))
    assert cuda.argmax(*no_words, True, False).shape == (2, 0, 0)


@pytest.mark.parametrize("size", [1, 4096])
@pytest.mark.parametrize("n", [10, 31])
def test_batches_of_one_and_of_thousands(gpu, size, n):
    assert_as_on_the_cpu(batch("normal", n, size=max(size, 2)), True, gpu)
    scores, lengths, direction, seeds = (x[:1] for x in batch("normal", n, size=2))
    assert_as_on_the_cpu((scores, lengths, direction, seeds), False, gpu)


@SIZES
def test_memory_that_nobody_wrote_is_not_read(gpu, n):
    """The same results with scratch and results full of NaN before the kernels run, and at every call."""
    tensors = [x.to(gpu) for x in batch("integers", n, size=64)]
    clean = every_operation(cuda, *tensors, True)
    torch.use_deterministic_algorithms(True)
    try:
        assert torch.utils.deterministic.fill_uninitialized_memory
        poisoned = every_operation(cuda, *tensors, True)
    finally:
        torch.use_deterministic_algorithms(False)
    for _ in range(3):
        again = every_operation(cuda, *tensors, True)
        for name, result in clean.items():
            assert torch.equal(poisoned[name], result), name
            assert torch.equal(again[name], result), name


def test_a_cuda_graph_captures_every_operation(gpu):
    tensors = [x.to(gpu) for x in batch("normal", 20, size=16)]
    every_operation(cuda, *tensors, True)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        captured = every_operation(cuda, *tensors, True)
    for x, y in zip(tensors, batch("integers", 20, size=16), strict=True):
        x.copy_(y)
    graph.replay()
    for name, expected in every_operation(cuda, *tensors, True).items():
        assert torch.equal(captured[name], expected), name


def test_nothing_waits_for_the_device(gpu):
    tensors = [x.to(gpu) for x in batch("normal", 20, size=16)]
    every_operation(cuda, *tensors, True)
    torch.cuda.set_sync_debug_mode("error")
    try:
        every_operation(cuda, *tensors, True)
    finally:
        torch.cuda.set_sync_debug_mode("default")


def test_in_the_interpreter(in_interpreter):
    """This file where there is no GPU."""
    in_interpreter("tests/cuda/test_eisner_cuda.py", "-k", "not interpreter")


def test_the_shared_suite_in_the_interpreter(in_interpreter):
    """A part of what every backend has to pass, at small sizes."""
    brute_force, padding = "tests/structures/test_brute_force.py", "tests/structures/test_padding.py"
    in_interpreter(
        f"{brute_force}::test_argmax_is_a_structure_and_none_is_better",
        f"{brute_force}::test_expectations",
        f"{brute_force}::test_gradients_of_expectations",
        f"{padding}::test_a_ragged_batch_is_right",
        f"{padding}::test_a_sentence_of_one_word_has_one_tree",
        "tests/structures/test_errors.py::test_a_cycle_that_cannot_be_left_is_infeasible",
        "tests/cuda/test_eisner_cuda.py::test_strides_and_empty_batches",
        "-k",
        "strides or (projective and not nonprojective and not sparsemap and (-3 or ragged or one_word or cycle))",
    )
