"""The score function estimator: its expectation, over all structures, is the gradient of the expected loss."""

from __future__ import annotations

import itertools

import pytest
import torch
from torch import Tensor

import pullback as pb
from estimators.worlds import CATEGORICAL


class Scripted(pb.Structure):
    """A structure whose samples are given beforehand."""

    def __init__(self, inside: pb.Structure, samples: list[Tensor]) -> None:
        self.inside, self.samples = inside, samples
        self.event_dims = inside.event_dims  # type: ignore[misc]

    def argmax(self, scores: Tensor) -> Tensor:
        return self.inside.argmax(scores)

    def marginals(self, scores: Tensor) -> Tensor:
        return self.inside.marginals(scores)

    def sample(self, scores: Tensor, generator: torch.Generator | None = None) -> Tensor:
        given = self.samples.pop(0) if len(self.samples) == 1 else torch.stack(self.samples)[:, None]
        return given.expand(scores.shape)


CASES = [
    (pb.Categorical(), (4,), 4),
    (pb.DependencyTree(), (3, 3), 3),
    (pb.DependencyTree(projective=False, multiroot=False), (3, 3), 3),
]


def _expectations(
    structure: pb.Structure, shape: tuple[int, ...], size: int, baseline: pb.parts.MovingAverage | pb.parts.LeaveOneOut | None
) -> tuple[Tensor, Tensor]:
    """The expected gradient of the estimator, and the gradient of the expected loss, both by enumeration."""
    generator = torch.Generator().manual_seed(0)
    scores = torch.randn(shape, dtype=torch.float64, generator=generator)
    cost = 3 * torch.randn(shape, dtype=torch.float64, generator=generator)
    every = structure.enumerate(size).double()

    def downstream(z: Tensor) -> Tensor:
        return (z * cost).flatten(1).sum(1).square()

    leaf = scores.clone().requires_grad_()
    dims = tuple(range(1, every.dim()))
    p = (leaf * every).sum(dims).softmax(0)
    (exact,) = torch.autograd.grad((p * downstream(every)).sum(), leaf)

    state = {} if baseline is None else baseline.state_dict()
    samples = 1 if baseline is None else baseline.samples
    estimate = torch.zeros_like(scores)
    for chosen in itertools.product(range(len(every)), repeat=samples):
        if baseline is not None:
            baseline.load_state_dict(state)
        batch = scores[None].clone().requires_grad_()
        script = Scripted(structure, [every[i] for i in chosen])
        pb.ScoreFunction(baseline).objective(script, batch, downstream).sum().backward()
        estimate += torch.stack([p[i].detach() for i in chosen]).prod() * batch.grad[0]
    return estimate, exact


@pytest.mark.parametrize(("structure", "shape", "size"), CASES, ids=["categorical", "projective", "nonprojective"])
class TestUnbiased:
    def test_without_baseline(self, structure: pb.Structure, shape: tuple[int, ...], size: int) -> None:
        torch.testing.assert_close(*_expectations(structure, shape, size, None))

    @pytest.mark.parametrize("samples", [2, 3])
    def test_leave_one_out(self, structure: pb.Structure, shape: tuple[int, ...], size: int, samples: int) -> None:
        torch.testing.assert_close(*_expectations(structure, shape, size, pb.parts.LeaveOneOut(samples)))

    @pytest.mark.parametrize("variance", [0.25, 9.0])
    def test_moving_average_up_to_its_scale(
        self, structure: pb.Structure, shape: tuple[int, ...], size: int, variance: float
    ) -> None:
        baseline = pb.parts.MovingAverage()
        baseline.load_state_dict({"mean": torch.tensor([2.0]), "variance": torch.tensor([variance])})
        estimate, exact = _expectations(structure, shape, size, baseline)
        torch.testing.assert_close(estimate, exact / max(1.0, variance**0.5))


