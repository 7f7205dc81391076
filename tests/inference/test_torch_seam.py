"""PyTorch's internals and the public way beside them give the same results, and the public way says what it lacks."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch

import pullback as pb
from pullback.inference._torch import derivatives, transforms

GONE = """
import torch
class Other:  # torch._C without what is private to PyTorch and used here
    gone = {"_are_functorch_transforms_active", "_len_torch_dispatch_stack", "_is_tracing", "_any_requires_grad", "_autograd",
            "_AutoDispatchBelowAutograd", "_functorch", "_len_torch_function_stack"}
    def __getattr__(self, name):
        if name in self.gone:
            raise AttributeError(name)
        return getattr(real, name)
real, torch._C = torch._C, Other()
import pullback.inference._torch.derivatives, pullback
torch._C = real
"""
RUN = """
import torch, pullback as pb
from pullback.inference._torch import derivatives
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
cotangents = torch.stack([torch.ones(2, 4, 4), torch.eye(4).expand(2, 4, 4)]).double()
found += torch.autograd.grad(tree.marginals(scores), scores, cotangents, is_grads_batched=True)
found.append(torch.vmap(tree.marginals)(scores.detach().expand(3, 2, 4, 4)))
try:
    torch.func.jvp(tree.marginals, (scores.detach(),), (direction,))
    forward = "works"
except NotImplementedError as error:
    forward = str(error)
torch.save((found, forward), {path!r})
"""


def run(public: bool, path: str):
    script = RUN.format(internals=not public, path=path)
    if public:
        subprocess.run([sys.executable, "-c", GONE + script], check=True, timeout=600)
    else:
        exec(script, {})
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


def test_transforms_that_an_operator_does_not_work_in_are_noticed(monkeypatch):
    """As in PyTorch 2.14, whose `Function` takes transforms of torch.func to be all of them."""
    assert derivatives.internals_work()
    monkeypatch.setattr(torch.autograd.function, "_SingleLevelFunction", torch.autograd.Function)
    monkeypatch.setattr(derivatives, "_works", None)
    assert not derivatives.internals_work()
    assert not derivatives.transforming()


def test_internals_can_be_left_out(monkeypatch):
    monkeypatch.setenv("PULLBACK_PUBLIC_TORCH", "1")
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


def test_changes_of_scores_and_lengths_count():
    scores, lengths = torch.randn(2, 3, 3, 3), torch.tensor([3, 2, 1])
    for structure in (pb.DependencyTree(lengths), pb.Categorical()):
        structure.argmax(scores)
        scores[0, 0, 0, 0] = torch.nan
        with pytest.raises(ValueError, match="NaN"):
            structure.argmax(scores)
        scores[0, 0, 0, 0] = 0.0
    tree = pb.DependencyTree(lengths)
    before = tree.argmax(scores)
    lengths[0] = 1
    assert not torch.equal(tree.argmax(scores), before)


def test_a_call_keeps_no_scores_alive():
    import gc
    import weakref

    tree, scores = pb.DependencyTree(), torch.randn(2, 3, 3)
    tree.argmax(scores)
    gone = weakref.ref(scores)
    del scores
    gc.collect()
    assert gone() is None


def test_internals_work_whatever_the_default_device(monkeypatch):
    monkeypatch.setattr(derivatives, "_works", None)
    with torch.device("meta"):
        assert derivatives.internals_work()


def test_nodes_whose_private_class_pytorch_lacks_stay_as_they_are():
    class Node:
        """As a function of autograd in a PyTorch that keeps its nodes elsewhere."""

        backward = None

    before = dict(vars(Node))
    assert derivatives.straight(Node) is Node
    assert dict(vars(Node)) == before
