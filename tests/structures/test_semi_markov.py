"""Segmentations with transitions: values, and gradients in scores and transitions, by brute force over all segmentations."""

from __future__ import annotations

import copy
import itertools
import pickle

import pytest
import torch
from torch import Tensor

import pullback as pb
from pullback.inference.front.family import backend

LENGTHS = [4, 2, 1, 0, 3]
B, N, W, C = len(LENGTHS), 4, 3, 3


def _leaves(*batch: int, seed: int = 0) -> list[Tensor]:
    """Scores and transitions."""
    generator = torch.Generator().manual_seed(seed)
    shapes = (B, N, W, C), (*batch, C, C)
    return [torch.randn(shape, generator=generator, dtype=torch.float64).requires_grad_() for shape in shapes]


def _all(length: int) -> tuple[Tensor, Tensor]:
    """All segmentations of so many positions, `[S, N, W, C]`, and how often each has a pair of labels, `[S, C, C]`."""
    z = torch.nn.functional.pad(pb.Segmentation().enumerate(length, W, C), (0, 0, 0, 0, 0, N - length)).double()
    pairs = torch.zeros(len(z), C, C, dtype=torch.float64)
    for row, one in enumerate(z):
        labels = [label for _, _, label in one.nonzero().tolist()]
        for a, b in itertools.pairwise(labels):
            pairs[row, a, b] += 1
    return z, pairs


MEMBERS = [_all(length) for length in LENGTHS]


def _totals(scores: Tensor, transitions: Tensor) -> list[Tensor]:
    """The scores of all segmentations of each example."""
    found = []
    for b, (z, pairs) in enumerate(MEMBERS):
        own = transitions[b] if transitions.dim() == 3 else transitions
        found.append(torch.einsum("snwc,nwc->s", z, scores[b]) + torch.einsum("sab,ab->s", pairs, own))
    return found


