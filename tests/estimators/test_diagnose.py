"""`pb.diagnose`: the exact gradients against formulas and finite differences, and the measures against their definitions."""

from __future__ import annotations

import sys

import pytest
import torch
from torch import Tensor, nn

import pullback as pb
from pullback.estimators.diagnostics import markdown_table, plot

COST = torch.tensor([1.0, -2.0, 0.5, 3.0], dtype=torch.float64)
_TRANSITIONS = torch.tensor([[1.5, -1.0], [0.5, -2.0]])
SMALL = {
    "categorical": (pb.Categorical(), (2, 4)),
    "several": (pb.Categorical(), (2, 2, 3)),
    "subset": (pb.Subset(2, torch.tensor([4, 3])), (2, 4)),
    "chain": (pb.LinearChain(torch.tensor([3, 2])), (2, 3, 2, 2)),
    "tree": (pb.DependencyTree(torch.tensor([3, 2])), (2, 3, 3)),
    "segmentation": (pb.Segmentation(), (2, 3, 2, 2)),
    "binary": (pb.BinaryTree(), (2, 3, 3)),
    "alignment": (pb.Alignment(), (2, 2, 3)),
    "factored": (pb.FactoredChain(_TRANSITIONS, torch.tensor([0.5, -1.0]), lengths=torch.tensor([3, 2])), (2, 3, 2)),
    "path": (pb.ShortestPath([(0, 1), (1, 3), (0, 2), (2, 3), (1, 2), (7, 8)], 0, 3), (2, 6)),
    "grid": (pb.ShortestPath.grid(2, 3), (2, 2, 3)),
}


def _world(name: str) -> tuple[pb.Structure, Tensor, object]:
    structure, shape = SMALL[name]
    scores = torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    cost = torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    return structure, scores, lambda z: (z * cost).flatten(1).sum(1).square()


@pytest.mark.parametrize("name", SMALL)
def test_the_relaxed_reference_is_the_gradient_of_the_marginals(name: str) -> None:
    structure, scores, downstream = _world(name)
    leaf = scores.clone().requires_grad_()
    (exact,) = torch.autograd.grad(downstream(structure.marginals(leaf)).sum(), leaf)
    found = pb.diagnose(pb.Marginals(), structure, scores, downstream, reference="relaxed")
    torch.testing.assert_close(found.exact, exact)
    assert found.bias < 1e-9
    assert found.cosine == pytest.approx(1.0)
    assert (found.variance, found.draws) == (0.0, 1)


