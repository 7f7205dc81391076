"""Replicas of planted structures, each on its own data."""

from __future__ import annotations

import functools
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from pullback import Structure, StructureWrapper
from pullback_study.tasks.planted.beds import Bed, Named, Shapes, find_bed
from pullback_study.tasks.planted.task import Config
from pullback_study.tasks.replicas import Parameters, Replicas
from pullback_study.tasks.streams import StreamedGumbel, Streams, key

_OF_DATA = ("seed", "structure", "n", "noise", "share", "features", "train_examples", "validation_examples", "test_examples")


class Seeded(StructureWrapper):
    """A structure whose samples come from streams: one seed per example, replica by replica."""

    def __init__(self, inner: Structure, streams: Streams) -> None:
        super().__init__(inner)
        self._streams = streams

    def sample(self, scores: Tensor, generator: torch.Generator | None = None, *, samples: int | None = None) -> Tensor:
        scores = scores if samples is None else scores.expand(samples, *scores.shape)
        batch = scores.shape[: scores.dim() - self.inner.event_dims]
        return self.seeded_sample(scores, self._streams.integers(batch))


class Model(Parameters):
    """Encoder (not for baselines), decoder and, for a bag of parts, one weight per part: the same for all examples."""

    def __init__(self, bed: Bed, *, encoder: bool, bag: bool) -> None:
        weights: Shapes = {"bag": (tuple(bed.free.shape), 0.1)} if bag else {}
        every: Shapes = {**(bed.encoder if encoder else {}), **bed.decoder, **weights}
        super().__init__({name: shape for name, (shape, _) in every.items()})
        self._spreads = [spread for _, spread in every.values()]

    def initial(self, seed: int) -> Tensor:
        """Those of encoder and decoder do not depend on each other."""
        parts = []
        for name, size, spread in zip(self.shapes, self.sizes, self._spreads, strict=True):
            generator = torch.Generator().manual_seed(key("parameters", name, seed))
            parts.append(spread * torch.randn(size, generator=generator, dtype=torch.float64))
        return torch.cat(parts)


class PlantedReplicas(Replicas):
    """Step t takes examples t b to t b + b - 1, and begins again at the end; noise depends on the replica alone."""

    model: Model
    curve_loss = None

    def prepare(self) -> Model:
        self.bed = find_bed(self.config, str(self.device))
        drawn = [_examples(Config(batch_size=1, **{name: getattr(each, name) for name in _OF_DATA})) for each in self.configs]
        self.splits = {  # [R, count, ...]; those of a seed are the same
            split: {name: torch.stack([each[i][name] for each in drawn]).to(self.device, self.dtype) for name in drawn[0][i]}
            for i, split in enumerate(("train", "validation", "test"))
        }
        self._free = self.bed.free.to(self.device)
        return Model(self.bed, encoder=self.method.latent, bag=self.method.name == "bag")

    def offered(self) -> dict[str, Any]:
        batch, parts = self.config.batch_size, self.splits["train"]["gold"].shape[2:]
        keys = [key("noise", each.seed, each.learning_rate, each.step_size) for each in self.configs]
        self._noise = Streams(keys, batch * parts.numel(), self.clock)
        self._seeds = Streams([key("samples", each) for each in keys], batch, self.clock)
        own = {name: value for name in ("temperature", "samples") if (value := getattr(self.config, name)) is not None}
        return {
            **own, "groups": self.replicas, "step_size": self.step_sizes(batch, len(parts)),
            "steps": self.config.inner_steps or 1, "noise": StreamedGumbel(self._noise),
        }  # fmt: skip

    def losses(self, rows: Tensor, width: int) -> Tensor:
        config = self.config
        self._noise.begin_step()
        self._seeds.begin_step()
        rows = (self.clock * config.batch_size + torch.arange(config.batch_size, device=self.device)) % config.train_examples
        batch = {name: values.index_select(1, rows) for name, values in self.splits["train"].items()}
        named, against = self.model.named(self.theta), 1 - 2 * batch["label"]

        def downstream(z: Tensor) -> Tensor:
            logits = self.bed.logits(named, batch, z.view(self.replicas, -1, *z.shape[1:]))
            return F.softplus(against * logits).flatten()

        if self.estimator is None:
            return downstream(self._given(named, batch).flatten(0, 1))
        scores = self.bed.scores(named, batch).flatten(0, 1)
        return self.estimator.objective(Seeded(self.bed.structure, self._seeds), scores, downstream)

    @torch.no_grad()
    def measures(self, examples: Named, theta: Tensor) -> dict[str, Tensor]:
        """Accuracy, the share of gold parts found and the share of whole structures, in percent."""
        named, gold = self.model.named(theta), examples["gold"]
        if self.estimator is None:
            z = best = self._given(named, examples)
        else:
            scores = self.bed.scores(named, examples).flatten(0, 1)
            z, best = self.estimator.predict(self.bed.structure, scores), self.bed.structure.argmax(scores)
            z, best = z.view_as(gold), best.view_as(gold)
        right = (self.bed.logits(named, examples, z) > 0) == (examples["label"] > 0)
        found = ((best * gold) * self._free).flatten(2).sum(-1)
        wanted = (gold * self._free).flatten(2).sum(-1)
        parts = 100 * found.sum(1) / wanted.sum(1)
        if self.method.name == "bag":  # it chooses nothing
            parts = torch.full_like(parts, torch.nan)
        exact = torch.where(parts.isnan(), torch.nan, (found == wanted).double().mean(1))
        return {"accuracy": 100 * right.double().mean(1), "recovery": parts.double(), "exact": 100 * exact}

    def more(self, replica: int) -> dict[str, Any]:
        return {"step_ms": 1000 * self.seconds / max(1, self.step), "replicas": self.replicas}

    def _given(self, named: Named, examples: Named) -> Tensor:
        """The z of a method that does not infer it, `[R, b, *parts]`."""
        if self.method.name == "bag":
            return named["bag"][:, None].expand(examples["gold"].shape)
        return examples["gold" if self.method.name == "gold" else "seen"]


@functools.lru_cache(maxsize=320)
def _examples(config: Config) -> list[Named]:
    """The three splits of a seed, on the CPU; kept for the next methods of the same bed."""
    bed = find_bed(config)
    generator = torch.Generator().manual_seed(key("data", config.structure, config.seed))
    planted = bed.plant(generator)
    counts = (config.train_examples, config.validation_examples, config.test_examples)
    return [bed.draw(count, planted, generator) for count in counts]
