"""On a GPU: no waiting for the device, and whole training steps in CUDA graphs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from torch import Tensor, nn

import pullback as pb
from pullback.estimators.registry import Entry

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
B, K = 64, 5


@pytest.fixture(params=[1, 3])
def estimator(entry: Entry, request: pytest.FixtureRequest) -> pb.Estimator:
    repeats = request.param
    if entry.reads_back:
        pytest.skip("reads the size of the support back")
    if entry.repeated is None and repeats > 1:
        pytest.skip("no option to repeat")
    return entry.make(**({"steps": repeats} if entry.repeated == "steps" else {}))


@pytest.fixture
def _no_waiting() -> Iterator[None]:
    torch.cuda.set_sync_debug_mode("error")
    yield
    torch.cuda.set_sync_debug_mode("default")


def _problem() -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    scores = torch.randn(B, K, generator=generator).cuda().requires_grad_()
    return scores, torch.randn(B, K, generator=generator).cuda()


def _step(estimator: pb.Estimator, scores: Tensor, cost: Tensor) -> Tensor:
    losses = estimator.objective(pb.Categorical(), scores, lambda z: (z * cost).sum(-1).sin())
    losses.mean().backward()
    return losses.detach()


def test_a_training_step_never_waits_for_the_device(estimator: pb.Estimator, request: pytest.FixtureRequest) -> None:
    scores, cost = _problem()
    _step(estimator, scores, cost)
    request.getfixturevalue("_no_waiting")
    _step(estimator, scores, cost)


def test_a_training_step_is_captured_in_a_cuda_graph(estimator: pb.Estimator, entry: Entry) -> None:
    scores, cost = _problem()
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            scores.grad = None
            expected = _step(estimator, scores, cost)
    torch.cuda.current_stream().wait_stream(stream)
    gradient = scores.grad
    scores.grad = None
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        losses = _step(estimator, scores, cost)
    graph.replay()
    first = scores.grad.clone()
    graph.replay()
    assert losses.isfinite().all()
    if entry.stochastic:
        assert not torch.equal(scores.grad, first)
    else:
        torch.testing.assert_close((losses, first), (expected, gradient))


@pytest.mark.parametrize("kind", [pb.SPIGOT, pb.SPIGOTCE])
def test_dropout_masks_are_those_of_the_forward_pass(kind: type[pb.SPIGOT]) -> None:
    scores, cost = _problem()
    masks: list[Tensor] = []

    def downstream(z: Tensor) -> Tensor:
        masks.append(nn.functional.dropout(torch.ones_like(z), 0.5))
        return (z * cost * masks[-1]).sum(-1).square()

    kind(steps=3).objective(pb.Categorical(), scores, downstream).mean().backward()
    assert len(masks) >= 3
    for mask in masks[1:]:
        assert torch.equal(mask, masks[0])


def test_autocast_is_restored_for_inner_steps() -> None:
    scores, _ = _problem()
    decoder, seen = nn.Linear(K, 1).cuda(), []

    def downstream(z: Tensor) -> Tensor:
        outputs = decoder(z)
        seen.append(outputs.dtype)
        return outputs.float().square().sum(-1)

    with torch.autocast("cuda", torch.float16):
        losses = pb.SPIGOT(steps=3).objective(pb.Categorical(), scores, downstream)
    losses.mean().backward()
    assert seen == [torch.float16] * 3


def test_a_moving_average_follows_the_losses_to_the_device() -> None:
    estimator = pb.ScoreFunction(pb.MovingAverage())
    scores, cost = _problem()
    _step(estimator, scores, cost)
    assert estimator.baseline.mean.is_cuda
    fresh = pb.ScoreFunction(pb.MovingAverage())
    fresh.load_state_dict(estimator.state_dict())
    torch.testing.assert_close(fresh.baseline.mean, estimator.baseline.mean.cpu())