@pytest.mark.parametrize("name", SMALL)
def test_the_expected_reference_is_that_of_linear_losses_for_relaxations(name: str) -> None:
    structure, scores, _ = _world(name)
    cost = torch.randn(scores.shape, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    found = pb.diagnose(pb.Marginals(), structure, scores, lambda z: (z * cost).flatten(1).sum(1))
    assert found.bias < 1e-9 * (1 + found.exact.norm())


@pytest.mark.parametrize("name", ["categorical", "several", "subset", "chain", "tree", "factored"])
def test_unbiased_estimators_have_no_bias_beyond_their_noise(name: str) -> None:
    torch.manual_seed(0)
    structure, scores, downstream = _world(name)
    for estimator in (pb.ReinMax(), pb.ScoreFunction(pb.parts.LeaveOneOut(2))):
        found = pb.diagnose(estimator, structure, scores, downstream, draws=2000)
        assert found.bias < 4 * (found.variance / 2000) ** 0.5
        assert found.draws == 2000


@pytest.mark.parametrize("noise", [pb.parts.Gumbel(), lambda scores: pb.parts.Gumbel()(scores)], ids=["score", "differences"])
def test_the_perturbed_reference_is_the_expected_one_for_gumbel_noise_on_a_categorical(noise: object) -> None:
    torch.manual_seed(0)
    scores = torch.tensor([[0.5, 0.0, -0.5, 1.0]], dtype=torch.float64)

    def downstream(z: Tensor) -> Tensor:
        return (z @ COST).square()

    exact = pb.diagnose(pb.Marginals(), pb.Categorical(), scores, downstream).exact
    found = pb.diagnose(pb.IMLE(1.0, noise=noise), pb.Categorical(), scores, downstream, draws=10, reference="perturbed")
    assert found.standard_error.max() < 0.1
    assert ((found.exact - exact).abs() < 5 * found.standard_error + 0.02).all()


def _from_perturbed(temperature: float, noise: object = None) -> pb.PulledBack:
    return pb.PulledBack(pb.losses.Perceptron(), pb.parts.FromPerturbedArgmax(temperature, noise), pb.parts.Unconstrained(1.0))


@pytest.mark.parametrize(
    ("estimator", "temperature"),
    [
        (pb.AdaptiveIMLE(temperature=0.5), 0.5),
        (_from_perturbed(0.5), 0.5),
        (pb.Standardized(pb.Standardized(_from_perturbed(0.5))), 0.5),
        (pb.PerturbedArgmax(0.5), 0.5),
        (pb.PerturbAndMAP(temperature=0.5), 1.0),
        (pb.SPIGOT(), 1.0),
    ],
    ids=repr,
)
def test_the_perturbed_reference_has_the_estimators_temperature(estimator: pb.Estimator, temperature: float) -> None:
    """argmax(s + T g) with Gumbel noise is a sample of softmax(s / T)."""
    torch.manual_seed(0)
    scores = torch.tensor([[0.5, 0.0, -0.5, 1.0]], dtype=torch.float64)
    leaf = scores.clone().requires_grad_()
    ((leaf / temperature).softmax(-1) @ COST.square()).sum().backward()
    found = pb.diagnose(estimator, pb.Categorical(), scores, lambda z: (z @ COST).square(), draws=10, reference="perturbed")
    assert ((found.exact - leaf.grad).abs() < 5 * found.standard_error).all()


def test_the_perturbed_reference_has_the_estimators_noise() -> None:
    """With normal noise, the first of two classes is the argmax with probability Phi((s_0 - s_1) / (sqrt(2) T))."""
    torch.manual_seed(0)
    leaf = torch.tensor([[0.2, -0.3]], dtype=torch.float64, requires_grad=True)
    torch.special.ndtr((leaf[:, 0] - leaf[:, 1]) / 2**0.5 / 0.5).sum().backward()
    for estimator in (pb.AdaptiveIMLE(temperature=0.5, noise=pb.parts.Normal()), _from_perturbed(0.5, pb.parts.Normal())):
        found = pb.diagnose(estimator, pb.Categorical(), leaf.detach(), lambda z: z[:, 0], draws=10, reference="perturbed")
        assert ((found.exact - leaf.grad).abs() < 5 * found.standard_error).all()


def test_the_measures_are_their_definitions() -> None:
    found = pb.diagnose(pb.STEIdentity(), pb.Categorical(), torch.zeros(1, 4).double(), lambda z: z @ COST)
    p = torch.full((4,), 0.25, dtype=torch.float64)
    exact = p * (COST - p @ COST)
    torch.testing.assert_close(found.exact[0], exact)
    torch.testing.assert_close(found.mean[0], COST)
    assert found.bias == pytest.approx((COST - exact).norm().item())
    cosine = (COST @ exact / COST.norm() / exact.norm()).item()
    assert found.cosine == found.single_cosine == pytest.approx(cosine)
    assert found.scaled_bias == found.scaled_error == pytest.approx(exact.norm().item() * (1 - cosine**2) ** 0.5)
    assert found.zeros == 0
    assert (found.decoder_calls, found.inference_calls, found.operations) == (1, 1, {"argmax": 1})


def test_calls_are_those_of_one_training_step() -> None:
    scores, two = torch.randn(1, 4), pb.SPIGOTCE(steps=2)
    found = pb.diagnose(two, pb.Categorical(), scores, lambda z: z @ COST.float(), draws=5)
    assert found.decoder_calls == 3
    assert found.operations == {"argmax": 1, "marginals": 1, "sparsemap": 2}
    found = pb.diagnose(pb.GumbelRao(5, 0.5), pb.Categorical(), scores, lambda z: z @ COST.float(), draws=5)
    assert found.operations == {"sample": 1, "marginals": 1}


def test_a_single_structure_a_module_and_a_function_that_cannot_be_mapped() -> None:
    torch.manual_seed(0)
    decoder = nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 1))
    scores = torch.randn(4)
    found = pb.diagnose(pb.ReinMax(), pb.Categorical(), scores, lambda z: decoder(z)[0], draws=20)
    assert found.exact.shape == found.mean.shape == (4,)

    def stubborn(z: Tensor) -> Tensor:
        losses = decoder(z)[0]
        return losses if losses.item() < 1e9 else losses + 1

    torch.manual_seed(0)
    again = pb.diagnose(pb.STEMarginals(), pb.Categorical(), scores, stubborn, draws=20)
    torch.testing.assert_close(again.exact, found.exact)