def test_several_structures_share_their_examples_loss() -> None:
    scores = torch.randn(1, 2, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    cost = torch.randn(2, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    pairs = torch.stack([torch.stack(pair) for pair in itertools.product(torch.eye(3).double(), repeat=2)])

    def downstream(z: Tensor) -> Tensor:
        return (z * cost).sum((1, 2)).exp()

    leaf = scores.clone().requires_grad_()
    p = (leaf * pairs).sum((1, 2)).softmax(0)
    (exact,) = torch.autograd.grad((p * downstream(pairs)).sum(), leaf)
    estimate = torch.zeros_like(scores)
    for i, pair in enumerate(pairs):
        batch = scores.clone().requires_grad_()
        pb.ScoreFunction().objective(Scripted(pb.Categorical(), [pair]), batch, downstream).sum().backward()
        estimate += p[i].detach() * batch.grad
    torch.testing.assert_close(estimate, exact)


def test_the_decoder_needs_no_gradient_for_z() -> None:
    scores = CATEGORICAL.leaf()
    cost = torch.arange(4.0, dtype=torch.float64)
    pb.ScoreFunction().objective(CATEGORICAL.structure, scores, lambda z: cost[z.argmax(-1)]).mean().backward()
    assert scores.grad.abs().sum() > 0


def test_leave_one_out_lowers_the_variance() -> None:
    scores = torch.zeros(2000, 3)

    def spread(estimator: pb.ScoreFunction) -> float:
        torch.manual_seed(0)
        leaf = scores.clone().requires_grad_()
        estimator.objective(pb.Categorical(), leaf, lambda z: 10 + z[:, 0]).sum().backward()
        return leaf.grad.var(0).sum().item()

    assert spread(pb.ScoreFunction(pb.parts.LeaveOneOut(2))) < 0.02 * spread(pb.ScoreFunction())


class TestMovingAverage:
    def test_recurrence(self) -> None:
        baseline, mean, variance = pb.parts.MovingAverage(factor=0.1), 0.0, 1.0
        for step in range(30):
            losses = torch.linspace(0, 8, 5, dtype=torch.float64) + step
            expected = (losses - mean) / max(1.0, variance**0.5)
            torch.testing.assert_close(baseline.advantages(losses[None])[0], expected)
            variance += 0.1 * ((losses - mean).square().mean().item() - variance)
            mean += 0.1 * (losses.mean().item() - mean)
        torch.testing.assert_close(baseline.mean, torch.tensor([mean], dtype=torch.float64))
        torch.testing.assert_close(baseline.variance, torch.tensor([variance], dtype=torch.float64))

    def test_settles_at_the_mean_and_standard_deviation_of_the_losses(self) -> None:
        torch.manual_seed(0)
        baseline = pb.parts.MovingAverage()
        for _ in range(300):
            advantages = baseline.advantages(5 + 3 * torch.randn(1, 4000))
        assert advantages.mean().item() == pytest.approx(0, abs=0.1)
        assert advantages.std().item() == pytest.approx(1, abs=0.1)

    def test_groups_are_separate_averages_of_consecutive_examples(self) -> None:
        together, alone = pb.parts.MovingAverage(groups=3), [pb.parts.MovingAverage() for _ in range(3)]
        for step in range(5):
            losses = torch.randn(1, 12, generator=torch.Generator().manual_seed(step)) * 4 + 3
            apart = [baseline.advantages(part) for baseline, part in zip(alone, losses.chunk(3, 1), strict=True)]
            torch.testing.assert_close(together.advantages(losses), torch.cat(apart, 1))

    def test_uneven_groups_are_refused(self) -> None:
        with pytest.raises(ValueError, match="10 losses do not make 3 groups"):
            pb.parts.MovingAverage(groups=3).advantages(torch.zeros(1, 10))

    def test_state_goes_through_a_checkpoint(self) -> None:
        first, second = pb.ScoreFunction(pb.parts.MovingAverage()), pb.ScoreFunction(pb.parts.MovingAverage())
        first.objective(CATEGORICAL.structure, CATEGORICAL.leaf(), CATEGORICAL.decoder())
        state = first.state_dict()
        second.load_state_dict(state)
        tensor = second.baseline.mean
        first.objective(CATEGORICAL.structure, CATEGORICAL.leaf(), CATEGORICAL.decoder())
        torch.testing.assert_close(second.state_dict(), state)
        assert second.baseline.mean is tensor
        assert second.same_options(first)

    def test_state_is_updated_in_place_and_only_in_training(self) -> None:
        estimator = pb.ScoreFunction(pb.parts.MovingAverage())
        mean = estimator.baseline.mean
        with torch.no_grad():
            estimator.objective(CATEGORICAL.structure, CATEGORICAL.leaf(), CATEGORICAL.decoder())
        assert mean.item() == 0
        estimator.objective(CATEGORICAL.structure, CATEGORICAL.leaf(), CATEGORICAL.decoder())
        assert mean.item() != 0

    def test_state_of_another_shape_is_refused(self) -> None:
        with pytest.raises(ValueError, match=r"mean has shape \[2\]"):
            pb.parts.MovingAverage().load_state_dict(pb.parts.MovingAverage(groups=2).state_dict())

    def test_others_have_no_state(self) -> None:
        for estimator in (pb.SPIGOT(), pb.ScoreFunction(), pb.ScoreFunction(pb.parts.LeaveOneOut(2))):
            assert estimator.state_dict() == {}
            estimator.load_state_dict({})
            with pytest.raises(ValueError, match="has no state"):
                estimator.load_state_dict({"mean": torch.zeros(1)})
