"""CTC: the loss of PyTorch, targets with more states than a vector has lanes, and errors about targets."""

from __future__ import annotations

import itertools

import pytest
import torch
from torch.nn.functional import ctc_loss

import pullback as pb
from pullback.inference._torch.differentiate import gradient
from pullback.inference.ctc.reference import Picked
from pullback.inference.front.family import backend


def _batch(dtype=torch.float64, frames=70, symbols=9, most=24):
    """Ragged log-probabilities, and targets with repeats."""
    generator = torch.Generator().manual_seed(0)
    scores = torch.randn(5, frames, symbols, generator=generator, dtype=torch.float64).log_softmax(-1)
    targets = torch.randint(1, symbols, (5, most), generator=generator)
    targets[:, 3], targets[:, 4] = targets[:, 2], targets[:, 2]
    return scores.to(dtype), targets, torch.tensor([most, 17, 8, 1, 0]), torch.tensor([frames, 50, 33, 1, 7])


@pytest.mark.parametrize(("dtype", "blank"), [(torch.float64, 0), (torch.float32, 8)], ids=str)
def test_the_loss_is_that_of_pytorch(name_of_backend, dtype, blank):
    """With its gradient through log_softmax: 2 * 24 + 2 states are several vectors of every dtype."""
    scores, targets, sizes, frames = _batch(dtype)
    targets = targets if blank == 0 else targets - 1
    losses, slopes = [], []
    for loss in (
        lambda x: -pb.CTC(targets, sizes, frames, blank=blank).log_partition(x),
        lambda x: ctc_loss(x.transpose(0, 1), targets, frames, sizes, blank=blank, reduction="none"),
    ):
        leaf = scores.clone().requires_grad_() if losses == [] else scores.double().requires_grad_()
        found = loss(leaf.log_softmax(-1))
        losses.append(found.detach().double())
        slopes.append(torch.autograd.grad(found.sum(), leaf)[0].double())
    tolerance = 1e-9 if dtype == torch.float64 else 2e-5
    torch.testing.assert_close(*losses, rtol=tolerance, atol=tolerance)
    torch.testing.assert_close(*slopes, rtol=tolerance, atol=tolerance)


def test_backends_agree_on_targets_of_several_vectors():
    scores, targets, sizes, frames = _batch()
    direction = torch.cos(torch.arange(float(scores.numel()), dtype=torch.float64)).reshape(scores.shape)
    ctc, found = pb.CTC(targets, sizes, frames), []
    for name in ("reference", "cpu"):
        with backend(name):
            leaf = scores.clone().requires_grad_()
            mu, nats = ctc.marginals(leaf), ctc.entropy(leaf)
            slopes = [torch.autograd.grad(x, leaf)[0] for x in ((mu * direction).sum(), nats.sum())]
            found.append([mu.detach(), nats.detach(), *slopes, ctc.argmax(scores)])
    for ours, other in zip(*found, strict=True):
        torch.testing.assert_close(ours, other, rtol=1e-9, atol=1e-9)
    z = ctc.sample(scores.expand(20, *scores.shape), torch.Generator().manual_seed(1))
    assert ctc.contains(z).all()
    best = ctc.topk(scores, 3)
    real = best.scores > -torch.inf
    assert real[:, :3].all()
    assert torch.equal(ctc.contains(best.structures), real)
    torch.testing.assert_close(best.scores[real], ctc.score(scores, best.structures)[real])


