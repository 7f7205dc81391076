"""Control variates: unbiased for every structure, loss and beta, by enumeration of all samples; beta lowers the variance."""

from __future__ import annotations

import itertools

import pytest
import torch
from torch import Tensor

import pullback as pb
from each import each
from pullback.parts import ControlVariate, SelfCritical

F64 = torch.float64
SMALL: dict[str, tuple[pb.Structure, tuple[int, ...], tuple[int, ...]]] = {
    "categorical": (pb.Categorical(), (4,), (4,)),
    "projective": (pb.DependencyTree(), (3, 3), (3,)),
    "nonprojective": (pb.DependencyTree(projective=False, multiroot=False), (3, 3), (3,)),
    "chain": (pb.LinearChain(), (3, 2, 2), (3, 2)),
    "subset": (pb.Subset(2), (4,), (4,)),
    "segmentation": (pb.Segmentation(), (3, 2, 2), (3, 2, 2)),
    "binary-tree": (pb.BinaryTree(), (4, 4), (4,)),
    "alignment": (pb.Alignment(), (3, 3), (3, 3)),
}


class Scripted(pb.Structure):
    """A structure whose samples are all tuples of its members, one tuple per example."""

    def __init__(self, inside: pb.Structure, drawn: Tensor) -> None:
        self.inside, self.drawn = inside, drawn
        self.event_dims = inside.event_dims  # type: ignore[misc]

    def argmax(self, scores: Tensor) -> Tensor:
        return self.inside.argmax(scores)

    def marginals(self, scores: Tensor) -> Tensor:
        return self.inside.marginals(scores)

    def sample(self, scores: Tensor, generator: torch.Generator | None = None) -> Tensor:
        return self.drawn.reshape(scores.shape)


def linear(parts: tuple[int, ...]) -> object:
    cost = torch.randn(parts, dtype=F64, generator=torch.Generator().manual_seed(1)).flatten()
    return lambda z: z.flatten(1) @ cost


def quadratic(parts: tuple[int, ...]) -> object:
    size = torch.Size(parts).numel()
    a = torch.randn(size, size, dtype=F64, generator=torch.Generator().manual_seed(2))
    return lambda z: (z.flatten(1) @ a * z.flatten(1)).sum(1) + linear(parts)(z)


def far_from_quadratic(parts: tuple[int, ...]) -> object:
    return lambda z: (quadratic(parts)(z) / 2).sin().exp() * 3


def without_gradient(parts: tuple[int, ...]) -> object:
    return lambda z: far_from_quadratic(parts)(z.detach())


LOSSES = {"linear": linear, "quadratic": quadratic, "smooth": far_from_quadratic, "no gradient": without_gradient}


def _distribution(name: str, downstream: object) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Scores, all members of Z, their probabilities, and the gradient of the expected loss."""
    structure, parts, sizes = SMALL[name]
    scores = torch.randn(parts, dtype=F64, generator=torch.Generator().manual_seed(0)).requires_grad_()
    every = structure.enumerate(*sizes).to(F64)
    p = (scores * every).flatten(1).sum(1).softmax(0)
    (exact,) = torch.autograd.grad((p * downstream(every).detach()).sum(), scores)
    return scores.detach(), every, p.detach(), exact


def _gradients(estimator: pb.Estimator, name: str, downstream: object, samples: int) -> tuple[Tensor, Tensor, Tensor]:
    """The gradient of each tuple of samples, the tuple's probability, and the exact gradient."""
    scores, every, p, exact = _distribution(name, downstream)
    chosen = torch.tensor(list(itertools.product(range(len(every)), repeat=samples)))
    batch = scores.expand(len(chosen), *scores.shape).clone().requires_grad_()
    script = Scripted(SMALL[name][0], every[chosen].transpose(0, 1))
    estimator.objective(script, batch, downstream).sum().backward()
    assert batch.grad is not None
    return batch.grad, p[chosen].prod(1), exact


