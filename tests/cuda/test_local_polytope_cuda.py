"""The kernel of the projection onto the local polytope: no corner improves on its result, and padding changes nothing."""

import itertools

import pytest
import torch

from pullback.inference._triton.support import interpreting
from pullback.inference.trees import local_polytope_cuda

if not torch.cuda.is_available() and not interpreting():
    pytest.skip("needs a GPU, or Triton's interpreter: test_interpreter.py runs it there", allow_module_level=True)


def corners(n, multiroot):
    """One head per word, and a root: trees or not."""
    heads = torch.tensor(list(itertools.product(range(n), repeat=n)))
    roots = (heads == torch.arange(n)).sum(-1)
    return torch.nn.functional.one_hot(heads[roots >= 1 if multiroot else roots == 1], n).mT.double()


@pytest.mark.parametrize("multiroot", [True, False])
@pytest.mark.parametrize("n", [1, 3, 4])
def test_no_corner_improves_on_it(n, multiroot, device):
    scores = torch.randn(8, n, n, dtype=torch.float64, generator=torch.Generator().manual_seed(n))
    scores.diagonal(dim1=-2, dim2=-1).sub_(torch.arange(8.0)[:, None])  # the root, from no constraint to a strong one
    padded = torch.full((8, n + 2, n + 2), torch.nan, dtype=torch.float64)
    padded[:, :n, :n] = scores
    found = local_polytope_cuda.project(padded.to(device), (~padded.isnan()).to(device), multiroot).cpu()
    mu, z = found[:, :n, :n], corners(n, multiroot)
    gap = torch.einsum("bij,sij->bs", scores - mu, z).amax(1) - ((scores - mu) * mu).sum((-1, -2))
    assert (gap <= 1e-12).all()
    assert (mu >= 0).all()
    torch.testing.assert_close(mu.sum(-2), torch.ones(8, n, dtype=torch.float64))
    roots = mu.diagonal(dim1=-2, dim2=-1).sum(-1)
    assert (roots >= 1 - 1e-12).all()
    assert multiroot or (roots <= 1 + 1e-12).all()
    assert found.sum() == mu.sum()


def test_a_sentence_that_is_not_a_number_is_nan(device):
    scores = torch.zeros(2, 3, 3, dtype=torch.float64)
    scores[0, 1, 2] = torch.nan
    found = local_polytope_cuda.project(scores.to(device), torch.ones(2, 3, 3, dtype=torch.bool, device=device), True).cpu()
    assert found[0].isnan().all()
    assert not found[1].isnan().any()
