"""The best of all trees: nested cycles, ties, and a single root, against trying everything."""

import numba
import numpy as np
import pytest
import torch

from oracles import is_tree
from pullback.inference.chu_liu_edmonds import cpu, reference
from pullback.inference.chu_liu_edmonds.kernels import best_heads, bytes_for, workspace
from pullback.inference.front import checks
from pullback.inference.front.checks import INFEASIBLE, OK

MULTIROOT = pytest.mark.parametrize("multiroot", [True, False], ids=["multiroot", "singleroot"])


def nested_cycles(n, generator):
    """Words prefer those that share more leading bits of their number, so that cycles form within cycles."""
    words = torch.arange(n)
    closeness = -torch.log2((words[:, None] ^ words[None, :]).double() + 1).ceil()
    closeness[words, words] = -10.0
    return 10 * closeness + torch.rand(n, n, generator=generator, dtype=torch.float64)


def draw(kind, n, seed):
    generator = torch.Generator().manual_seed(seed)
    if kind == "nested":
        return nested_cycles(n, generator)
    scores = torch.randn(n, n, generator=generator, dtype=torch.float64)
    if kind == "tied":
        return scores.round()
    if kind == "sparse":
        out = torch.rand(n, n, generator=generator) < 0.8
        return scores.masked_fill(out & ~torch.eye(n, dtype=torch.bool).roll(1, 1), -torch.inf)
    return scores


@MULTIROOT
@pytest.mark.parametrize("kind", ["normal", "nested", "tied", "sparse"])
@pytest.mark.parametrize("n", [2, 7, 16])
def test_as_good_as_contracting_one_cycle_at_a_time(kind, n, multiroot):
    scores = torch.stack([draw(kind, n, seed) for seed in range(6)])
    if kind == "sparse":
        scores[:, 0, 0] = 0.0
    lengths = torch.full((6,), n)
    found, expected = (module.argmax(scores, lengths, multiroot, True) for module in (cpu, reference))
    for z, best, s in zip(found, expected, scores, strict=True):
        assert is_tree(z.argmax(0).tolist(), projective=False, multiroot=multiroot)
        assert s[z.bool()].sum() == pytest.approx(s[best.bool()].sum().item(), abs=1e-9)


def test_a_single_root_is_not_the_best_of_several_repaired():
    """The best tree with several roots has 0 and 2 below the root; moving either below the other is not the best."""
    scores = torch.tensor([[5.0, 0.0, -9.0], [4.0, 1.5, 4.0], [-9.0, 0.0, 5.0]])
    multiple = cpu.argmax(scores[None], torch.tensor([3]), True, True)[0]
    single = cpu.argmax(scores[None], torch.tensor([3]), False, True)[0]
    assert multiple.diagonal().tolist() == [1, 1, 1]
    assert single.argmax(0).tolist() == [1, 1, 1]


@MULTIROOT
def test_arcs_that_leave_no_tree(multiroot):
    """A closed cycle, and two words that each need the root."""
    closed = torch.zeros(1, 4, 4)
    closed[0, :, :2] = -torch.inf
    closed[0, 0, 1] = closed[0, 1, 0] = 0.0
    needy = torch.zeros(1, 4, 4)
    needy[0, :, :2] = -torch.inf
    needy[0, 0, 0] = needy[0, 1, 1] = 0.0
    for module in (cpu, reference):
        with pytest.raises(checks.BadValuesError):
            module.argmax(closed, torch.tensor([4]), multiroot, True)
        if multiroot:
            assert module.argmax(needy, torch.tensor([4]), True, True)[0].diagonal()[:2].tolist() == [1, 1]
        else:
            with pytest.raises(checks.BadValuesError):
                module.argmax(needy, torch.tensor([4]), False, True)


def test_compiled_callers_share_a_workspace():
    """Other kernels call `best_heads` sentence after sentence: nothing of one may show in the next."""

    @numba.njit
    def all_heads(scores, lengths, multiroot, room, heads, status):
        work, _ = workspace(room, scores.shape[-1])
        for b in range(len(lengths)):
            status[b] = best_heads(scores[b], lengths[b], multiroot, work, heads[b])

    scores = torch.stack([draw(kind, 9, seed) for seed in range(4) for kind in ("nested", "sparse", "normal")])
    lengths = torch.tensor([9, 3, 0] * 4)
    for multiroot in (True, False):
        heads, status = np.full((12, 9), -1, np.int16), np.full(12, -1)
        all_heads(scores.numpy(), lengths.numpy(), multiroot, np.empty(bytes_for(9), np.uint8), heads, status)
        assert set(status) <= {OK, INFEASIBLE}
        for b in np.flatnonzero(status == OK):
            n = lengths[b]
            alone = cpu.argmax(scores[b : b + 1, :n, :n], lengths[b : b + 1], multiroot, True)[0]
            assert heads[b, :n].tolist() == (alone.argmax(0).tolist() if n else [])
            assert (heads[b, n:] == -1).all()
