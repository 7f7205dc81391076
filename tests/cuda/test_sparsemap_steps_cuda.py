"""SparseMAP on a GPU of structures other than trees, and of users' own: the projections and gradients of the reference."""

from __future__ import annotations

import warnings

import pytest
import torch
from torch.testing import assert_close

import pullback as pb
from pullback.inference._triton.support import interpreting
from pullback.inference.front.family import backend
from pullback.inference.sparsemap import cuda_batched
from pullback.inference.sparsemap.solution import NotConverged

if not torch.cuda.is_available() and not interpreting():
    pytest.skip("needs a GPU, or Triton's interpreter: test_interpreter.py runs it there", allow_module_level=True)

RIGHT = "reference" if interpreting() else "cpu"
BIG = not interpreting()
SIZES = torch.tensor([20, 7, 1, 0] if BIG else [2, 0])
N = int(SIZES.max())
CASES = {
    "chain": (pb.LinearChain, (N, 3, 3), (SIZES,)),
    "segmentation": (pb.Segmentation, (N, 3, 2), (SIZES,)),
    "binary tree": (pb.BinaryTree, (N, N), (SIZES,)),
    "alignment": (pb.Alignment, (N, N), (SIZES, SIZES)),
    "matching": (pb.Matching, (N, N), (SIZES, SIZES)),
}


class Pick(pb.Structure):
    """One of the parts of each row: an argmax and nothing else."""

    event_dims = 2

    def argmax(self, scores):
        return torch.nn.functional.one_hot(scores.argmax(-1), scores.shape[-1]).to(scores.dtype)


def inputs(case, scale=1.0):
    make, parts, sizes = CASES[case]
    scores = scale * torch.randn(len(SIZES), *parts, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    scores = torch.where(make(*sizes).allowed(torch.zeros_like(scores)), scores, torch.nan)
    return make, scores, sizes


def solve(make, scores, sizes, on, device, warm_start=None):
    with backend(on):
        leaf = scores.to(device, copy=True).requires_grad_()
        start = None if warm_start is None else warm_start(leaf.detach())
        solution = (make(*sizes, validate=False) if sizes else make()).sparsemap_solution(leaf, warm_start=start)
        direction = torch.linspace(-1, 1, leaf.numel(), dtype=leaf.dtype, device=device).reshape(leaf.shape)
        (gradient,) = torch.autograd.grad(solution.mu, leaf, direction)
    return solution, gradient


def assert_same(make, scores, sizes, device, warm_start=None):
    found, gradient = solve(make, scores, sizes, "cuda", device, warm_start)
    expected, expected_gradient = solve(make, scores, sizes, RIGHT, torch.device("cpu"))
    assert found.converged.all()
    assert (found.gap < 1e-9).all()
    assert_close(found.mu.detach().cpu(), expected.mu.detach(), atol=1e-7, rtol=0)
    assert_close(gradient.cpu(), expected_gradient, atol=1e-6, rtol=0)
    weights = found.weights.reshape(*found.weights.shape, *[1] * (scores.dim() - 1))
    assert_close((weights * found.structures).sum(1), found.mu.detach())
    return found


@pytest.mark.parametrize("case", CASES if BIG else ["chain", "matching"])
def test_projections_and_gradients(case, device):
    assert_same(*inputs(case), device)


@pytest.mark.skipif(not BIG, reason="slow in the interpreter")
@pytest.mark.parametrize("case", ["chain", "binary tree"])
def test_starts_change_the_work_and_not_the_answer(case, device):
    make, scores, sizes = inputs(case)
    cold = assert_same(make, scores, sizes, device)
    warm = assert_same(make, scores, sizes, device, warm_start=lambda s: make(*sizes, validate=False).sparsemap_solution(s))
    assert (warm.oracle_calls <= cold.oracle_calls).all()
    assert_same(make, scores, sizes, device, warm_start=torch.ones_like)
    other = make(*(size.flip(0) for size in sizes), validate=False)  # structures of other sizes are none of these
    assert_same(make, scores, sizes, device, warm_start=lambda s: other.argmax(torch.zeros_like(s)))


@pytest.mark.parametrize("room", [64, 2])
def test_a_structure_with_only_an_argmax(device, monkeypatch, room):
    """A product of simplices, whose projection has a closed form; with room for all structures, or room that must grow."""
    monkeypatch.setattr(cuda_batched, "_ROOM", room)
    monkeypatch.setattr(cuda_batched, "_CHUNK", 2)
    scores = 0.2 * torch.randn(3, 2, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    scores[0, 0, 1] = -torch.inf
    found = assert_same(Pick, scores, (), device)
    assert_close(found.mu.detach().cpu(), pb.Categorical().sparsemap(scores))
    assert found.weights.shape[-1] > 4
    again = assert_same(Pick, scores, (), device, warm_start=lambda s: Pick().sparsemap_solution(s))
    assert (again.oracle_calls < found.oracle_calls).all()


def test_bad_examples_and_their_neighbours(device):
    scores = torch.zeros(4, 1, 2, 2, dtype=torch.float64)
    scores[1, 0, 0, 0], scores[2, 0] = torch.nan, -torch.inf
    with backend("cuda"):
        mu = pb.LinearChain(validate=False).sparsemap(scores.to(device)).cpu()
        with pytest.raises(ValueError, match=r"sequence 1 .* NaN"):
            pb.LinearChain(validate=True).sparsemap(scores.to(device))
    assert mu[[1, 2]].isnan().all()
    assert_close(mu[0], mu[3])
    assert_close(mu[0, 0, 0], torch.full((2,), 0.5, dtype=torch.float64))


def test_what_is_no_argmax_is_an_error(device):
    class Worst(Pick):
        def argmax(self, scores):
            return super().argmax(-scores)

    class Half(Pick):
        def argmax(self, scores):
            return 0.5 * super().argmax(scores)

    scores = torch.randn(2, 2, 3, generator=torch.Generator().manual_seed(0)).to(device)
    with backend("cuda"), pytest.raises(ValueError, match="zeros and ones"):
        Half().sparsemap(scores)
    start = pb.Categorical().argmax(scores)
    with backend("cuda"), pytest.raises(ValueError, match="not the best structure"):
        Worst().sparsemap(scores, warm_start=start)


def test_a_limit_is_reported(device):
    scores = 0.01 * torch.randn(1, 3, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64).to(device)
    with backend("cuda"), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        solution = Pick().sparsemap_solution(scores, max_iterations=2)
    assert [x.category for x in caught] == [NotConverged]
    assert solution.oracle_calls.tolist() == [2]
    assert not solution.converged.any()
    assert solution.gap[0] > 0.1


def test_in_a_cuda_graph(gpu):
    """No wait for the host: a fixed number of iterations."""
    scores = torch.randn(4, 6, 3, 3, generator=torch.Generator().manual_seed(0))
    chain, leaf = pb.LinearChain(), scores.to(gpu)
    expected = chain.sparsemap(leaf)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        captured = chain.sparsemap(leaf, max_iterations=64)
    leaf.copy_(scores.flip(0))
    graph.replay()
    torch.cuda.synchronize()
    assert_close(captured.flip(0), expected, atol=1e-6, rtol=0)
    pairs = scores[:, :3, :, 0].to(gpu)
    with pytest.raises(RuntimeError, match="matchings are solved on the CPU"), torch.cuda.graph(torch.cuda.CUDAGraph()):
        pb.Matching().sparsemap(pairs)