@pytest.mark.parametrize("reference", ["expected", "relaxed", "perturbed"])
def test_a_wrapper_is_diagnosed_like_the_structure_inside(reference: str) -> None:
    structure, scores, downstream = _world("tree")
    wrapped = pb.StructureWrapper(pb.StructureWrapper(structure))
    found = []
    for each in (structure, wrapped):
        torch.manual_seed(0)
        found.append(pb.diagnose(pb.SampledSTE(), each, scores, downstream, draws=20, reference=reference))
    torch.testing.assert_close(found[1].exact, found[0].exact)
    torch.testing.assert_close(found[1].mean, found[0].mean)
    assert found[1].operations == found[0].operations
    assert structure.lengths.tolist() == [3, 2]


def test_the_estimators_state_is_left_alone() -> None:
    estimator = pb.AdaptiveIMLE()
    pb.diagnose(estimator, pb.Categorical(), torch.randn(1, 4), lambda z: z @ COST.float(), draws=5)
    assert estimator.alpha == 1.0


def test_mistakes_are_named() -> None:
    arguments = (pb.Categorical(), torch.zeros(1, 4), lambda z: z[:, 0])
    with pytest.raises(ValueError, match="reference is 'true'; it must be one of expected, relaxed, perturbed"):
        pb.diagnose(pb.SPIGOT(), *arguments, reference="true")
    with pytest.raises(ValueError, match="draws is 0"):
        pb.diagnose(pb.SPIGOT(), *arguments, draws=0)
    for silent in (pb.IMLE(1.0, temperature=0.0), pb.AdaptiveIMLE(temperature=0.0), _from_perturbed(0.0)):
        with pytest.raises(ValueError, match="has no noise"):
            pb.diagnose(silent, *arguments, reference="perturbed")
    with pytest.raises(ValueError, match="use a smaller example"):
        pb.diagnose(pb.SPIGOT(), pb.Categorical(), torch.zeros(1, 8, 10), lambda z: z[:, 0, 0])


def test_table_and_plot(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = [0.1, 1.0]
    curve = [pb.diagnose(pb.SPIGOT(step), pb.Categorical(), torch.zeros(1, 4), lambda z: z @ COST.float()) for step in steps]
    table = markdown_table({"spigot": curve[0]}, ("cosine", "decoder_calls"))
    assert table.splitlines()[0] == "| estimator | cosine | decoder calls |"
    assert table.splitlines()[2].startswith("| spigot |")
    pytest.importorskip("matplotlib").use("Agg")
    figure = plot({"spigot": curve}, steps, label="step size", measures=("cosine",))
    assert figure.axes[0].get_xlabel() == "step size"
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match="pip install matplotlib"):
        plot({"spigot": curve}, steps, label="step size")
