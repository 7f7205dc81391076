"""On a real GPU, what an interpreter cannot show: races, memory that nobody wrote, waiting for the device, CUDA graphs."""

from __future__ import annotations

import pytest
import torch

import pullback as pb
from pullback.inference.trees.family import TREES

if not torch.cuda.is_available():
    pytest.skip("needs a GPU", allow_module_level=True)

GPU = torch.device("cuda")
KINDS = pytest.mark.parametrize(
    ("projective", "multiroot"),
    [(True, True), (True, False), (False, True), (False, False)],
    ids=["projective", "projective-singleroot", "nonprojective", "nonprojective-singleroot"],
)
GRADIENTS = ("marginals", "log_partition", "entropy", "sparsemap")


def batch(n, size, *, scale=1.0, seed=0):
    """Scores with NaN in the padding, lengths, a direction and seeds, on the GPU."""
    generator = torch.Generator().manual_seed(seed)
    scores = scale * torch.randn(size, n, n, generator=generator)
    lengths = torch.randint(0, n + 1, (size,), generator=generator)
    lengths[0] = n
    padding = torch.arange(n) >= lengths[:, None]
    scores = scores.masked_fill(padding[:, :, None] | padding[:, None, :], torch.nan)
    seeds = torch.randint(-(2**63), 2**63 - 1, (size,), generator=generator)
    return [x.to(GPU) for x in (scores, lengths, torch.randn(size, n, n, generator=generator), seeds)]


def every_operation(projective, multiroot, scores, lengths, direction, seeds, differentiable=GRADIENTS):
    """The results of all operations, and the gradients of those that have one."""
    tree = pb.DependencyTree(lengths, projective, multiroot)
    leaf = scores.detach().requires_grad_()
    z = tree.argmax(leaf)
    results = {"argmax": z, "sample": TREES.sample(scores, lengths, seeds, projective, multiroot, False)}
    for name in differentiable:
        value = getattr(tree, name)(leaf)
        incoming = direction if value.dim() > 1 else direction[:, 0, 0]
        results[name] = value.detach()
        (results[f"{name}, gradient"],) = torch.autograd.grad(value, leaf, incoming)
    if "sparsemap" in differentiable:
        results["sparsemap from the argmax"] = tree.sparsemap(scores, warm_start=z)
    return results


def assert_equal(found, expected):
    for name, result in expected.items():
        assert torch.equal(found[name], result), name


@pytest.mark.parametrize("n", [1, 2, 7, 16, 30, 33, 64, 101, 200])
@KINDS
def test_every_call_gives_the_same_and_reads_only_what_was_written(n, projective, multiroot, poisoned):
    differentiable = GRADIENTS if n in (1, 16, 30, 101) else GRADIENTS[:3]
    tensors = batch(n, 64, scale=1.0 if n < 64 else 5.0)
    clean = every_operation(projective, multiroot, *tensors, differentiable)
    for result in clean.values():
        assert result.isfinite().all()
    for _ in range(4):
        assert_equal(every_operation(projective, multiroot, *tensors, differentiable), clean)
    with poisoned():
        assert torch.empty(1, device=GPU).isnan()
        assert_equal(every_operation(projective, multiroot, *tensors, differentiable), clean)


@pytest.mark.parametrize("n", [5, 31])
@KINDS
def test_a_sentence_alone_gets_what_it_gets_among_thousands(n, projective, multiroot):
    tensors = batch(n, 4096)
    together = every_operation(projective, multiroot, *tensors)
    for b in (0, 2047, 4095):
        alone = every_operation(projective, multiroot, *(x[b : b + 1] for x in tensors))
        assert_equal({name: result[b : b + 1] for name, result in together.items()}, alone)