@pytest.mark.parametrize("tied", [False, True])
def test_the_k_best_are_those_of_the_reference(tied):
    """Targets and recordings of all lengths, from none to one too many, with symbols that are forbidden."""
    generator = torch.Generator().manual_seed(0)
    frames, targets = 6, torch.tensor([[1, 1, 2], [2, 1, 2], [3, 0, 1], [1, 2, 9]])
    sizes, lengths = (x.flatten() for x in torch.meshgrid(torch.arange(5), torch.arange(frames + 2), indexing="ij"))
    for target in targets:
        scores = torch.randn(len(sizes), frames, 4, generator=generator).masked_fill(
            torch.rand(len(sizes), frames, 4, generator=generator) < 0.1, -torch.inf
        )
        scores = scores.round() if tied else scores
        ctc = pb.CTC(target.expand(len(sizes), 3), sizes, lengths, validate=False)
        ours = ctc.topk(scores, 5)
        with backend("reference"):
            theirs = ctc.topk(scores, 5)
        torch.testing.assert_close(ours.scores, theirs.scores, equal_nan=True)
        if tied:
            assert torch.equal(ours.structures[0].nan_to_num(2.0), ctc.argmax(scores).nan_to_num(2.0))
        else:
            torch.testing.assert_close(ours.structures, theirs.structures, equal_nan=True)


def test_a_long_recording_keeps_its_digits():
    """The probabilities of a frame sum to 1 after 10,000 steps in float32."""
    scores = torch.randn(1, 10_000, 8, generator=torch.Generator().manual_seed(0))
    mu = pb.CTC(torch.arange(100) % 7 + 1).marginals(scores)
    assert (mu.double().sum(-1) - 1).abs().max() < 1e-4


def test_gradients_are_the_same_from_run_to_run():
    scores, targets, sizes, frames = _batch(torch.float32)

    def gradient(threads):
        before = torch.get_num_threads()
        torch.set_num_threads(threads)
        try:
            leaf = scores.clone().requires_grad_()
            return torch.autograd.grad(pb.CTC(targets, sizes, frames).log_partition(leaf).sum(), leaf)[0]
        finally:
            torch.set_num_threads(before)

    assert torch.equal(gradient(1), gradient(2))


def test_targets_that_do_not_fit(name_of_backend):
    """A repeated symbol takes a blank in between; the other examples are right without checks."""
    scores = torch.randn(3, 4, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64).requires_grad_()
    targets, sizes = torch.tensor([[1, 2, 1, 2], [1, 1, 2, 2], [2, 1, 0, 0]]), torch.tensor([4, 4, 2])
    with pytest.raises(
        ValueError, match=r"sequence 1 of the batch \(length 4, target_length 4\) has no feasible path: a target"
    ):
        pb.CTC(targets, sizes).log_partition(scores)
    ctc = pb.CTC(targets, sizes, validate=False)
    for operation in (ctc.log_partition, ctc.marginals, ctc.entropy, ctc.argmax):
        found = operation(scores).detach()
        assert found[1].isnan().all()
        torch.testing.assert_close(found[[0, 2]], _alone(operation, scores))


def test_a_target_that_does_not_fit_leaves_the_weights_alone(name_of_backend):
    """Shared weights, a bad example, and a loss that leaves it out: PyTorch's `zero_infinity=True`."""
    torch.manual_seed(0)
    model, x = torch.nn.Linear(4, 3), torch.randn(2, 3, 4)
    ctc = pb.CTC([[1, 2], [1, 1]], lengths=[3, 2], validate=False)
    loss = -ctc.log_partition(model(x).log_softmax(-1))
    assert loss.isnan().tolist() == [False, True]
    loss[loss.isfinite()].mean().backward()
    found = model.weight.grad.clone()
    model.zero_grad()
    (-pb.CTC([1, 2]).log_partition(model(x[0]).log_softmax(-1))).backward()
    torch.testing.assert_close(found, model.weight.grad)


def test_no_gradient_of_the_reference_adds_in_any_order(monkeypatch):
    """On a GPU sums by atomics, which the gradients of `gather` and of `index_select` are, differ from run to run."""
    names = set()

    def look(value, of, create_graph=False):
        left = [value.grad_fn]
        while left:
            node = left.pop()
            if node is not None and node not in names:
                names.add(node)
                left += [after for after, _ in node.next_functions]
        return gradient(value, of, create_graph)

    monkeypatch.setattr("pullback.inference.engine.recursion.gradient", look)
    scores = torch.randn(2, 6, 4, dtype=torch.float64)
    with backend("reference"):
        leaf = scores.clone().requires_grad_()
        mu = pb.CTC([[1, 2, 1], [2, 3, 0]], [3, 2]).marginals(leaf)
        mu.square().sum().backward()
    found = {type(node).__name__ for node in names}
    assert "PickedBackward" in found
    assert not found & {
        "GatherBackward0",
        "IndexSelectBackward0",
        "ScatterAddBackward0",
        "IndexAddBackward0",
        "EmbeddingBackward0",
    }


