"""A user's recursion: what it may do, what it gives, and what its mistakes are called.

The promise tests run for two of them, too (`cases.py`).
"""

from __future__ import annotations

import itertools
import pickle

import pytest
import torch

import pullback as pb
from cases import Brackets, Hops
from pullback.inference.eisner import reference as eisner
from pullback.inference.front.family import backend


class Grid(pb.DynamicProgram):
    """Paths that go right or down, from the first cell to the last, without lengths."""

    event_dims = 2

    def value(self, scores, combine):
        batch, n, m = scores.shape
        chart = scores.new_full((batch, n + 1, m + 1), -torch.inf)
        for i, j in itertools.product(range(n), range(m)):
            before = torch.stack([chart[:, i, j + 1], chart[:, i + 1, j]], -1)
            chart[:, i + 1, j + 1] = scores[:, i, j] + (0.0 if i == j == 0 else combine(before, -1))
        return chart[:, n, m]


def _paths(n, m):
    for downs in itertools.combinations(range(n + m - 2), n - 1):
        i = j = 0
        z = torch.zeros(n, m)
        z[0, 0] = 1
        for step in range(n + m - 2):
            i, j = (i + 1, j) if step in downs else (i, j + 1)
            z[i, j] = 1
        yield z


class Rolled(pb.DynamicProgram):
    """The same recursion by other operations: anti-diagonals of a skewed table."""

    event_dims = 2

    def value(self, scores, combine):
        n, m = scores.shape[1:]
        wide = torch.nn.functional.pad(scores, (0, n), value=-torch.inf)
        skewed = torch.cat([wide[:, i : i + 1].roll(i, 2) for i in range(n)], 1).masked_fill(torch.zeros(1) > 1, -torch.inf)
        line = torch.where(torch.arange(n) == 0, skewed[:, :, 0], -torch.inf)
        for d in range(1, n + m - 1):
            down = torch.cat([line.new_full((len(scores), 1), -torch.inf), line[:, :-1]], 1)
            line = skewed.select(2, d) + combine(torch.stack((down, line)).movedim(0, -1), 2)
        return line.gather(1, torch.full((len(scores), 1), n - 1)).squeeze(1)


@pytest.mark.parametrize("structure", [Grid(), Rolled()], ids=["chart", "diagonals"])
@pytest.mark.parametrize("name", ["cpu", "reference"])
def test_paths_on_a_grid(structure, name):
    scores = torch.randn(3, 4, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    everything = torch.stack(list(_paths(4, 5))).double()
    with backend(name):
        value = (everything.flatten(1) @ scores.flatten(1).T).T
        p = value.softmax(1)
        torch.testing.assert_close(structure.log_partition(scores), value.logsumexp(1))
        torch.testing.assert_close(structure.marginals(scores), torch.einsum("bs,sij->bij", p, everything))
        torch.testing.assert_close(structure.entropy(scores), -(p * p.log()).sum(1))
        assert torch.equal(structure.argmax(scores), everything[value.argmax(1)])
        torch.testing.assert_close(structure.topk(scores, 40).scores[:35].T, value.sort(dim=1, descending=True).values)
        assert (structure.sample(scores).flatten(1).double()[:, None] == everything.flatten(1)).all(2).any(1).all()
    listed = structure.enumerate(4, 5)
    assert len(listed) == len(everything)
    assert len(torch.cat([listed, everything]).flatten(1).unique(dim=0)) == len(everything)
    structure.check(4, 5)


def test_sparsemap_and_estimators():
    scores = torch.randn(2, 3, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(2)).requires_grad_()
    solution = Grid().sparsemap_solution(scores)
    assert solution.converged.all()
    assert (solution.gap < 1e-6).all()
    for estimator in (pb.SPIGOT(0.1), pb.Marginals(), pb.IMLE(1.0), pb.SampledSTE(), pb.ReinMax()):
        losses = estimator.objective(Grid(), scores, lambda z: (z * scores.detach().sin()).flatten(1).sum(1))
        (slope,) = torch.autograd.grad(losses.sum(), scores)
        assert slope.isfinite().all()


def test_the_recursion_of_trees_as_it_stands():
    """Eisner's, with the derivations of `DependencyTree`."""

    class Trees(pb.DynamicProgram):
        event_dims = 2

        def value(self, scores, combine):
            n = scores.shape[1]
            return eisner.value(scores, torch.full((len(scores),), n), multiroot=True, combine=combine)

    scores = torch.randn(5, 7, 7, generator=torch.Generator().manual_seed(3))
    tree = pb.DependencyTree()
    assert torch.equal(Trees().argmax(scores), tree.argmax(scores))
    torch.testing.assert_close(Trees().marginals(scores), tree.marginals(scores))
    assert len(Trees().enumerate(4, 4)) == len(tree.enumerate(4))


def test_options_are_part_of_the_structure():
    class Skips(Hops):
        def __init__(self, longest, lengths=None):
            super().__init__(lengths)
            self.longest = longest

        def value(self, scores, combine):
            ends = [scores.new_zeros(len(scores))]
            for j in range(1, scores.shape[1] + 1):
                steps = range(1, min(self.longest, j) + 1)
                ends.append(combine(torch.stack([ends[j - w] + scores[:, j - w, w - 1] for w in steps], 1), 1))
            return torch.stack(ends, 1)

    assert len(Skips(1).enumerate(5, 3)) == 1
    assert len(Skips(3).enumerate(5, 3)) == 13
    assert Skips(2) == Skips(2) != Skips(3)
    assert hash(Skips(2)) == hash(Skips(2))
    assert Skips(2).family is Skips(2, torch.tensor([3])).family
    scores = torch.randn(2, 5, 2)
    lengths = torch.tensor([5, 2])
    assert torch.equal(Skips(2, lengths).argmax(scores), pb.Segmentation(lengths).argmax(scores[..., None])[..., 0])
    assert torch.equal(pickle.loads(pickle.dumps(Hops(lengths))).argmax(scores), Hops(lengths).argmax(scores))


def _program(value, dims=1):
    return type("Mine", (pb.DynamicProgram,), {"event_dims": dims, "value": lambda self, s, combine: value(s, combine)})()


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (lambda s, c: s.logsumexp(1), r"Mine\.value uses `logsumexp`, which cannot be traced: combine alternatives"),
        (lambda s, c: c(s * 2, 1), r"uses `(__)?mul(__)?`, which cannot be traced: only index"),
        (lambda s, c: c(s, 1) if s.sum() > 0 else s[:, 0], r"uses `__gt__`|uses `gt`"),
        (lambda s, c: c(s + 0.5, 1), r"uses the constant 0\.5; only scores, 0 and -inf"),
        (lambda s, c: s.new_zeros(1) + s[0, 0].item(), r"uses `item`"),
        (lambda s, c: c(s, 0), r"combines over dimension 0 of \[1, 3\]; the first dimension is the batch"),
        (lambda s, c: s, r"returns \[1, 3\] for scores \[1, 3\]; it must return \[B\], or \[B, n \+ 1\]"),
        (lambda s, c: 3.0, r"returns a float; it must return a tensor"),
        (lambda s, c: (s[:, :2] + s)[:, 0], r"must match|broadcast"),
        (lambda s, c: torch.cat([s, s[:, :1]], 1), r"uses the score at \[0\] for length 0, of which it is"),
    ],
    ids=["logsumexp", "times", "condition", "constant", "item", "batch", "shape", "number", "shapes", "padding"],
)  # fmt: skip
def test_what_cannot_be_traced_is_named(value, message):
    with pytest.raises((NotImplementedError, TypeError, ValueError, RuntimeError), match=message):
        _program(value).argmax(torch.zeros(2, 3))