@KINDS
def test_offsets_beyond_32_bits(projective, multiroot):
    """More than 2^31 scores, of which the last sentences count."""
    size, n = 54_000, 200
    if torch.cuda.mem_get_info()[0] < 30 * 2**30:
        pytest.skip("needs 30 GiB of free memory")
    last = torch.randn(2, n, n, generator=torch.Generator().manual_seed(0)).to(GPU)
    lengths = torch.zeros(size, dtype=torch.long, device=GPU)
    lengths[-2:] = n
    scores = torch.empty(size, n, n, device=GPU)
    scores[-2:] = last
    tree, alone = (pb.DependencyTree(x, projective, multiroot) for x in (lengths, None))
    assert torch.equal(tree.argmax(scores)[-2:], alone.argmax(last))
    assert torch.equal(tree.marginals(scores)[-2:], alone.marginals(last))


@KINDS
def test_a_cuda_graph_captures_every_operation_and_its_gradient(projective, multiroot):
    tensors = batch(20, 16)
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        every_operation(projective, multiroot, *tensors)
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        captured = every_operation(projective, multiroot, *tensors)
    for seed in (1, 2):
        for x, y in zip(tensors, batch(20, 16, seed=seed, scale=0.3 * seed), strict=True):
            x.copy_(y)
        graph.replay()
        torch.cuda.synchronize()
        assert_equal(captured, every_operation(projective, multiroot, *tensors))


@KINDS
def test_nothing_waits_for_the_device(projective, multiroot):
    tensors = batch(20, 16)
    every_operation(projective, multiroot, *tensors)
    torch.cuda.set_sync_debug_mode("error")
    try:
        every_operation(projective, multiroot, *tensors)
        pb.DependencyTree(tensors[1], projective, multiroot).sample(tensors[0])
    finally:
        torch.cuda.set_sync_debug_mode("default")


@KINDS
def test_bfloat16_under_autocast_gives_float32(projective, multiroot):
    scores, lengths, direction, seeds = batch(12, 8)
    tree = pb.DependencyTree(lengths, projective, multiroot)
    half = scores.to(torch.bfloat16).requires_grad_()
    for name in ("argmax", *GRADIENTS):
        with torch.autocast("cuda", dtype=torch.bfloat16):
            found = getattr(tree, name)(half)
        assert found.dtype == torch.float32
        assert torch.equal(found, getattr(tree, name)(half.detach().float()))
        if name != "argmax":
            (gradient,) = torch.autograd.grad(found.sum(), half)
            assert gradient.dtype == torch.bfloat16
            assert gradient.isfinite().all()


@KINDS
def test_values_are_checked_on_request_only(projective, multiroot):
    scores = torch.zeros(3, 4, 4, device=GPU)
    scores[1, 0, 2], scores[2, :, 1] = torch.nan, -torch.inf
    unchecked = pb.DependencyTree(projective=projective, multiroot=multiroot)
    assert unchecked.log_partition(scores)[0].isfinite()
    assert unchecked.log_partition(scores)[1:].isnan().all()
    checked = pb.DependencyTree(projective=projective, multiroot=multiroot, validate=True)
    for name in ("argmax", "sample", *GRADIENTS):
        with pytest.raises(ValueError, match=r"sentence 1 .* contains NaN"):
            getattr(checked, name)(scores)
        with pytest.raises(ValueError, match=r"sentence 1 .* has no feasible tree"):
            getattr(checked, name)(scores[[0, 2]])


@KINDS
def test_scores_that_begin_anywhere_in_memory(projective, multiroot):
    """What was compiled for aligned tensors is not used for others."""
    tensors = batch(20, 16)
    expected = every_operation(projective, multiroot, *tensors)
    shifted = [torch.cat([x.flatten()[:1], x.flatten()])[1:].view(x.shape) for x in tensors]
    assert all(x.data_ptr() % 16 for x in shifted)
    assert_equal(every_operation(projective, multiroot, *shifted), expected)


@KINDS
def test_on_another_stream(projective, multiroot):
    """Kernels run on the stream that is current, behind the work that makes their scores."""
    tensors = batch(20, 64)
    expected = every_operation(projective, multiroot, *tensors)
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        torch.cuda._sleep(10_000_000)
        late = [x.clone() for x in tensors]
        found = every_operation(projective, multiroot, *late)
    stream.synchronize()
    assert_equal(found, expected)
