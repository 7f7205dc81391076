"""The k best structures, against enumeration, for every structure on the reference and the compiled backend."""

from __future__ import annotations

import copy
import pickle

import pytest
import torch

import pullback as pb
from cases import Entry
from each import each
from oracles import exact, poisoned


def _expected(entry: Entry, scores: torch.Tensor, example: int) -> tuple[torch.Tensor, torch.Tensor]:
    """All structures that may be used, and their scores, best first."""
    z, value, _ = exact(entry, scores.double(), example)
    order = value.argsort(descending=True)
    order = order[value[order] > -torch.inf]
    return z[order], value[order]


@pytest.mark.parametrize("k", [1, 2])
def test_structures_are_read_in_compiled_code(k):
    torch._dynamo.reset()
    scores, structure = torch.randn(3, 4), pb.Subset(2)
    compiled = torch.compile(lambda s: structure.topk(s, k).structures, fullgraph=True, backend="eager")
    assert torch.equal(compiled(scores), structure.topk(scores, k).structures)


@pytest.mark.parametrize("k", [1, 2])
def test_results_go_to_other_processes(k):
    found = pb.Subset(2).topk(torch.randn(3, 4), k)
    for other in (pickle.loads(pickle.dumps(found)), copy.deepcopy(found)):
        assert torch.equal(other.structures, found.structures)
        assert torch.equal(other.scores, found.scores)


@each("k", [1, 2, 7, 150])
@pytest.mark.parametrize("kind", ["normal", "forbidden", "large", "masked"])
def test_against_enumeration(entry, kind, k):
    scores = entry.scores(scale=1e6 if kind == "large" else 1.0)
    chosen = torch.rand(scores.shape, generator=torch.Generator().manual_seed(3)) < 0.1
    scores = torch.where(chosen & (kind in ("forbidden", "masked")), -1e9 if kind == "masked" else -torch.inf, scores)
    if any(len(_expected(entry, scores, i)[1]) == 0 for i in range(len(entry.sizes))):
        pytest.skip("no structure")
    found = entry.structure().topk(poisoned(entry, scores), k)
    assert found.structures.shape == (k, *scores.shape)
    assert found.scores.shape == (k, len(entry.sizes))
    for example in range(len(entry.sizes)):
        z, value = _expected(entry, scores, example)
        kept = min(k, len(value))
        torch.testing.assert_close(found.scores[:kept, example], value[:kept])
        assert (found.scores[kept:, example] == -torch.inf).all()
        assert not found.structures[kept:, example].any()
        chosen = found.structures[:kept, example]
        flat = chosen.flatten(1)
        assert len(flat.unique(dim=0)) == kept, "a structure twice"
        own = torch.where(flat > 0, scores[example].flatten(), 0.0).sum(1) + entry.own(chosen)
        torch.testing.assert_close(own, value[:kept])
        assert (flat[:, None] == z.flatten(1)).all(2).any(1).all(), "not a structure"


def test_the_first_is_the_argmax_and_ties_are_structures(entry):
    for seed in range(3):
        scores = entry.scores(seed=seed)
        found = entry.structure().topk(scores, 4)
        assert torch.equal(found.structures[0], entry.structure().argmax(scores))
        assert torch.equal(entry.structure().topk(scores, 1).structures, found.structures[:1])
        tied = scores.round()
        found = entry.structure().topk(tied, 6)
        if entry.one_rule:
            assert torch.equal(found.structures[0], entry.structure().argmax(tied))
        assert (found.scores.diff(dim=0) <= 1e-9)[found.scores[1:] > -torch.inf].all()


def test_scores_are_differentiable(entry):
    """The gradient of a score is its structure."""
    leaf = entry.scores().requires_grad_()
    found = entry.structure().topk(leaf, 3)
    torch.testing.assert_close(found.scores.detach(), entry.structure().topk(leaf.detach(), 3).scores)
    for rank in range(3):
        real = found.scores[rank] > -torch.inf
        if real.any():
            (slope,) = torch.autograd.grad(found.scores[rank][real].sum(), leaf, retain_graph=True)
            torch.testing.assert_close(slope, found.structures[rank])
    direction = entry.scores(seed=4)
    _, along = torch.func.jvp(lambda s: entry.structure().topk(s, 2).scores[0], (leaf.detach(),), (direction,))
    torch.testing.assert_close(along, (found.structures[0] * direction).flatten(1).sum(1))


