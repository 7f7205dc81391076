"""The promises of every estimator, generated from the registry: a new entry inherits them."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from torch import Tensor

import pullback as pb
from each import each
from estimators.worlds import CATEGORICAL, Decoder, World, supported, surrogate
from pullback.estimators.config import Configured
from pullback.estimators.registry import ENTRIES, Entry, create, lookup
from pullback.estimators.sparse_expectation import support


def _losses_and_gradients(entry: Entry, world: World, weights: Tensor, seed: int = 0) -> tuple[Tensor, Tensor, Decoder]:
    supported(entry, world)
    torch.manual_seed(seed)
    decoder, scores = world.decoder(), world.leaf()
    losses = entry.make().objective(world.structure, scores, decoder)
    (weights * losses).sum().backward()
    assert scores.grad is not None
    return losses.detach(), scores.grad, decoder


def _samples(entry: Entry) -> int:
    """How many z the decoder sees for each example at default options."""
    return entry.options["samples"].default if entry.repeated == "samples" else 1


def _forward(entry: Entry, world: World, decoder: Decoder, fresh: Decoder) -> Tensor:
    """The losses of the z of the forward pass: the last ones, since inner steps at default options come before it."""
    if entry.name == "sparse-expectation":
        _, weights = support(world.structure, world.scores)
        weights = weights.reshape(world.size, -1, weights.shape[-1])
        slots = itertools.product(range(weights.shape[-1]), repeat=weights.shape[1])
        joint = [torch.stack([weights[:, t, a] for t, a in enumerate(slot)]).prod(0) for slot in slots]
        return sum(w * fresh(z) for w, z in zip(joint, decoder.seen, strict=True))
    return torch.stack([fresh(z) for z in decoder.seen[-_samples(entry) :]]).mean(0)


def test_the_losses_are_those_of_the_forward_pass(entry: Entry, world: World) -> None:
    losses, _, decoder = _losses_and_gradients(entry, world, torch.ones(world.size))
    torch.testing.assert_close(losses, _forward(entry, world, decoder, world.decoder()).detach())


def test_weights_change_the_gradient_linearly(entry: Entry, world: World) -> None:
    weights = torch.linspace(-2.0, 3.0, world.size, dtype=torch.float64)
    _, plain, _ = _losses_and_gradients(entry, world, torch.ones(world.size))
    _, weighted, _ = _losses_and_gradients(entry, world, weights)
    torch.testing.assert_close(weighted, weights.reshape(-1, *[1] * (plain.dim() - 1)) * plain)


def test_mean_and_sum_differ_by_the_batch_size_alone(entry: Entry, world: World) -> None:
    _, summed, _ = _losses_and_gradients(entry, world, torch.ones(world.size))
    _, mean, _ = _losses_and_gradients(entry, world, torch.full((world.size,), 1 / world.size))
    torch.testing.assert_close(world.size * mean, summed)


def test_a_weight_of_zero_gives_a_zero_gradient(entry: Entry, world: World) -> None:
    weights = torch.ones(world.size)
    weights[0] = 0.0
    _, found, _ = _losses_and_gradients(entry, world, weights)
    assert (found[0] == 0).all()
    assert found.isfinite().all()


@pytest.mark.parametrize("name", ["sfe", "ste-i", "spigot"])
def test_a_weight_of_zero_hides_an_infinite_loss(name: str) -> None:
    scores, divisor = CATEGORICAL.leaf(), torch.ones(CATEGORICAL.size, dtype=torch.float64)
    divisor[0] = 0.0
    losses = create(name).objective(CATEGORICAL.structure, scores, lambda z: (1 + z[:, 0]) / divisor)
    assert losses[0] == torch.inf
    losses[1:].sum().backward()
    assert scores.grad is not None
    assert (scores.grad[0] == 0).all()


def test_every_gradient_is_exactly_zero_on_padding_and_forbidden_parts(entry: Entry, world: World) -> None:
    largest = []
    for seed in range(8 if entry.stochastic else 1):  # samples may all be equal, and labels where they started
        _, found, _ = _losses_and_gradients(entry, world, torch.ones(world.size), seed)
        assert (found[~world.allowed] == 0).all()
        largest.append(found[world.allowed].abs().max().item())
    assert max(largest) > 0


@each("k", [1, 3])
def test_downstream_never_sees_padding_nor_forbidden_parts(entry: Entry, world: World, k: int) -> None:
    supported(entry, world)
    estimator = entry.make(**({"steps": k} if entry.repeated == "steps" else {}))
    decoder = world.decoder()
    surrogate(estimator, world, decoder)
    for z in decoder.seen:
        assert (z[~world.allowed] == 0).all()


def test_the_decoders_gradient_is_the_ordinary_one_at_the_forward_z(entry: Entry, world: World) -> None:
    _, _, decoder = _losses_and_gradients(entry, world, torch.ones(world.size))
    fresh = world.decoder()
    _forward(entry, world, decoder, fresh).sum().backward()
    torch.testing.assert_close(decoder.w.grad, fresh.w.grad)


@pytest.mark.parametrize("k", [2, 5])
@pytest.mark.parametrize("entry", [e for e in ENTRIES if e.repeated == "steps"], ids=lambda entry: entry.name)
def test_many_steps_do_not_leak_into_the_decoders_gradient(entry: Entry, world: World, k: int) -> None:
    decoder, fresh = world.decoder(), world.decoder()
    surrogate(entry.make(steps=k), world, decoder)
    fresh(world.structure.argmax(world.scores)).sum().backward()
    torch.testing.assert_close(decoder.w.grad, fresh.w.grad)


def test_examples_do_not_touch_each_other(deterministic: Entry) -> None:
    estimator, world = deterministic.make(), CATEGORICAL
    decoder = world.decoder()
    together = surrogate(estimator, world, decoder)
    for b in range(world.size):
        scores = world.scores[b : b + 1].clone().requires_grad_()

        def alone(z: Tensor, b: int = b) -> Tensor:
            return decoder(torch.zeros_like(world.scores).index_copy(0, torch.tensor([b]), z))[b : b + 1]

        estimator.objective(world.structure, scores, alone).sum().backward()
        torch.testing.assert_close(scores.grad[0], together[b])


def test_no_inner_steps_where_no_gradient_is_wanted(entry: Entry, world: World) -> None:
    supported(entry, world)
    decoder = world.decoder()
    with torch.no_grad():
        entry.make().objective(world.structure, world.leaf(), decoder)
    entry.make().objective(world.structure, world.scores, decoder).sum().backward()
    if not entry.downstream.of:
        assert len(decoder.seen) == 2 * _samples(entry)
    assert decoder.w.grad is not None


@each(
    "empty",
    [(pb.Categorical(), (0, 4)), (pb.DependencyTree(), (0, 3, 3)), (pb.LinearChain(), (0, 3, 2, 2)), (pb.Subset(1), (0, 3))],
)
def test_an_empty_batch_has_no_losses(entry: Entry, empty: tuple[pb.Structure, tuple[int, ...]]) -> None:
    structure, shape = empty
    if not entry.supports(structure):
        pytest.skip(f"{entry.name} is for {entry.only.__name__} only")
    scores = torch.zeros(shape, requires_grad=True)
    losses = entry.make().objective(structure, scores, lambda z: z.flatten(1).sum(1).square())
    losses.sum().backward()
    assert losses.shape == (0,)
    assert scores.grad.shape == shape


@each("empty", [(pb.Categorical(), (2, 0, 3)), (pb.DependencyTree(), (2, 0, 3, 3))])
def test_examples_without_structures_have_the_decoders_losses(
    entry: Entry, empty: tuple[pb.Structure, tuple[int, ...]]
) -> None:
    structure, shape = empty
    if not entry.supports(structure):
        pytest.skip(f"{entry.name} is for {entry.only.__name__} only")
    scores, bias = torch.zeros(shape, requires_grad=True), torch.tensor([1.0, 3.0], requires_grad=True)
    losses = entry.make().objective(structure, scores, lambda z: z.flatten(1).sum(1) + bias)
    losses.sum().backward()
    assert losses.tolist() == [1.0, 3.0]
    assert scores.grad.shape == shape
    assert bias.grad.tolist() == [1.0, 1.0]


def test_a_single_structure_needs_no_batch(entry: Entry) -> None:
    scores = torch.tensor([0.3, 0.1, -2.0], requires_grad=True)
    cost = torch.tensor([1.0, 0.0, 2.0])
    entry.make().objective(pb.Categorical(), scores, lambda z: (z * cost).sum().square()).backward()
    assert scores.grad is not None
    assert scores.grad.shape == (3,)


def test_losses_that_are_not_per_example_are_refused(entry: Entry) -> None:
    scores = torch.zeros(6, 3, requires_grad=True)
    with pytest.raises(ValueError, match=r"shape \[\] for scores of shape \[6, 3\].*reduction='none'"):
        entry.make().objective(pb.Categorical(), scores, lambda z: z.square().mean())
    with pytest.raises(TypeError, match="downstream returned float"):
        entry.make().objective(pb.Categorical(), scores, lambda z: 0.5)


@each("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_dtypes(entry: Entry, dtype: torch.dtype) -> None:
    scores = CATEGORICAL.scores.to(dtype).requires_grad_()
    losses = entry.make().objective(pb.Categorical(), scores, lambda z: z.square().sum(-1) + z[:, 0])
    losses.mean().backward()
    assert losses.dtype == dtype
    assert scores.grad is not None
    assert scores.grad.dtype == dtype
    assert scores.grad.isfinite().all()


TWICE = (
    "marginals", "sparsemap", "perturbed-marginals", "perturbed-sparsemap", "perturb-and-map", "ste-s", "sampled-ste",
    "gumbel-rao", "sparse-expectation", "entmax",
)  # fmt: skip


def test_a_second_derivative_is_an_error_or_right(entry: Entry) -> None:
    scores = torch.zeros(2, 3, requires_grad=True)
    losses = entry.make().objective(pb.Categorical(), scores, lambda z: z.square().sum(-1) + z[:, 0])
    (first,) = torch.autograd.grad(losses.sum(), scores, create_graph=True)
    if entry.name in TWICE:
        first.square().sum().backward()
    else:
        with pytest.raises(NotImplementedError, match="no second derivative"):
            first.square().sum().backward()


class TwoOfFour(pb.Structure):
    """A user's own structure, which defines nothing but its argmax."""

    def argmax(self, scores: Tensor) -> Tensor:
        return torch.zeros_like(scores).scatter(-1, scores.topk(2, dim=-1).indices, 1.0)


