"""The reference runs where its scores are, and what a structure remembers of scores does not outlive a captured graph."""

from __future__ import annotations

import pytest
import torch
from torch.testing import assert_close

import pullback as pb
from cases import ENTRIES
from pullback.inference.front.family import backend


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
def test_the_reference_runs_on_a_gpu(gpu, entry):
    scores, structure = entry.scores(), entry.structure()
    operations = ["argmax", *(["marginals", "log_partition", "entropy"] if entry.gibbs else [])]
    with backend("reference"):
        for operation in operations:
            here, there = scores.clone().requires_grad_(), scores.to(gpu).requires_grad_()
            expected, found = getattr(structure, operation)(here), getattr(structure, operation)(there)
            assert found.device.type == "cuda"
            assert_close(found.detach().cpu(), expected.detach())
            if operation != "argmax":
                expected.square().sum().backward()
                found.square().sum().backward()
                assert_close(there.grad.cpu(), here.grad)
        if entry.gibbs:
            assert structure.sample(scores.to(gpu)).device.type == "cuda"


@pytest.mark.parametrize("kind", [torch.int32, torch.int64], ids=str)
def test_a_captured_graph_reads_new_lengths(gpu, kind):
    scores = torch.randn(4, 6, 6, device=gpu)
    lengths = torch.tensor([6, 5, 4, 3], dtype=kind, device=gpu)
    tree = pb.DependencyTree(lengths)
    for _ in range(2):
        tree.marginals(scores)
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        tree.marginals(scores)
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        mu = tree.marginals(scores)
    lengths.copy_(torch.tensor([1, 2, 3, 4]))
    graph.replay()
    assert_close(mu, pb.DependencyTree(torch.tensor([1, 2, 3, 4])).marginals(scores))
