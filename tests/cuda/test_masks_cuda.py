"""Trees on a GPU with arcs forbidden, of every kind of mask: the trees and projections of the CPU.

Where all sums of an item are -inf, no split of it was ever chosen; what stands in its place must not spoil the others.
"""

from __future__ import annotations

import pytest
import torch
from torch.testing import assert_close

import pullback as pb
from pullback.inference._triton.support import interpreting
from pullback.inference.eisner import cuda
from pullback.inference.front.family import backend
from pullback.inference.sparsemap import cuda as sparsemap
from pullback.inference.sparsemap import cuda_projective, cuda_shared

if not torch.cuda.is_available() and not interpreting():
    pytest.skip("needs a GPU, or Triton's interpreter: test_interpreter.py runs it there", allow_module_level=True)

SIZES = [3, 5] if interpreting() else [3, 6, 14, 25, 31, 32, 40, 50, 51, 63, 70]
COUNT = 4 if interpreting() else 100
PROJECTED = slice(1, 2) if interpreting() else slice(None)  # sentences, of at most PROJECTED_WORDS words
PROJECTED_WORDS = 3 if interpreting() else 70
MASKS = ["heads", "words", "arcs", "block", "all but one tree", "all roots but one"]


@pytest.fixture(params=["proven", "unproven"])
def kernels(request, monkeypatch):
    """The kernels that serve, and those that serve on request only."""
    monkeypatch.setenv("PULLBACK_UNPROVEN_KERNELS", str(int(request.param == "unproven")))


def forbid(kind: str, scores: torch.Tensor, multiroot: bool, generator: torch.Generator) -> torch.Tensor:
    """Scores with some arcs at -inf, of which a random tree has none."""
    size, n, _ = scores.shape
    noise = torch.randn(scores.shape, generator=generator)
    kept = pb.DependencyTree(multiroot=multiroot).argmax(noise).bool()
    share = torch.rand(size, n, n, generator=generator)
    place = torch.arange(n)
    forbidden = {
        "heads": share[:, :, :1].expand(-1, -1, n) < 0.75,
        "words": share[:, :1].expand(-1, n, -1) < 0.5,
        "arcs": share < 0.4,
        "block": (share[:, :1, :1] * n < place[:, None]) & (place < n - n // 3),
        "all but one tree": torch.ones(size, n, n, dtype=torch.bool),
        "all roots but one": ((place[:, None] == place) & (place > 0)).expand(size, n, n),
    }[kind]
    if kind == "heads":  # a quarter of the words may be heads; the first one, and its own root, always
        return scores.masked_fill(forbidden & (place > 0)[:, None], -torch.inf)
    return scores.masked_fill(forbidden & ~kept, -torch.inf)


@pytest.mark.usefixtures("kernels")
@pytest.mark.parametrize("multiroot", [True, False], ids=["multiroot", "singleroot"])
@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("kind", MASKS)
def test_forbidden_arcs(device, kind, n, multiroot):
    generator = torch.Generator().manual_seed(n)
    scores = forbid(kind, torch.randn(COUNT, n, n, generator=generator), multiroot, generator)
    tree = pb.DependencyTree(multiroot=multiroot, validate=False)
    found = tree.argmax(scores.to(device)).cpu()
    with backend("cpu"):
        assert torch.equal(found, tree.argmax(scores))
    if n <= PROJECTED_WORDS:
        scores = scores[PROJECTED]
        projected = tree.sparsemap(scores.to(device)).cpu()
        with backend("cpu"):
            assert_close(projected, tree.sparsemap(scores), atol=2e-6, rtol=0)


@pytest.mark.usefixtures("kernels")
@pytest.mark.parametrize("value", [torch.finfo(torch.float32).max, torch.finfo(torch.float32).min])
def test_sums_that_overflow_end_in_some_tree(device, value):
    """No index is read from a sum that is infinite or NaN: the result is a tree, or NaN."""
    generator = torch.Generator().manual_seed(0)
    scores = torch.where(torch.rand(4, 6, 6, generator=generator) < 0.5, value, -torch.inf)
    scores[:2] = value
    z = pb.DependencyTree(validate=False).argmax(scores.to(device)).cpu()
    trees = z[~z.isnan().flatten(1).any(1)]
    assert ((trees == 0) | (trees == 1)).all()
    assert (trees.sum(1) == 1).all()


def test_which_kernel_serves(device, monkeypatch):
    """Charts in shared memory have not been right on a GPU since they changed: only on request."""
    started, launch = [], cuda.launch

    def recorded(kernel, *args, **options):
        started.append(kernel.__name__)
        launch(kernel, *args, **options)

    monkeypatch.setattr(cuda, "launch", recorded)
    monkeypatch.delenv("PULLBACK_UNPROVEN_KERNELS", raising=False)
    tree, scores = pb.DependencyTree(validate=False), torch.randn(1, 3, 3, device=device)
    tree.argmax(scores)
    assert sparsemap.oracle_for(3, projective=True).rough is cuda_projective.best_projective
    monkeypatch.setenv("PULLBACK_UNPROVEN_KERNELS", "1")
    tree.argmax(scores)
    assert sparsemap.oracle_for(3, projective=True).rough is cuda_shared.best_shared
    assert started == ["argmax", "short"]