@pytest.mark.parametrize("name", ["sparsemap", "ste-i", "spigot"])
def test_a_structure_with_an_argmax_alone_is_enough_for_some(name: str) -> None:
    world = World("two-of-four", TwoOfFour(), CATEGORICAL.scores, CATEGORICAL.allowed)
    gradient = surrogate(create(name), world, world.decoder())
    assert gradient.abs().sum() > 0
    if name == "spigot":
        torch.testing.assert_close(gradient.sum(-1), torch.zeros(world.size, dtype=torch.float64))


def test_others_say_what_is_missing() -> None:
    world = World("two-of-four", TwoOfFour(), CATEGORICAL.scores, CATEGORICAL.allowed)
    with pytest.raises(NotImplementedError, match=r"TwoOfFour does not define `marginals`.*SPIGOT"):
        surrogate(pb.SPIGOTCE(), world, world.decoder())


def test_names_find_their_estimators(entry: Entry) -> None:
    for name in (entry.name, *entry.aliases):
        assert lookup(name) is entry
        assert create(name).same_options(entry.make())


def test_names_are_unique() -> None:
    names = [name for entry in ENTRIES for name in (entry.name, *entry.aliases)]
    assert len(names) == len(set(names))


def test_options_reach_the_estimator(entry: Entry) -> None:
    values = {
        "step_size": 0.25, "steps": 3, "temperature": 2.0, "factor": 0.5, "groups": 2, "samples": 4, "alpha": 1.25,
        "rate": 0.5, "decay": 0.25, "symmetric": True, "rho": 3.0, "side": "upper", "sigma": 0.7, "center": False,
        "scale": False, "point": "marginals",
    }  # fmt: skip
    for name in entry.options:
        options = create(entry.name, **{name: values[name]}).options()
        inside = [options, *(value.options() for value in options.values() if isinstance(value, Configured))]
        assert values[name] in [each.get(name) for each in inside]


def test_mistakes_name_the_nearest() -> None:
    with pytest.raises(ValueError, match=r"there is no estimator 'spigot-cee'; did you mean 'spigot-ce'"):
        create("spigot-cee")
    with pytest.raises(ValueError, match=r"'spigot' has no option 'stepsize'; did you mean 'step_size'"):
        create("spigot", stepsize=1.0)
    with pytest.raises(ValueError, match="'marginals' has no option 'steps'; it has none"):
        create("marginals", steps=1)


@each("scores", [np.zeros((2, 3)), [[0.0, 1.0]], None])
def test_scores_that_are_no_tensor_are_refused(entry: Entry, scores: object) -> None:
    with pytest.raises(TypeError, match=r"scores of type \w+; they must be a tensor: use torch.as_tensor"):
        entry.make().objective(pb.Categorical(), scores, lambda z: z.sum(-1))
    with pytest.raises(TypeError, match=r"a structure of type Tensor; it must be a Structure, such as Categorical\(\)"):
        entry.make()(torch.zeros(2, 3), pb.Categorical())
