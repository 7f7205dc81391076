"""On a GPU, every estimator with every structure: the CPU's numbers, no waiting, training steps in CUDA graphs."""

from __future__ import annotations

import copy
from collections.abc import Iterator

import pytest
import torch
from torch import Tensor, nn

import pullback as pb
from estimators.worlds import CATEGORICAL, REGISTERED, WORLDS, Decoder, World
from pullback.estimators.registry import Entry

if not torch.cuda.is_available():
    pytest.skip("needs a GPU", allow_module_level=True)


def _further(name: str, structure: pb.Structure, *shape: int) -> World:
    scores = torch.randn(2, *shape, dtype=torch.float64, generator=torch.Generator().manual_seed(3))
    allowed = structure.allowed(torch.zeros_like(scores))
    return World(name, structure, torch.where(allowed, scores, torch.nan), allowed)


EVERY = [
    *WORLDS,
    _further("segmentations", pb.Segmentation(torch.tensor([3, 2])), 3, 2, 2),
    _further("binary-trees", pb.BinaryTree(torch.tensor([4, 3])), 4, 4),
    _further("alignments", pb.Alignment(torch.tensor([3, 2]), torch.tensor([3, 3])), 3, 3),
    _further("matchings", pb.Matching(torch.tensor([3, 2]), torch.tensor([4, 4])), 3, 4),
]
WHOLE_SEARCH = (pb.Categorical, pb.Subset, pb.DependencyTree)
"""Structures whose SparseMAP is one kernel or a closed form; the others look now and then whether it has ended."""


def _works(entry: Entry, world: World) -> bool:
    missing = set(getattr(world.structure, "missing", ())) & set(entry.inference)
    return entry.supports(world.structure) and (not missing or entry.name == "perturb-and-map")


PAIRS = [
    pytest.param(entry, world, id=f"{entry.name}-{world}") for world in EVERY for entry in REGISTERED if _works(entry, world)
]


def _reads_back(entry: Entry, world: World) -> bool:
    if isinstance(world.structure, pb.Matching):  # solved on the CPU
        return True
    return entry.reads_back or ("sparsemap" in entry.inference and not isinstance(world.structure, WHOLE_SEARCH))


@pytest.fixture
def _no_waiting() -> Iterator[None]:
    torch.cuda.set_sync_debug_mode("error")
    yield
    torch.cuda.set_sync_debug_mode("default")