def test_layouts(entry):
    structure, scores = entry.structure(), entry.scores()
    alone = structure.topk(scores, 3)
    several = structure.topk(torch.stack([scores, -scores]), 3)
    assert torch.equal(several.structures[:, 0], alone.structures)
    assert torch.equal(several.structures[:, 1], structure.topk(-scores, 3).structures)
    assert several.scores.shape == (3, 2, len(entry.sizes))
    half = structure.topk(scores.half(), 3)
    assert half.structures.dtype == half.scores.dtype == entry.result(torch.float16)
    assert structure.topk(scores.float(), 3).structures.dtype == torch.float32
    empty = entry.structure(slice(0, 0)).topk(scores[:0], 3)
    assert empty.structures.shape == (3, 0, *entry.parts)
    assert empty.scores.shape == (3, 0)
    mapped = torch.vmap(lambda s: structure.topk(s, 3).structures)(torch.stack([scores, -scores]))
    assert torch.equal(mapped, several.structures.movedim(1, 0))
    one, *_ = structure.topk(torch.stack([scores, scores], -1)[..., 0], 3)
    assert torch.equal(one, alone.structures)


def test_bad_examples_are_named_or_nan(entry):
    scores = entry.scores()
    scores[0] = torch.nan
    with pytest.raises(ValueError, match=r"0 of the batch|scores\[0\]"):
        entry.structure(validate=True).topk(scores, 2)
    found = entry.structure(validate=False).topk(scores, 2)
    assert found.structures[:, 0].isnan().all()
    assert found.scores[:, 0].isnan().all()
    torch.testing.assert_close(found.structures[:, 1:], entry.structure().topk(entry.scores(), 2).structures[:, 1:])


@each("k", [0, -1, 1.5, True, None])
def test_a_number_that_cannot_be(entry, k):
    with pytest.raises(ValueError, match=r"k is .*; it must be an integer of at least 1"):
        entry.structure().topk(entry.scores(), k)


class _Pairs(pb.Structure):
    """At most two of n items."""

    def argmax(self, scores):
        best = scores.topk(2, dim=-1)
        return torch.zeros_like(scores).scatter(-1, best.indices, (best.values > 0).to(scores.dtype))


class _Shortened(_Pairs):
    """The same of the first `lengths` items."""

    def __init__(self, lengths):
        self.lengths = lengths

    def argmax(self, scores):
        return super().argmax(torch.where(self.allowed(scores), scores, -torch.inf))

    def allowed(self, scores):
        return torch.arange(scores.shape[-1]) < self.lengths[..., None]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("structure", [_Pairs(), _Shortened(torch.tensor([5, 3, 1]))], ids=["one for all", "lengths"])
def test_a_structure_with_an_argmax_alone(structure, dtype):
    scores = torch.randn(3, 5, generator=torch.Generator().manual_seed(1)).to(dtype)
    scores[0, 1] = -1e9
    everything = torch.cartesian_prod(*[torch.arange(2.0)] * 5)
    everything = everything[everything.sum(1) <= 2].to(dtype)
    k = len(everything) + 2
    found = structure.topk(scores, k)
    for example in range(3):
        lengths = getattr(structure, "lengths", torch.tensor([5, 5, 5]))
        own = everything[(everything[:, lengths[example] :] == 0).all(1)]
        value = (own.double() @ scores[example].double()).sort(descending=True).values
        torch.testing.assert_close(found.scores[: len(own), example].double(), value, rtol=1e-5, atol=1e-5)
        assert (found.scores[len(own) :, example] == -torch.inf).all()
        assert len(found.structures[: len(own), example].unique(dim=0)) == len(own)
    assert torch.equal(structure.topk(scores, 1).structures[0], structure.argmax(scores))
