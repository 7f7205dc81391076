"""The costs the paper promises: calls of the decoder and of the structure's inference, counted."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
import torch
from torch import Tensor

import pullback as pb
from estimators.worlds import REGISTERED, World
from pullback.estimators.registry import Entry


class Counting(pb.Structure):
    """A structure that counts the calls of another, and remembers where projections started."""

    def __init__(self, inside: pb.Structure) -> None:
        self.inside = inside
        self.event_dims = inside.event_dims  # type: ignore[misc]
        self.calls: Counter[str] = Counter()
        self.warm_starts: list[Tensor | None] = []

    def argmax(self, scores: Tensor) -> Tensor:
        return self._counted("argmax", scores)

    def marginals(self, scores: Tensor) -> Tensor:
        return self._counted("marginals", scores)

    def sample(self, scores: Tensor, generator: torch.Generator | None = None) -> Tensor:
        return self._counted("sample", scores)

    def log_partition(self, scores: Tensor) -> Tensor:
        return self._counted("log_partition", scores)

    def sparsemap(self, scores: Tensor, *, warm_start: Any = None) -> Tensor:
        self.warm_starts.append(warm_start)
        return self._counted("sparsemap", scores, warm_start=warm_start)

    def sparsemap_solution(self, scores: Tensor, **options: Any) -> Any:
        self.calls["sparsemap"] += 1
        return self.inside.sparsemap_solution(scores, **options)

    def allowed(self, scores: Tensor) -> Tensor:
        return self.inside.allowed(scores)

    def _counted(self, operation: str, scores: Tensor, **options: Any) -> Tensor:
        self.calls[operation] += 1
        return getattr(self.inside, operation)(scores, **options)


REPEATS = {None: [1], "steps": [1, 2, 5], "samples": [2, 3]}  # k
REPEATED = [pytest.param(entry, k, id=f"{entry.name}-{k}") for entry in REGISTERED for k in REPEATS[entry.repeated]]


@pytest.mark.parametrize(("entry", "k"), REPEATED)
def test_calls_are_those_of_the_registry(entry: Entry, k: int, world: World) -> None:
    if entry.only is not None:
        pytest.skip("a wrapper is no categorical")
    structure, decoder, scores = Counting(world.structure), world.decoder(), world.leaf()
    estimator = entry.make(**({entry.repeated: k} if entry.repeated else {}))
    estimator.objective(structure, scores, decoder).mean().backward()
    if entry.downstream.of == "support":
        sizes = (world.structure.sparsemap_solution(world.scores).weights > 0).sum(-1)
        assert len(decoder.seen) == sizes.max() ** sizes.reshape(world.size, -1).shape[1]
    else:
        assert len(decoder.seen) == entry.downstream.at(k)
    assert structure.calls == {name: count.at(k) for name, count in entry.inference.items()}


@pytest.mark.parametrize("kind", [pb.STEIdentity, pb.SPIGOT])
def test_one_step_from_the_argmax_calls_the_decoder_once(world: World, kind: type[pb.SPIGOT]) -> None:
    decoder, scores = world.decoder(), world.leaf()
    kind().objective(world.structure, scores, decoder).mean().backward()
    assert len(decoder.seen) == 1


@pytest.mark.parametrize("kind", [pb.SPIGOT, pb.SPIGOTCE])
def test_projections_are_warm_started_at_the_argmax(world: World, kind: type[pb.SPIGOT]) -> None:
    structure, scores = Counting(world.structure), world.leaf()
    kind(steps=2).objective(structure, scores, world.decoder()).mean().backward()
    assert len(structure.warm_starts) == 2
    for start in structure.warm_starts:
        torch.testing.assert_close(start, world.structure.argmax(world.scores))


def test_evaluation_costs_one_inference(entry: Entry, world: World) -> None:
    if entry.only is not None:
        pytest.skip("a wrapper is no categorical")
    structure = Counting(world.structure)
    entry.make().predict(structure, world.scores)
    assert structure.calls.total() == 1


def test_gumbel_rao_costs_one_softmax_for_all_its_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: Counter[str] = Counter()
    for operation in ("argmax", "sample", "marginals"):
        original = getattr(pb.Categorical, operation)

        def counted(self: pb.Categorical, scores: Tensor, operation: str = operation, original: Any = original) -> Tensor:
            calls[operation] += 1
            return original(self, scores)

        monkeypatch.setattr(pb.Categorical, operation, counted)
    scores = torch.zeros(2, 3, requires_grad=True)
    pb.GumbelRao(50, 0.5).objective(pb.Categorical(), scores, lambda z: z[:, 0]).sum().backward()
    assert (calls["sample"], calls["marginals"]) == (1, 1)


@pytest.mark.parametrize("estimator", [pb.PerturbedArgmax(samples=7), pb.IMLE(1.0, samples=7)], ids=repr)
def test_all_samples_go_through_one_call(world: World, estimator: pb.Estimator) -> None:
    structure, scores = Counting(world.structure), world.leaf()
    estimator.objective(structure, scores, world.decoder()).mean().backward()
    assert structure.calls["argmax"] <= 2