class Given(pb.parts.Normal):
    """The same noise on every device."""

    def __call__(self, scores: Tensor) -> Tensor:
        noise = torch.randn(scores.shape, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
        return noise.to(scores.device, scores.dtype)


def _with_given_samples(world: World) -> World:
    """The same samples on every device: drawn on the CPU."""
    inside, structure = world.on("cpu").structure, copy.copy(world.structure)

    def sample(scores: Tensor, generator: object = None) -> Tensor:
        return inside.sample(scores.cpu(), torch.Generator().manual_seed(7)).to(scores.device)

    structure.sample = sample
    return World(world.name, structure, world.scores, world.allowed)


def _step(estimator: pb.Estimator, world: World, scores: Tensor, decoder: Decoder) -> Tensor:
    losses = estimator.objective(world.structure, scores, decoder)
    (losses * torch.linspace(-1.0, 2.0, world.size, dtype=losses.dtype, device=losses.device)).sum().backward()
    return losses.detach()


@pytest.mark.parametrize(("entry", "world"), PAIRS)
def test_as_on_the_cpu(entry: Entry, world: World) -> None:
    if entry.name == "sparse-expectation" and not isinstance(world.structure, pb.Categorical):
        pytest.skip("the decomposition is not unique")
    found = []
    for device in ("cpu", "cuda"):
        estimator = entry.make()
        for part in (estimator, getattr(estimator, "_start", None), getattr(estimator, "start", None)):
            if hasattr(part, "noise"):
                part.noise = Given()
        there = _with_given_samples(world.on(device))
        scores = there.leaf()
        losses = _step(estimator, there, scores, there.decoder())
        found.append((losses.cpu(), scores.grad.cpu()))
    torch.testing.assert_close(*reversed(found), rtol=1e-5, atol=1e-6)
    assert (found[1][1][~world.allowed] == 0).all()


@pytest.mark.parametrize(("entry", "world"), PAIRS)
def test_a_training_step_never_waits_for_the_device(entry: Entry, world: World, request: pytest.FixtureRequest) -> None:
    if _reads_back(entry, world):
        pytest.skip("documented to read back")
    world, estimator = world.on("cuda"), entry.make()
    scores, decoder = world.leaf(), world.decoder()
    _step(estimator, world, scores, decoder)
    request.getfixturevalue("_no_waiting")
    _step(estimator, world, scores, decoder)


@pytest.mark.parametrize(("entry", "world"), PAIRS)
def test_a_training_step_is_captured_in_a_cuda_graph(entry: Entry, world: World) -> None:
    if entry.reads_back or isinstance(world.structure, pb.Matching):
        pytest.skip("documented to read back")
    _captured(entry.make(), world.on("cuda"), stochastic=entry.stochastic)


@pytest.mark.parametrize("entry", [entry for entry in REGISTERED if entry.repeated == "steps"], ids=lambda entry: entry.name)
def test_many_inner_steps_are_captured_in_a_cuda_graph(entry: Entry) -> None:
    _captured(entry.make(steps=3), CATEGORICAL.on("cuda"), stochastic=False)


def _captured(estimator: pb.Estimator, world: World, stochastic: bool) -> None:
    scores, decoder = world.leaf(), world.decoder()
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(2):
            scores.grad = None
            expected = _step(estimator, world, scores, decoder)
    torch.cuda.current_stream().wait_stream(stream)
    gradient = scores.grad
    scores.grad = decoder.w.grad = None
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        losses = _step(estimator, world, scores, decoder)
    graph.replay()
    first = scores.grad.clone()
    assert losses.isfinite().all()
    assert first.isfinite().all()
    assert (first[~world.allowed] == 0).all()
    if not stochastic:
        graph.replay()
        torch.testing.assert_close((losses, scores.grad), (expected, gradient))
        return
    for _ in range(20):
        graph.replay()
        if not torch.equal(scores.grad, first):
            return
    pytest.fail("every replay has the same noise")


def test_a_great_deal_of_noise_is_finite() -> None:
    """`torch.nn.functional.gumbel_softmax` has given infinite noise, and NaN, on CUDA."""
    assert pb.parts.Gumbel()(torch.zeros(20_000_000, device="cuda")).isfinite().all()
    wide = torch.tensor([[3e4, -3e4, 0.0], [0.0, 0.0, -torch.inf]], device="cuda").repeat(5000, 1)
    for estimator in (pb.PerturbedMarginals(0.1), pb.PerturbAndMAP(0.1), pb.GumbelRao(5, 0.1)):
        scores = wide.clone().requires_grad_()
        losses = estimator.objective(pb.Categorical(), scores, lambda z: z.square().sum(-1) + z[:, 0])
        losses.sum().backward()
        assert losses.isfinite().all()
        assert scores.grad.isfinite().all()


def _problem() -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    scores = torch.randn(64, 5, generator=generator).cuda().requires_grad_()
    return scores, torch.randn(64, 5, generator=generator).cuda()


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
    decoder, seen = nn.Linear(5, 1).cuda(), []

    def downstream(z: Tensor) -> Tensor:
        outputs = decoder(z)
        seen.append(outputs.dtype)
        return outputs.float().square().sum(-1)

    with torch.autocast("cuda", torch.float16):
        losses = pb.SPIGOT(steps=3).objective(pb.Categorical(), scores, downstream)
    losses.mean().backward()
    assert seen == [torch.float16] * 3


@pytest.mark.parametrize(
    ("estimator", "name"),
    [(pb.ScoreFunction(pb.parts.MovingAverage()), "mean"), (pb.AdaptiveIMLE(rate=0.1), "alpha")],
    ids=["moving-average", "adaptive-imle"],
)
def test_state_follows_the_losses_to_the_device(estimator: pb.Estimator, name: str) -> None:
    scores, cost = _problem()
    estimator.objective(pb.Categorical(), scores, lambda z: (z * cost).sum(-1)).sum().backward()
    state = estimator.state_dict()
    key = next(key for key in state if key.endswith(name))
    assert state[key].is_cuda
    fresh = copy.deepcopy(estimator).cpu()
    fresh.load_state_dict(state)
    torch.testing.assert_close(fresh.state_dict()[key], state[key].cpu())