def test_a_cycle_is_an_error():
    def endless(s, c):
        return endless(s, c) + s[:, 0]

    with pytest.raises(ValueError, match="calls itself without end: a recursion must not have cycles"):
        _program(endless).argmax(torch.zeros(2, 3))


def test_check_finds_parts_used_twice_and_ambiguity():
    with pytest.raises(ValueError, match=r"uses the score at \[0\] twice in one structure"):
        _program(lambda s, c: s[:, 0] + c(s, 1)).check(3)
    with pytest.raises(ValueError, match=r"two derivations for the structure with the parts \[\[1\]\]"):
        _program(lambda s, c: c(torch.cat([s, s[:, 1:2]], 1), 1)).check(3)
    with pytest.raises(ValueError, match=r"more than 100000 derivations for scores \[14, 14\]"):
        Brackets().check(14, 14)
    Brackets().check(5, 5)
    Hops().check(6, 2)


class Choice(pb.DynamicProgram):
    """One of the parts, or one of none, or all of none."""

    event_dims = 1

    def value(self, scores, combine):
        return combine(torch.stack([combine(scores, 1), combine(scores[:, :0], 1), scores[:, :0].sum(1)], 1), 1)


@pytest.mark.parametrize("name", ["cpu", "reference"])
@pytest.mark.parametrize("n", [0, 3])
def test_combinations_of_nothing_are_impossible_and_its_sum_is_zero(name, n):
    scores = torch.linspace(-1.0, 1.0, 2 * n).reshape(2, n)
    with backend(name):
        torch.testing.assert_close(Choice().log_partition(scores), scores.exp().sum(1).add(1.0).log())
        assert Choice().argmax(scores).sum() == min(n, 1)
        assert len(Choice().enumerate(n)) == n + 1


def test_lengths_need_a_value_for_each():
    with pytest.raises(ValueError, match=r"value returns \[B\], so it takes no lengths"):
        Grid(lengths=[3]).argmax(torch.zeros(1, 3, 3))


def test_tables_are_kept_and_few():
    """A training loop makes new structures, which share one trace per shape."""
    calls = []

    class Counted(Hops):
        def value(self, scores, combine):
            calls.append(scores.shape)
            return super().value(scores, combine)

    for lengths in ([5, 2], [4, 4], [1, 0]):
        Counted(torch.tensor(lengths)).marginals(torch.randn(2, 5, 2))
    assert len(calls) == 1
    Counted().marginals(torch.randn(2, 6, 2))
    assert len(calls) == 2


def test_compiled():
    scores = torch.randn(2, 5, 2)
    structure = Hops(torch.tensor([5, 3]))
    compiled = torch.compile(lambda s: structure.marginals(s), backend="eager", fullgraph=True)
    torch.testing.assert_close(compiled(scores), structure.marginals(scores))
