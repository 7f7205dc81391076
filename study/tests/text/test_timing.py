"""The timed structure: the same numbers, and both passes on the clock."""

import torch

from pullback import DependencyTree
from pullback_study.tasks.runtime import Stopwatch, Timed


def test_timed_inference_is_inference():
    torch.manual_seed(0)
    lengths = torch.tensor([4, 2])
    plain, stopwatch = DependencyTree(lengths), Stopwatch(torch.device("cpu"))
    clocked = Timed(plain, stopwatch)
    for name in ("marginals", "sparsemap"):
        scores = torch.randn(2, 4, 4, requires_grad=True)
        direction = torch.randn(2, 4, 4)
        results = []
        for trees in (plain, clocked):
            mu = getattr(trees, name)(scores)
            results.append((mu.detach(), *torch.autograd.grad(mu, scores, direction)))
        assert all(torch.equal(a, b) for a, b in zip(*results, strict=True))
    assert torch.equal(clocked.argmax(scores), plain.argmax(scores))
    assert torch.equal(clocked.allowed(scores), plain.allowed(scores))


def test_steps_are_timed_too():
    scores = torch.randn(2, 4, 4)
    plain, stopwatch = DependencyTree(), Stopwatch(torch.device("cpu"))
    mu, step = plain.marginals(scores), 1e-5 * torch.randn(2, 4, 4)
    for found, expected in zip(
        Timed(plain, stopwatch).step_inside(scores, mu, step), plain.step_inside(scores, mu, step), strict=True
    ):
        assert torch.equal(found, expected)
    assert stopwatch.take() > 0


def test_the_backward_pass_is_timed_too():
    stopwatch = Stopwatch(torch.device("cpu"))
    scores = torch.randn(8, 12, 12, requires_grad=True)
    mu = Timed(DependencyTree(), stopwatch).marginals(scores)
    assert stopwatch.take() > 0
    assert stopwatch.take() == 0
    (2 * mu).sum().backward()
    assert stopwatch.take() > 0