def _gold() -> Tensor:
    return torch.stack([z[len(z) // 2] for z, _ in MEMBERS])


def _by_members(name: str, scores: Tensor, transitions: Tensor) -> Tensor:
    out = []
    totals, others = _totals(scores, transitions), _totals(scores.detach().sin(), transitions)
    for (z, _), x, y in zip(MEMBERS, totals, others, strict=True):
        p, log_p = x.softmax(0), x.log_softmax(0)
        if name == "log_partition":
            out.append(x.logsumexp(0))
        elif name == "marginals":
            out.append(torch.einsum("s,snwc->nwc", p, z))
        elif name == "entropy":
            out.append(-(p * log_p).sum())
        elif name == "log_prob":
            out.append(log_p[len(z) // 2])
        elif name == "kl":
            out.append((p * (log_p - y.log_softmax(0))).sum())
        elif name == "score":
            out.append(x[len(z) // 2])
        else:
            inside = (z[..., 1] == 0).flatten(1).all(1)
            out.append(x[inside].logsumexp(0) - x.logsumexp(0))
    return torch.stack(out)


OPERATIONS = {
    "log_partition": lambda s, x: s.log_partition(x),
    "marginals": lambda s, x: s.marginals(x),
    "entropy": lambda s, x: s.entropy(x),
    "log_prob": lambda s, x: s.log_prob(x, _gold()),
    "kl": lambda s, x: s.kl(x, x.detach().sin()),
    "score": lambda s, x: s.score(x, _gold()),
    "log_prob_within": lambda s, x: s.log_prob_within(x, (torch.arange(C) != 1).expand(N, W, C)),
}


@pytest.mark.parametrize("name_of_backend", ["cpu", "reference"])
@pytest.mark.parametrize("batch", [(), (B,)], ids=["shared", "one each"])
@pytest.mark.parametrize("name", OPERATIONS)
def test_values_and_gradients_of_scores_and_transitions(name: str, batch: tuple[int, ...], name_of_backend: str) -> None:
    """Reverse and forward mode."""
    leaves, tangents = _leaves(*batch), _leaves(*batch, seed=1)

    def ours(scores: Tensor, transitions: Tensor) -> Tensor:
        return OPERATIONS[name](pb.Segmentation(LENGTHS, transitions), scores)

    with backend(name_of_backend):
        found, expected = ours(*leaves), _by_members(name, *leaves)
        torch.testing.assert_close(found, expected)
        weight = torch.linspace(0.5, 1.5, found.numel(), dtype=torch.float64).reshape(found.shape)
        slopes = [torch.autograd.grad((x * weight).sum(), leaves) for x in (found, expected)]
        for a, b in zip(*slopes, strict=True):
            torch.testing.assert_close(a, b)
        plain, along = tuple(x.detach() for x in leaves), tuple(x.detach() for x in tangents)
        _, tangent = torch.func.jvp(ours, plain, along)
        slope = sum((x * y).sum() for x, y in zip(slopes[0], along, strict=True))
        torch.testing.assert_close((tangent * weight).sum(), slope)


@pytest.mark.parametrize("name", ["log_partition", "marginals", "entropy", "log_prob"])
def test_gradients_by_finite_differences(name: str) -> None:
    def run(scores: Tensor, transitions: Tensor) -> Tensor:
        return OPERATIONS[name](pb.Segmentation(LENGTHS, transitions), scores)

    assert torch.autograd.gradcheck(run, _leaves())


@pytest.mark.parametrize("name_of_backend", ["cpu", "reference"])
def test_best_and_drawn_structures(name_of_backend: str) -> None:
    scores, transitions = [x.detach() for x in _leaves(B)]
    segmentation = pb.Segmentation(LENGTHS, transitions)
    with backend(name_of_backend):
        found = segmentation.topk(scores, 5)
        drawn = segmentation.sample(scores, torch.Generator().manual_seed(0), samples=3000)
        best = segmentation.argmax(scores)
    assert torch.equal(found.structures[0], best)
    for b, totals in enumerate(_totals(scores, transitions)):
        values, order = totals.sort(descending=True)
        count = min(5, len(values))
        torch.testing.assert_close(found.scores[:count, b], values[:count])
        assert torch.equal(found.structures[:count, b], MEMBERS[b][0][order[:count]])
        assert bool((found.scores[count:, b] == -torch.inf).all())
        assert not found.structures[count:, b].any()
    assert bool(segmentation.contains(drawn).all())
    torch.testing.assert_close(drawn.mean(0), segmentation.marginals(scores), rtol=0, atol=0.05)


def test_scores_of_the_best_structures_have_gradients_in_transitions() -> None:
    scores, transitions = _leaves()
    best = pb.Segmentation(LENGTHS, transitions).topk(scores, 2)
    found = torch.autograd.grad(best.scores[1, 0], (scores, transitions))
    second = int(_totals(*_leaves())[0].argsort(descending=True)[1])
    torch.testing.assert_close(found[0][0], MEMBERS[0][0][second])
    torch.testing.assert_close(found[1], MEMBERS[0][1][second])


@pytest.mark.parametrize("low", [-torch.inf, -1e9, -1e30])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_forbidden_transitions(low: float, dtype: torch.dtype) -> None:
    """Label 0 may not repeat, label 2 may only follow label 0, and one segment is forbidden."""
    scores, transitions = [x.detach().to(dtype) for x in _leaves()]
    hidden = torch.tensor([[1, 0, 0], [0, 0, 1], [0, 0, 1]]).bool()
    scores[0, 0, 0, 1] = low
    segmentation = pb.Segmentation(LENGTHS, transitions.masked_fill(hidden, low))
    left = [(pairs[:, hidden] == 0).all(1) & (z[:, 0, 0, 1] * (b == 0) == 0) for b, (z, pairs) in enumerate(MEMBERS)]
    free = scores.clone()
    free[0, 0, 0, 1] = 0.0
    totals = [t[keep] for t, keep in zip(_totals(free.double(), transitions.double()), left, strict=True)]
    tolerance = {"rtol": 1e-5, "atol": 1e-5}
    log_z = torch.stack([t.logsumexp(0) for t in totals])
    torch.testing.assert_close(segmentation.log_partition(scores).double(), log_z, **tolerance)
    mu = torch.stack([
        torch.einsum("s,snwc->nwc", t.softmax(0), z[keep]) for t, (z, _), keep in zip(totals, MEMBERS, left, strict=True)
    ])  # fmt: skip
    torch.testing.assert_close(segmentation.marginals(scores).double(), mu, **tolerance)
    entropy = torch.stack([-(t.softmax(0) * t.log_softmax(0)).sum() for t in totals])
    torch.testing.assert_close(segmentation.entropy(scores).double(), entropy, **tolerance)
    best = segmentation.argmax(scores)
    for b, (t, (z, _), keep) in enumerate(zip(totals, MEMBERS, left, strict=True)):
        assert torch.equal(best[b].double(), z[keep][t.argmax()])


@pytest.mark.parametrize(("n", "widths", "labels"), [(40, 1, 4), (40, 12, 3), (70, 33, 2), (80, 40, 2), (7, 9, 5), (3, 2, 7)])
@pytest.mark.parametrize("scale", [1.0, 30.0])
def test_wide_segments_and_large_scores_as_the_reference(n: int, widths: int, labels: int, scale: float) -> None:
    """The weights of the engine, its logarithms, and shapes in which transitions take several rows or part of one."""
    generator = torch.Generator().manual_seed(0)
    leaves = [scale * torch.randn(shape, generator=generator) for shape in ((3, n, widths, labels), (labels, labels))]
    leaves = [x.requires_grad_() for x in leaves]
    lengths = [n, n // 2, 1]

    def run(name: str) -> tuple[Tensor, ...]:
        value = getattr(pb.Segmentation(lengths, leaves[1]), name)(leaves[0])
        weight = torch.linspace(0.5, 1.5, value.numel()).reshape(value.shape)
        return value.detach(), *torch.autograd.grad((value * weight).sum(), leaves)

    for name in ("log_partition", "marginals", "entropy"):
        found = run(name)
        with backend("reference"):
            expected = run(name)
        for a, b in zip(found, expected, strict=True):
            torch.testing.assert_close(a, b, rtol=1e-4, atol=2e-4 * max(scale, 1.0))


def test_gradients_have_the_same_bits_in_every_run() -> None:
    generator = torch.Generator().manual_seed(0)
    scores, transitions = [
        torch.randn(shape, generator=generator).requires_grad_() for shape in ((33, 30, 6, 5), (5, 5))
    ]  # fmt: skip

    def run() -> tuple[Tensor, ...]:
        segmentation = pb.Segmentation(transitions=transitions)
        gold = segmentation.argmax(scores)
        loss = segmentation.log_prob(scores, gold).sum() + segmentation.entropy(scores).sum()
        return torch.autograd.grad(loss + (segmentation.marginals(scores) ** 2).sum(), (scores, transitions))

    first = run()
    for _ in range(4):
        assert all(map(torch.equal, run(), first))


def test_vmap_over_transitions() -> None:
    scores, transitions = [x.detach() for x in _leaves(B)]
    for name in ("log_partition", "marginals"):
        each = torch.vmap(lambda t: getattr(pb.Segmentation(LENGTHS, t), name)(scores))(transitions)  # noqa: B023
        for one, t in zip(each, transitions, strict=True):
            torch.testing.assert_close(one, getattr(pb.Segmentation(LENGTHS, t), name)(scores))


def test_transitions_of_zero_change_nothing() -> None:
    scores = _leaves()[0].detach()
    plain, zero = pb.Segmentation(LENGTHS), pb.Segmentation(LENGTHS, torch.zeros(C, C))
    assert type(plain) is pb.Segmentation
    assert plain.transitions is None
    assert torch.equal(plain.argmax(scores), zero.argmax(scores))
    for name in ("log_partition", "marginals", "entropy"):
        torch.testing.assert_close(getattr(plain, name)(scores), getattr(zero, name)(scores))


def test_ties_go_to_the_first_label_and_then_to_the_segment_that_starts_first() -> None:
    segmentation = pb.Segmentation(transitions=torch.zeros(2, 2))
    assert segmentation.segments(segmentation.argmax(torch.zeros(5, 3, 2))) == [(0, 2, 0), (2, 5, 0)]


def test_it_is_a_segmentation_that_can_be_copied() -> None:
    segmentation = pb.Segmentation(torch.tensor(LENGTHS), _leaves()[1].detach())
    assert isinstance(segmentation, pb.Segmentation)
    assert repr(segmentation) == "Segmentation(transitions=[3, 3], lengths=[5])"
    for other in (copy.copy(segmentation), copy.deepcopy(segmentation), pickle.loads(pickle.dumps(segmentation))):
        assert other == segmentation
        assert hash(other) == hash(segmentation)
    assert segmentation != pb.Segmentation(torch.tensor(LENGTHS), torch.zeros(C, C))
    assert segmentation != pb.Segmentation(torch.tensor(LENGTHS))


def test_mistakes_are_named() -> None:
    with pytest.raises(ValueError, match=r"transitions has shape \[3, 2\]; a Segmentation needs \[\.\.\., C, C\]"):
        pb.Segmentation(transitions=torch.zeros(3, 2))
    with pytest.raises(
        TypeError, match=r"transitions has dtype torch.int64; a Segmentation needs .* pass transitions.float\(\)"
    ):
        pb.Segmentation(transitions=torch.zeros(3, 3, dtype=torch.long))
    with pytest.raises(TypeError, match=r"transitions is a list"):
        pb.Segmentation(None, [[0.0]])
    with pytest.raises(ValueError, match=r"scores has shape \[1, 4, 2, 2\]; transitions \[3, 3\] need .* C = 3"):
        pb.Segmentation(transitions=torch.zeros(3, 3)).argmax(torch.zeros(4, 2, 2))
    with pytest.raises(ValueError, match=r"tensor of shape \[2, 3, 3\]; its leading dimensions must broadcast .* \[5\]"):
        pb.Segmentation(transitions=torch.zeros(2, 3, 3)).argmax(torch.zeros(5, 4, 2, 3))
    with pytest.raises(ValueError, match=r"1 of the batch.* no feasible segmentation"):
        pb.Segmentation([1, 4], torch.full((3, 3), -torch.inf)).argmax(torch.zeros(2, 4, 2, 3))
    with pytest.raises(ValueError, match=r"0 of the batch .* contains NaN"):
        pb.Segmentation(transitions=torch.full((3, 3), torch.nan)).argmax(torch.zeros(2, 4, 2, 3))
    with pytest.raises(ValueError, match=r"lengths\[1\] is 5; scores of 4 positions need lengths from 0 to 4"):
        pb.Segmentation([1, 5], torch.zeros(3, 3)).argmax(torch.zeros(2, 4, 2, 3))
    with pytest.raises(NotImplementedError, match="Segmentation\\(lengths\\)"):
        pb.Segmentation(transitions=torch.zeros(3, 3)).sparsemap(torch.zeros(2, 4, 2, 3))
    found = pb.Segmentation([1, 4], torch.full((3, 3), -torch.inf), validate=False).log_partition(torch.zeros(2, 4, 2, 3))
    assert bool(found[0].isfinite())
    assert bool(found[1].isnan())
