"""PyTorch's internals and the public way beside them give the same results, and the public way says what it lacks."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
import torch

import pullback as pb
from pullback.inference.torch_seam import derivatives, transforms

RUN = """
import torch, pullback as pb
from pullback.inference.torch_seam import derivatives
assert derivatives.internals_work() is {internals}
scores = torch.randn(2, 4, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0)).requires_grad_()
tree, chain = pb.DependencyTree(torch.tensor([4, 2])), pb.LinearChain()
direction = torch.linspace(0, 1, 32, dtype=torch.float64).reshape(2, 4, 4)
found = [tree.argmax(scores)]
for structure, s in ((tree, scores), (chain, scores)):
    for operation in ("marginals", "log_partition", "entropy"):
        result = getattr(structure, operation)(s)
        weights = torch.linspace(0.5, 1.5, result.numel(), dtype=torch.float64).reshape(result.shape)
        found += [result.detach(), *torch.autograd.grad((result * weights).sum(), s)]
found.append(pb.Categorical().sparsemap(scores).detach())
(slope,) = torch.autograd.grad(tree.marginals(scores).square().sum(), scores, create_graph=True)
try:
    slope.sum().backward()
    raise AssertionError("a second derivative")
except NotImplementedError:
    pass
found.append(torch.vmap(tree.marginals)(scores.detach().expand(3, 2, 4, 4)))
try:
    torch.func.jvp(tree.marginals, (scores.detach(),), (direction,))
    forward = "works"
except NotImplementedError as error:
    forward = str(error)
torch.save((found, forward), {path!r})
"""


def run(public: bool, path: str):
    environment = os.environ | {"PULLBACK_PUBLIC_TORCH": "1" if public else "0"}
    script = RUN.format(internals=not public, path=path)
    subprocess.run([sys.executable, "-c", script], check=True, env=environment, timeout=600)
    return torch.load(path)


def test_the_public_way_gives_the_same_results(tmp_path):
    quick, forward = run(False, str(tmp_path / "internals"))
    public, refused = run(True, str(tmp_path / "public"))
    assert forward == "works"
    assert "forward-mode derivatives are not available" in refused
    for a, b in zip(quick, public, strict=True):
        assert torch.equal(a, b)


def test_internals_that_are_gone_are_noticed(monkeypatch):
    monkeypatch.delattr(torch._C, "_AutoDispatchBelowAutograd")
    monkeypatch.setattr(derivatives, "_works", None)
    assert not derivatives.internals_work()


@pytest.mark.parametrize("known", [True, False], ids=["internals", "public"])
def test_mapped_tensors_are_known_as_such(monkeypatch, known):
    if not known:
        monkeypatch.setattr(torch._C, "_functorch", None)
    seen = []

    def look(x):
        seen.append(transforms.is_mapped(x))
        return x

    x = torch.ones(2, 3)
    assert not transforms.is_mapped(x)
    if known:
        torch.vmap(look)(x)
        assert seen == [True]


def test_scores_are_flattened_once(monkeypatch):
    """Also in a chain of operations, until the scores or the lengths change."""
    scores, lengths = torch.randn(2, 3, 3, 3), torch.tensor([3, 2, 1])
    tree = pb.DependencyTree(lengths)
    flattened = []
    flatten = type(tree.family.layout).flatten

    def counted(*args):
        flattened.append(1)
        return flatten(*args)

    monkeypatch.setattr(type(tree.family.layout), "flatten", counted)
    tree.argmax(scores)
    tree.marginals(scores)
    tree.log_partition(scores)
    tree.allowed(scores)
    assert len(flattened) == 1
    scores[0, 0, 0, 0] = torch.nan
    with pytest.raises(ValueError, match="NaN"):
        tree.argmax(scores)
    assert len(flattened) == 2
    scores[0, 0, 0, 0] = 0.0
    before = tree.argmax(scores)
    lengths[0] = 1
    assert not torch.equal(tree.argmax(scores), before)
    assert len(flattened) == 4


def test_scores_are_checked_once_where_that_takes_time():
    """By a `Categorical`, until they change. Other structures have kernels that meet bad values on their way."""
    scores, structure = torch.randn(2, 3), pb.Categorical()
    structure.argmax(scores)
    assert not structure._validates(structure._flat(scores))
    scores[0, 0] = torch.nan
    with pytest.raises(ValueError, match="NaN"):
        structure.argmax(scores)


def test_what_is_remembered_keeps_nothing_alive():
    import gc
    import weakref

    tree, scores = pb.DependencyTree(), torch.randn(2, 3, 3)
    tree.argmax(scores)
    gone = weakref.ref(scores)
    del scores
    gc.collect()
    assert gone() is None