def _mean(gradients: Tensor, p: Tensor) -> Tensor:
    return torch.tensordot(p, gradients, 1)


def with_beta(beta: float, samples: int = 2, point: str = "samples") -> pb.ScoreFunction:
    baseline = ControlVariate(samples, point=point)
    baseline.beta.fill_(beta)
    return pb.ScoreFunction(baseline)


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("point", ["samples", "marginals"])
@each("beta", [0.0, 1.0, -0.7])
def test_unbiased_for_every_structure_loss_and_beta(name: str, loss: str, point: str, beta: float) -> None:
    if (loss, point) == ("no gradient", "marginals"):
        with pytest.raises(RuntimeError, match="losses without a gradient"):
            _gradients(with_beta(beta, point=point), name, LOSSES[loss](SMALL[name][1]), 2)
        return
    found = _gradients(with_beta(beta, point=point), name, LOSSES[loss](SMALL[name][1]), 2)
    torch.testing.assert_close(_mean(*found[:2]), found[2], rtol=1e-7, atol=1e-9)


def test_three_samples_are_unbiased_too() -> None:
    gradients, p, exact = _gradients(with_beta(0.8, 3), "categorical", far_from_quadratic((4,)), 3)
    torch.testing.assert_close(_mean(gradients, p), exact)


@pytest.mark.parametrize("point", ["samples", "marginals"])
def test_the_formula(point: str) -> None:
    """1/S sum_i [L_i - beta <g_i, d_i> - b_i] d_i + beta J mean(g_i), one sample at a time."""
    name, beta, samples = "projective", 0.6, 3
    structure, parts, _ = SMALL[name]
    downstream = far_from_quadratic(parts)
    scores, every, _, _ = _distribution(name, downstream)
    z = every[torch.tensor([0, 2, 5])]

    def gamma(at: Tensor) -> Tensor:
        leaf = at[None].clone().requires_grad_()
        return torch.autograd.grad(downstream(leaf).sum(), leaf)[0][0]

    mu = structure.marginals(scores)
    gammas, d, losses = [gamma(each) for each in z], z - mu, downstream(z)
    others = [[j for j in range(samples) if j != i] for i in range(samples)]
    g = [torch.stack([gammas[j] for j in rest]).mean(0) if point == "samples" else gamma(mu) for rest in others]
    residual = [losses[i] - beta * (g[i] * d[i]).sum() for i in range(samples)]
    expected = torch.zeros_like(scores)
    for i in range(samples):
        baseline = torch.stack([residual[j] for j in others[i]]).mean()
        expected += (residual[i] - baseline) * d[i] / samples
    leaf = scores.clone().requires_grad_()
    expected += beta * torch.autograd.grad(structure.marginals(leaf), leaf, torch.stack(g).mean(0))[0]

    batch, weight = scores[None].clone().requires_grad_(), 3.0
    script = Scripted(structure, z[:, None])
    (weight * with_beta(beta, samples, point).objective(script, batch, downstream)).sum().backward()
    torch.testing.assert_close(batch.grad[0], weight * expected)


def test_beta_is_the_regression_that_minimises_the_variance() -> None:
    """After batches of all pairs of samples, repeated by probability, no other beta has a smaller variance."""
    name, parts = "categorical", (4,)
    downstream = far_from_quadratic(parts)
    scores = _distribution(name, downstream)[0]
    estimator = pb.ScoreFunction(ControlVariate(2, rate=0.05))
    torch.manual_seed(0)
    for _ in range(300):
        batch = scores.expand(2000, 4).clone().requires_grad_()
        estimator.objective(pb.Categorical(), batch, downstream).sum().backward()
    learned = estimator.baseline.beta.item()

    def variance(beta: float) -> float:
        gradients, p, exact = _gradients(with_beta(beta), name, downstream, 2)
        return (p * (gradients - exact).square().sum(1)).sum().item()

    best = min(torch.linspace(-2, 3, 501).tolist(), key=variance)
    assert learned == pytest.approx(best, abs=0.05)
    assert variance(learned) < variance(0.0)
    assert variance(learned) < variance(1.0)