@pytest.mark.parametrize("count", [1, 2, 7, 33])
def test_the_sum_over_states_of_a_symbol(count):
    index = torch.randint(0, 4, (3, count), generator=torch.Generator().manual_seed(0))
    x = torch.randn(3, 5, 4, generator=torch.Generator().manual_seed(1), dtype=torch.float64, requires_grad=True)
    assert torch.equal(Picked.apply(x, index), x.gather(2, index[:, None].expand(-1, 5, -1)))
    assert torch.autograd.gradcheck(Picked.apply, (x, index))
    assert torch.autograd.gradgradcheck(Picked.apply, (x, index))


def _alone(operation, scores):
    """Results of the first and the last example of the test above, by structures of one target."""
    name = operation.__name__
    return torch.stack([getattr(pb.CTC(t), name)(s) for t, s in (([1, 2, 1, 2], scores[0]), ([2, 1], scores[2]))]).detach()


def test_symbols_that_do_not_exist(name_of_backend):
    scores = torch.zeros(2, 4, 3)
    with pytest.raises(ValueError, match=r"sequence 1 .* symbols are from 0 to V - 1"):
        pb.CTC([[1, 2], [3, 1]]).argmax(scores)
    for target in (3, 0, -5):
        ctc = pb.CTC([[1, 2], [target, 1]], [2, 2], validate=False)
        assert ctc.log_partition(scores).isnan().tolist() == [False, True]
        assert ctc.topk(scores, 2).scores[0].isnan().tolist() == [False, True]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: pb.CTC([[1, 2], [1, 0]]), r"targets\[1, 1\] is 0; that is the blank, and a target has none"),
        (lambda: pb.CTC([1, -7], 2), r"targets\[1\] is -7; a symbol is at least 0"),
        (lambda: pb.CTC([1, -1, 2]), "targets has padding .* in between"),
        (lambda: pb.CTC([[1, 2]], [3]), r"target_lengths\[0\] is 3; 2 positions need target_lengths from 0 to 2"),
        (lambda: pb.CTC([[1], [2]], [1, 1, 1]), "the leading dimensions of target_lengths"),
        (lambda: pb.CTC([1], blank=-1), "blank is -1"),
        (lambda: pb.CTC([[1], [2]]).enumerate(2, 3), "enumerate needs a structure of one target"),
        (lambda: pb.CTC([[1], [2]]).argmax(torch.zeros(3, 2, 3)), r"target_lengths has shape \[2\] and scores \[3, 2, 3\]"),
    ],
)
def test_what_targets_cannot_be(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_paths_of_states_and_of_symbols_correspond():
    """All paths of all targets of two symbols are all sequences, each once."""
    targets = [t for length in range(5) for t in itertools.product((1, 2), repeat=length)]
    paths = torch.cat([pb.CTC(torch.tensor(t, dtype=torch.long)).enumerate(4, 3) for t in targets])
    assert len(paths) == len(paths.unique(dim=0)) == 3**4
    counts = [pb.CTC(torch.tensor(t, dtype=torch.long), validate=False).log_partition(torch.zeros(4, 3)) for t in targets]
    assert sum(x.exp().item() for x in counts if not x.isnan()) == pytest.approx(3**4)


def test_a_warm_start_without_frames():
    nothing = torch.zeros(2, dtype=torch.long)
    ctc, scores = pb.CTC(torch.tensor([1, 2]), nothing, nothing), torch.zeros(2, 0, 3)
    assert ctc.sparsemap(scores, warm_start=ctc.argmax(scores)).shape == (2, 0, 3)
