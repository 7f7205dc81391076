"""SparseMAP of CUDA tensors on the CPU: the CPU's results in the GPU's shapes, for small batches only, never in a graph."""

from __future__ import annotations

import functools

import pytest
import torch
from torch.testing import assert_close

import pullback as pb
from pullback.inference import offload
from pullback.inference.family import backend
from pullback.inference.trees import TREES


def test_only_sparsemap_of_small_batches_is_offloaded():
    scores = torch.zeros(4, 3, 3)
    assert not offload.wanted(scores, "eisner")
    with pb.offload():
        assert not offload.wanted(scores[:1], "eisner")
        for algorithm in ("chu_liu_edmonds", "chain", "one of my own"):
            assert offload.wanted(scores[:1], algorithm)
            assert not offload.wanted(torch.zeros(100 * torch.get_num_threads() + 1, 1, 1), algorithm)
    with pb.offload(largest_batch=3):
        assert not offload.wanted(scores, "eisner")
        with pb.offload(largest_batch=4):
            assert offload.wanted(scores, "eisner")
        assert not offload.wanted(scores, "eisner")
    assert not offload.wanted(scores, "eisner")


def test_the_results_of_the_cpu_in_the_shapes_of_a_gpu():
    scores = torch.randn(3, 4, 4, generator=torch.Generator().manual_seed(0))
    solution = pb.DependencyTree().sparsemap_solution(scores)
    starts = torch.empty(3, 0, 4, dtype=torch.int32), torch.empty(3, 0, dtype=torch.float64)
    args = scores, torch.full((3,), 4), *starts, 1000, False
    call = functools.partial(TREES.implementation("sparsemap", "cpu", (True, True)), validate=False)
    found = offload.on_the_cpu(call, args, 14)
    with backend("cuda"):
        expected = TREES.operations["sparsemap"].shapes(*args)
    assert [x.shape for x in found] == [x.shape for x in expected]
    assert_close(found[0], solution.mu)
    weights = torch.where(torch.arange(found[2].shape[1]) < found[3][:, None], found[2], 0.0)
    assert_close(weights.sum(1), torch.ones(3, dtype=torch.float64))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("make", [pb.LinearChain, pb.Segmentation, pb.BinaryTree, pb.Alignment, pb.Matching])
def test_on_a_gpu_all_structures_are_solved_by_the_cpu(make):
    shape = {pb.LinearChain: (3, 6, 3, 3), pb.Segmentation: (3, 6, 3, 2)}.get(make, (3, 6, 6))
    scores = torch.randn(shape, generator=torch.Generator().manual_seed(0))
    leaf = scores.cuda().requires_grad_()
    with pb.offload(largest_batch=3):
        mu = make().sparsemap(leaf)
    (gradient,) = torch.autograd.grad(mu.square().sum(), leaf)
    expected = scores.requires_grad_()
    own = make().sparsemap(expected)
    (own_gradient,) = torch.autograd.grad(own.square().sum(), expected)
    assert torch.equal(mu.cpu(), own)
    assert_close(gradient.cpu(), own_gradient, atol=1e-5, rtol=0)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_on_a_gpu_the_cpu_solves_it_outside_of_graphs():
    scores = torch.randn(3, 9, 9, generator=torch.Generator().manual_seed(0))
    leaf = scores.cuda().requires_grad_()
    with pb.offload(largest_batch=3):
        mu = pb.DependencyTree().sparsemap(leaf)
    (gradient,) = torch.autograd.grad(mu.square().sum(), leaf)
    expected = scores.requires_grad_()
    own = pb.DependencyTree().sparsemap(expected)
    (own_gradient,) = torch.autograd.grad(own.square().sum(), expected)
    assert torch.equal(mu.cpu(), own)
    assert_close(gradient.cpu(), own_gradient, atol=1e-5, rtol=0)
    graph = torch.cuda.CUDAGraph()
    with pb.offload(largest_batch=3), torch.cuda.graph(graph):
        captured = pb.DependencyTree().sparsemap(leaf.detach())
    graph.replay()
    torch.cuda.synchronize()
    assert_close(captured, mu.detach(), atol=2e-6, rtol=0)