def test_zero_variance_for_linear_losses_once_beta_is_learned() -> None:
    gradients, _, exact = _gradients(with_beta(1.0), "projective", linear((3, 3)), 2)
    torch.testing.assert_close(gradients, exact.expand_as(gradients))


def test_groups_learn_apart() -> None:
    together, alone = pb.ScoreFunction(ControlVariate(groups=2)), [pb.ScoreFunction(ControlVariate()) for _ in range(2)]
    scores, z = torch.randn(6, 4, dtype=F64), torch.eye(4, dtype=F64)[torch.randint(4, (4, 6))]
    downstream = far_from_quadratic((4,))
    for step in range(3):
        batch = (scores + step).requires_grad_()
        together.objective(Scripted(pb.Categorical(), z), batch, downstream).sum().backward()
        for i, estimator in enumerate(alone):
            part = (scores[3 * i : 3 * i + 3] + step).detach().requires_grad_()
            script = Scripted(pb.Categorical(), z[:, 3 * i : 3 * i + 3])
            estimator.objective(script, part, downstream).sum().backward()
            torch.testing.assert_close(part.grad, batch.grad[3 * i : 3 * i + 3])
    torch.testing.assert_close(together.baseline.beta, torch.cat([estimator.baseline.beta for estimator in alone]))
    with pytest.raises(ValueError, match="5 losses do not make 2 groups"):
        together.objective(pb.Categorical(), torch.zeros(5, 4, dtype=F64, requires_grad=True), downstream).sum().backward()


def test_what_is_not_finite_does_not_move_beta() -> None:
    estimator, scores = with_beta(0.5), torch.zeros(3, 4, dtype=F64, requires_grad=True)
    broken = torch.tensor([1.0, torch.nan, 1.0], dtype=F64)
    estimator.objective(pb.Categorical(), scores, lambda z: (z[:, 0] * broken).exp()).sum().backward()
    assert scores.grad[1].isnan().all()
    assert scores.grad[[0, 2]].isfinite().all()
    assert all(value.isfinite().all() for value in estimator.state_dict().values())
    before = estimator.state_dict()
    scores = torch.zeros(0, 4, requires_grad=True)
    estimator.objective(pb.Categorical(), scores, lambda z: z.sum(1)).sum().backward()
    torch.testing.assert_close(estimator.state_dict(), before)


def test_several_structures_share_their_examples_loss() -> None:
    scores = torch.randn(2, 2, dtype=F64, generator=torch.Generator().manual_seed(0))
    pairs = torch.stack([torch.stack(pair) for pair in itertools.product(torch.eye(2, dtype=F64), repeat=2)])
    downstream = far_from_quadratic((2, 2))
    leaf = scores.clone().requires_grad_()
    p = (leaf * pairs).sum((1, 2)).softmax(0)
    (exact,) = torch.autograd.grad((p * downstream(pairs)).sum(), leaf)
    chosen = torch.tensor(list(itertools.product(range(4), repeat=2)))
    batch = scores.expand(16, 2, 2).clone().requires_grad_()
    script = Scripted(pb.Categorical(), pairs[chosen].transpose(0, 1))
    with_beta(0.9).objective(script, batch, downstream).sum().backward()
    torch.testing.assert_close(_mean(batch.grad, p.detach()[chosen].prod(1)), exact)


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("loss", LOSSES)
def test_self_critical_is_unbiased(name: str, loss: str) -> None:
    gradients, p, exact = _gradients(pb.ScoreFunction(SelfCritical()), name, LOSSES[loss](SMALL[name][1]), 1)
    torch.testing.assert_close(_mean(gradients, p), exact, rtol=1e-7, atol=1e-9)


