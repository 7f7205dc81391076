"""Estimators inside PyTorch's machinery: compilation, autocast, accumulation, checkpointing, several processes."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from torch import Tensor, multiprocessing, nn
from torch.utils.checkpoint import checkpoint

import pullback as pb
from estimators.worlds import WORLDS, World, surrogate
from pullback.estimators.registry import Entry

FULLGRAPH = [pb.Marginals(), pb.SparseMAP(), pb.PerturbedMarginals(), pb.STEIdentity(0.5), pb.SPIGOT(0.5), pb.Blackbox(0.5)]
BROKEN = [pb.STEIdentity(0.5, steps=2), pb.SPIGOT(0.5, steps=2), pb.SPIGOTCE(0.5), pb.SPIGOTEG(0.5)]
COMPILED = [world for world in WORLDS if world.name in ("categorical", "several-categoricals", "trees")]


@pytest.fixture(autouse=True)
def _fresh_compiler() -> Iterator[None]:
    torch.compiler.reset()
    yield
    torch.compiler.reset()


def _gradients(objective: object, world: World) -> tuple[Tensor, Tensor, Tensor]:
    torch.manual_seed(0)
    scores, w = world.leaf(), torch.linspace(1, 2, world.scores[0].numel(), dtype=torch.float64).requires_grad_()
    losses = objective(scores, w)
    losses.mean().backward()
    return losses.detach(), scores.grad, w.grad


def _objective(estimator: pb.Estimator, world: World) -> object:
    def objective(scores: Tensor, w: Tensor) -> Tensor:
        return estimator.objective(world.structure, scores, lambda z: (z.flatten(1) @ w).sin())

    return objective


@pytest.mark.parametrize("world", COMPILED, ids=str)
@pytest.mark.parametrize("estimator", FULLGRAPH, ids=repr)
def test_compiles_as_one_graph(estimator: pb.Estimator, world: World) -> None:
    objective = _objective(estimator, world)
    compiled = torch.compile(objective, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(_gradients(compiled, world), _gradients(objective, world))


@pytest.mark.parametrize("world", COMPILED, ids=str)
@pytest.mark.parametrize("estimator", FULLGRAPH, ids=repr)
def test_layers_compile_as_one_graph(estimator: pb.Estimator, world: World) -> None:
    def objective(scores: Tensor, w: Tensor) -> Tensor:
        return (estimator(world.structure, scores).flatten(1) @ w).sin()

    compiled = torch.compile(objective, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(_gradients(compiled, world), _gradients(objective, world))


@pytest.mark.parametrize("estimator", BROKEN, ids=repr)
def test_others_compile_with_graph_breaks(estimator: pb.Estimator) -> None:
    world = WORLDS[0]
    objective = _objective(estimator, world)
    compiled = torch.compile(objective, backend="aot_eager")
    torch.testing.assert_close(_gradients(compiled, world), _gradients(objective, world))


@pytest.mark.parametrize("estimator", [pb.STEIdentity(0.5, steps=3), pb.SPIGOTCE(0.5, steps=2)], ids=repr)
def test_a_compiled_decoder_is_compiled_once(estimator: pb.Estimator) -> None:
    graphs = 0

    def backend(module: torch.fx.GraphModule, inputs: list[Tensor]) -> object:
        nonlocal graphs
        graphs += 1
        return module.forward

    decoder = torch.compile(nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Linear(8, 1)), backend=backend)
    scores = torch.randn(6, 4, requires_grad=True)
    for _ in range(4):
        estimator.objective(pb.Categorical(), scores, lambda z: decoder(z).square().sum(-1)).mean().backward()
    assert graphs <= 2  # z may carry a gradient in one call and not in another


def test_autocast_is_restored_for_inner_steps(entry: Entry) -> None:
    decoder, seen = nn.Linear(4, 1), []

    def downstream(z: Tensor) -> Tensor:
        seen.append(decoder(z).dtype)
        return decoder(z).float().square().sum(-1)

    scores = torch.randn(6, 4, requires_grad=True)
    estimator = entry.make(**({entry.repeated: 3} if entry.repeated else {}))
    with torch.autocast("cpu", torch.bfloat16):
        losses = estimator.objective(pb.Categorical(), scores, downstream)
    losses.mean().backward()
    assert set(seen) == {torch.bfloat16}
    assert entry.downstream.of or len(seen) == entry.downstream.at(3)
    assert scores.grad.isfinite().all()


def test_no_autocast_is_restored_too() -> None:
    decoder, seen = nn.Linear(4, 1), []

    def downstream(z: Tensor) -> Tensor:
        seen.append(decoder(z).dtype)
        return decoder(z).square().sum(-1)

    losses = pb.SPIGOT(steps=2).objective(pb.Categorical(), torch.randn(6, 4, requires_grad=True), downstream)
    with torch.autocast("cpu", torch.bfloat16):
        losses.mean().backward()
    assert seen == [torch.float32, torch.float32]


def test_scores_from_an_encoder_under_autocast(entry: Entry) -> None:
    encoder, decoder = nn.Linear(5, 4), nn.Linear(4, 1)
    with torch.autocast("cpu", torch.bfloat16):
        scores = encoder(torch.randn(6, 5))
        losses = entry.make().objective(pb.Categorical(), scores, lambda z: decoder(z).float().square().sum(-1))
    losses.mean().backward()
    assert scores.dtype == torch.bfloat16
    assert encoder.weight.grad.dtype == torch.float32
    assert encoder.weight.grad.isfinite().all()


def test_loss_scaling_leaves_the_inner_steps_alone(deterministic: Entry) -> None:
    world, scale = WORLDS[0], 2.0**16
    estimator = deterministic.make()
    plain = surrogate(estimator, world, world.decoder())
    scaled = surrogate(estimator, world, world.decoder(), torch.full((world.size,), scale))
    torch.testing.assert_close(scaled / scale, plain)


def test_gradients_accumulate_over_parts_of_a_batch(deterministic: Entry) -> None:
    world = WORLDS[0]
    estimator, whole, w = deterministic.make(), world.leaf(), torch.ones(4, dtype=torch.float64, requires_grad=True)

    def losses(scores: Tensor) -> Tensor:
        return estimator.objective(world.structure, scores, lambda z: (z @ w).sin())

    (losses(whole).sum() / world.size).backward()
    expected = whole.grad, w.grad
    parts, w.grad = world.leaf(), None
    for part in parts.split(2):
        (losses(part).sum() / world.size).backward()
    torch.testing.assert_close((parts.grad, w.grad), expected)


@pytest.mark.parametrize("use_reentrant", [False, True])
def test_checkpointing(deterministic: Entry, use_reentrant: bool) -> None:
    world = WORLDS[0]
    objective = _objective(deterministic.make(), world)
    again = _gradients(lambda *args: checkpoint(objective, *args, use_reentrant=use_reentrant), world)
    torch.testing.assert_close(again, _gradients(objective, world))


@pytest.mark.parametrize("estimator", [pb.SPIGOT(steps=2), pb.SPIGOTCE(), pb.ScoreFunction()], ids=repr)
def test_checkpointed_decoders(estimator: pb.Estimator) -> None:
    world = WORLDS[0]

    def objective(scores: Tensor, w: Tensor) -> Tensor:
        def decoder(z: Tensor) -> Tensor:
            return (z.flatten(1) @ w).sin()

        return estimator.objective(world.structure, scores, lambda z: checkpoint(decoder, z, use_reentrant=False))

    torch.testing.assert_close(_gradients(objective, world), _gradients(_objective(estimator, world), world))


class Whole(nn.Module):
    """An encoder, a latent structure and a decoder: the module that distributed training wraps."""

    def __init__(self, estimator: pb.Estimator) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.encoder, self.decoder = nn.Linear(5, 4).double(), nn.Linear(4, 3).double()
        self.estimator = estimator

    def forward(self, x: Tensor) -> Tensor:
        return self.estimator.objective(pb.Categorical(), self.encoder(x), lambda z: self.decoder(z).square().sum(-1)).mean()


DISTRIBUTED = [pb.Marginals(), pb.SPIGOT(0.5, steps=2), pb.SPIGOTCE(0.5), pb.SPIGOTEG(0.5, steps=2)]


def _inputs() -> Tensor:
    return torch.randn(8, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(1))


def _worker(rank: int, folder: str) -> None:
    torch.set_num_threads(1)
    rendezvous = f"file://{folder}/rendezvous"
    torch.distributed.init_process_group("gloo", init_method=rendezvous, rank=rank, world_size=2)
    gradients = []
    for estimator in DISTRIBUTED:
        model = nn.parallel.DistributedDataParallel(Whole(estimator))
        model(_inputs().chunk(2)[rank]).backward()
        gradients.append([parameter.grad for parameter in model.parameters()])
    torch.save(gradients, os.path.join(folder, f"{rank}.pt"))
    while not all(os.path.exists(os.path.join(folder, f"{each}.pt")) for each in range(2)):
        time.sleep(0.01)  # the other may still read what this one sent
    # Not the ordinary way out: gloo's threads may want the interpreter's lock while it shuts down, and that aborts.
    os._exit(0)


@pytest.mark.skipif(not torch.distributed.is_available(), reason="PyTorch without distributed training")
def test_two_processes_have_the_gradient_of_the_whole_batch() -> None:
    with tempfile.TemporaryDirectory() as folder:
        multiprocessing.spawn(_worker, (folder,), nprocs=2)
        results = [torch.load(Path(folder) / f"{rank}.pt") for rank in range(2)]
    for i, estimator in enumerate(DISTRIBUTED):
        model = Whole(estimator)
        model(_inputs()).backward()
        expected = [parameter.grad for parameter in model.parameters()]
        torch.testing.assert_close(results[0][i], expected)
        torch.testing.assert_close(results[1][i], expected)