def test_self_critical_has_no_gradient_where_the_sample_is_the_argmax() -> None:
    scores = torch.tensor([[50.0, 0.0, 0.0]], requires_grad=True)
    seen: list[Tensor] = []

    def downstream(z: Tensor) -> Tensor:
        seen.append(z)
        return 7 + z[:, 0]

    torch.manual_seed(0)
    pb.ScoreFunction(SelfCritical()).objective(pb.Categorical(), scores, downstream).sum().backward()
    assert torch.equal(seen[0], seen[1])
    assert scores.grad.abs().max() == 0


def test_self_critical_uses_the_same_dropout_for_both_points() -> None:
    torch.manual_seed(0)
    scores = torch.full((64, 3), 0.0).index_fill(1, torch.tensor([0]), 60.0).requires_grad_()
    dropout = torch.nn.Dropout(0.5)
    estimator = pb.ScoreFunction(SelfCritical())
    estimator.objective(pb.Categorical(), scores, lambda z: dropout(z)[:, 0]).sum().backward()
    assert scores.grad.abs().max() == 0


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("point", ["samples", "marginals"])
@pytest.mark.parametrize("loss", ["quadratic", "smooth"])
def test_reinmax_has_its_own_expectation_with_a_control(name: str, point: str, loss: str) -> None:
    downstream = LOSSES[loss](SMALL[name][1])
    found, p, exact = _gradients(pb.ReinMax(2, point), name, downstream, 2)
    plain, p_plain, _ = _gradients(pb.ReinMax(), name, downstream, 1)
    torch.testing.assert_close(_mean(found, p), _mean(plain, p_plain), rtol=1e-7, atol=1e-9)
    if loss == "quadratic":
        torch.testing.assert_close(_mean(found, p), exact, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("point", ["samples", "marginals"])
def test_reinmax_with_a_control_is_exact_for_linear_losses(point: str) -> None:
    gradients, _, exact = _gradients(pb.ReinMax(2, point), "chain", linear((3, 2, 2)), 2)
    torch.testing.assert_close(gradients, exact.expand_as(gradients))


def test_several_samples_of_reinmax_are_the_mean_of_single_ones() -> None:
    downstream = far_from_quadratic((4,))
    pairs = _gradients(pb.ReinMax(2), "categorical", downstream, 2)[0].reshape(4, 4, 4)
    single = _gradients(pb.ReinMax(), "categorical", downstream, 1)[0]
    torch.testing.assert_close(pairs, (single[:, None] + single[None]) / 2)


def test_mistakes() -> None:
    with pytest.raises(ValueError, match="ControlVariate: samples is 1; it must be an integer of at least 2"):
        ControlVariate(1)
    with pytest.raises(ValueError, match="ControlVariate: point is 'mean'; it must be one of samples, marginals"):
        ControlVariate(point="mean")
    with pytest.raises(ValueError, match=r"ControlVariate: rate is 0; it must be in \(0, 1\]"):
        ControlVariate(rate=0)
    with pytest.raises(ValueError, match="ReinMax: samples is 1; it must be an integer of at least 2"):
        pb.ReinMax(point="samples")
    with pytest.raises(TypeError, match="cannot be used as a layer"):
        pb.ReinMax(point="marginals")(pb.Categorical(), torch.zeros(2, 3))


def test_no_further_call_of_the_decoder_for_evaluation_or_without_gradients() -> None:
    calls = []

    def downstream(z: Tensor) -> Tensor:
        calls.append(z)
        return z.sum(1)

    for estimator, training in ((pb.ScoreFunction(SelfCritical()), 2), (with_beta(1.0, 4), 4), (pb.ReinMax(2, "marginals"), 3)):
        calls.clear()
        estimator.objective(pb.Categorical(), torch.zeros(2, 3, requires_grad=True), downstream)
        assert len(calls) == training
        calls.clear()
        with torch.no_grad():
            estimator.objective(pb.Categorical(), torch.zeros(2, 3, requires_grad=True), downstream)
        assert len(calls) == {2: 1, 4: 4, 3: 2}[training]
