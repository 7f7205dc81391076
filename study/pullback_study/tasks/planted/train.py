"""Replica groups of planted structures: seeds, learning rates and step sizes of one method, trained as one batch."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from pullback import Structure, Wrapper
from pullback_study.tasks.methods import Method
from pullback_study.tasks.planted.beds import Named, find_bed
from pullback_study.tasks.planted.config import Config, common
from pullback_study.tasks.planted.model import Parameters
from pullback_study.tasks.synthetic.model import Adam, Graphed
from pullback_study.tasks.synthetic.streams import StreamedGumbel, Streams, key
from pullback_study.tasks.task import Trainer

_MEASURES = ("accuracy", "recovery", "exact")
_OF_DATA = ("seed", "structure", "n", "noise", "share", "features", "train_examples", "validation_examples", "test_examples")


class Seeded(Wrapper):
    """A structure whose samples come from streams: one seed per example, replica by replica."""

    def __init__(self, inner: Structure, streams: Streams) -> None:
        super().__init__(inner)
        self._streams = streams

    def sample(self, scores: Tensor, generator: torch.Generator | None = None) -> Tensor:
        batch = scores.shape[: scores.dim() - self.inner.event_dims]
        return self.seeded_sample(scores, self._streams.integers(batch))


class Replicas(Trainer):
    """Trains R replicas together, each on its own data: step t takes examples t b to t b + b - 1, and begins again at the end.

    A replica's data, initialisation and noise depend on its own config alone, so that it takes the same steps in every
    group, up to rounding.

    Args:
        configs: they differ in seed, learning rate, step size, noise and share only.
        method: of all of them.
        device: `cpu` or `cuda`; on the latter a step is captured as a CUDA graph where the structure's operations can be.
    """

    def __init__(self, configs: Sequence[Config], method: Method, device: str = "cpu") -> None:
        self.configs = configs
        self.config = config = _shared(configs)
        self.step, self.steps = 0, config.steps
        self._device, self._dtype = torch.device(device), getattr(torch, config.dtype)
        self._method, self.bed = method, find_bed(config, device)
        self._train, self._validation, self._test = self._draw()
        self.parameters_of = Parameters(self.bed, encoder=method.latent, bag=method.name == "bag")
        initial = torch.stack([self.parameters_of.initial(each.seed) for each in configs])
        self.theta = initial.to(self._device, self._dtype).requires_grad_()
        self._clock = torch.zeros((), dtype=torch.int64, device=self._device)
        self._adam = Adam(self.theta, self._per_replica([each.learning_rate or 0.0 for each in configs]), self._clock)
        self._estimator = method.build(**self._offered())
        self._free = self.bed.free.to(self._device)
        self._rows: list[Tensor] = []
        self._seconds = 0.0
        self._graph = self._device.type == "cuda" and not method.reads_back
        self._advance_one: Callable[[], None] | None = None

    def advance(self, until: int, stop: Callable[[], bool]) -> None:
        if self._advance_one is None:
            self._advance_one = self._captured() if self._graph else self._update
        while self.step < until and not stop():
            began = time.perf_counter()
            last = min(until, self.step + self.config.evaluate_every - self.step % self.config.evaluate_every)
            while self.step < last and not stop():
                self._advance_one()
                self.step += 1
            if self._device.type == "cuda":
                torch.cuda.synchronize()
            self._seconds += time.perf_counter() - began
            if self.step % self.config.evaluate_every == 0:
                self._rows.append(self._evaluate(self._validation).cpu())

    def state(self) -> dict[str, Any]:
        return {
            "step": self.step,
            "parameters": self.theta.detach().cpu(),
            "adam_mean": self._adam.mean.cpu(),
            "adam_square": self._adam.square.cpu(),
            "evaluations": list(self._rows),
            "seconds": self._seconds,
            "estimator": self._estimator.state_dict() if self._estimator else {},
        }

    @torch.no_grad()
    def restore(self, state: dict[str, Any]) -> None:
        self.step, self._seconds, self._rows = state["step"], state["seconds"], list(state["evaluations"])
        self._clock.fill_(self.step)
        self.theta.copy_(state["parameters"])
        self._adam.mean.copy_(state["adam_mean"])
        self._adam.square.copy_(state["adam_square"])
        if self._estimator:
            self._estimator.load_state_dict(state["estimator"])

    def history(self) -> list[list[dict[str, Any]]]:
        return [[self._row(i, r) for i in range(len(self._rows))] for r in range(len(self.configs))]

    def latest(self) -> list[dict[str, Any]]:
        return [self._row(len(self._rows) - 1, r) for r in range(len(self.configs))] if self._rows else []

    def results(self) -> list[dict[str, Any]]:
        """After the last step; the time per step is that of the whole group."""
        found = {split: self._evaluate(of) for split, of in (("validation", self._validation), ("test", self._test))}
        more = {"step_ms": 1000 * self._seconds / self.steps, "replicas": len(self.configs)}
        return [
            {f"{split}_{name}": values[r, i].item() for split, values in found.items() for i, name in enumerate(_MEASURES)}
            | more
            for r in range(len(self.configs))
        ]

    def parameters(self) -> list[dict[str, Tensor]]:
        return [{name: value.clone() for name, value in self.parameters_of.named(row).items()} for row in self.theta.detach()]

    def _update(self) -> None:
        """One step of Adam on each replica's mean loss: a function of tensors alone."""
        config = self.config
        self._noise.begin_step()
        self._seeds.begin_step()
        rows = (self._clock * config.batch_size + torch.arange(config.batch_size, device=self._device)) % config.train_examples
        batch = {name: values.index_select(1, rows) for name, values in self._train.items()}
        named = self.parameters_of.named(self.theta)
        losses = self._losses(named, batch).view(len(self.configs), -1).mean(1)
        (gradient,) = torch.autograd.grad(losses.sum(), self.theta)
        self._adam.update(gradient)
        self._clock.add_(1)

    def _losses(self, named: Named, batch: Named) -> Tensor:
        replicas, against = len(self.configs), 1 - 2 * batch["label"]

        def downstream(z: Tensor) -> Tensor:
            logits = self.bed.logits(named, batch, z.view(replicas, -1, *z.shape[1:]))
            return F.softplus(against * logits).flatten()

        if self._estimator is None:
            return downstream(self._given(named, batch).flatten(0, 1))
        scores = self.bed.scores(named, batch).flatten(0, 1)
        return self._estimator.objective(Seeded(self.bed.structure, self._seeds), scores, downstream)

    @torch.no_grad()
    def _evaluate(self, examples: Named) -> Tensor:
        """Accuracy, the share of gold parts found and the share of whole structures, in percent, `[R, 3]`, without noise."""
        named, gold = self.parameters_of.named(self.theta), examples["gold"]
        if self._estimator is None:
            z = best = self._given(named, examples)
        else:
            scores = self.bed.scores(named, examples).flatten(0, 1)
            z, best = self._estimator.predict(self.bed.structure, scores), self.bed.structure.argmax(scores)
            z, best = z.view_as(gold), best.view_as(gold)
        right = (self.bed.logits(named, examples, z) > 0) == (examples["label"] > 0)
        found = ((best * gold) * self._free).flatten(2).sum(-1)
        wanted = (gold * self._free).flatten(2).sum(-1)
        parts = 100 * found.sum(1) / wanted.sum(1)
        if self._method.name == "bag":  # it chooses nothing
            parts = torch.full_like(parts, torch.nan)
        exact = torch.where(parts.isnan(), torch.nan, (found == wanted).double().mean(1))
        return torch.stack([100 * right.double().mean(1), parts.double(), 100 * exact], 1)

    def _given(self, named: Named, examples: Named) -> Tensor:
        """The z of a method that does not infer it, `[R, b, *parts]`."""
        if self._method.name == "bag":
            return named["bag"][:, None].expand(examples["gold"].shape)
        return examples["gold" if self._method.name == "gold" else "seen"]

    def _offered(self) -> dict[str, Any]:
        """What the replicas, equal consecutive parts of the batch, offer to an estimator: own step sizes, own noise."""
        config, batch, parts = self.config, self.config.batch_size, self._train["gold"].shape[2:]
        sizes = self._per_replica([each.step_size or 0.0 for each in self.configs]).to(self._dtype)
        keys = [key("noise", each.seed, each.learning_rate, each.step_size) for each in self.configs]
        self._noise = Streams(keys, batch * parts.numel(), self._clock)
        self._seeds = Streams([key("samples", each) for each in keys], batch, self._clock)
        return {
            "groups": len(self.configs),
            "step_size": sizes.repeat_interleave(batch).view(-1, *[1] * len(parts)),
            "steps": config.inner_steps or 1,
            "noise": StreamedGumbel(self._noise),
        }

    def _draw(self) -> list[Named]:
        """Training, validation and test examples of all replicas, `[R, count, ...]`; those of a seed are the same."""
        drawn = [_examples(Config(batch_size=1, **{name: getattr(each, name) for name in _OF_DATA})) for each in self.configs]
        return [
            {name: torch.stack([each[i][name] for each in drawn]).to(self._device, self._dtype) for name in drawn[0][i]}
            for i in range(3)
        ]

    def _captured(self) -> Callable[[], None]:
        before = self.state()
        step: Callable[[], None] = self._update
        try:
            step = Graphed(self._update)
        except RuntimeError:  # an operation that reads numbers back, such as SparseMAP of some structures
            torch.cuda.synchronize()
        self.restore(before)
        return step

    def _per_replica(self, values: Sequence[float]) -> Tensor:
        return torch.tensor(values, dtype=torch.float64, device=self._device)

    def _row(self, evaluation: int, replica: int) -> dict[str, Any]:
        values = self._rows[evaluation][replica].tolist()
        return {"step": (evaluation + 1) * self.config.evaluate_every, **dict(zip(_MEASURES, values, strict=True))}


@functools.lru_cache(maxsize=320)
def _examples(config: Config) -> list[Named]:
    """The three splits of a seed, on the CPU; kept for the next methods of the same bed."""
    bed = find_bed(config)
    generator = torch.Generator().manual_seed(key("data", config.structure, config.seed))
    planted = bed.plant(generator)
    counts = (config.train_examples, config.validation_examples, config.test_examples)
    return [bed.draw(count, planted, generator) for count in counts]


def _shared(configs: Sequence[Config]) -> Config:
    """What the replicas have in common; their own settings are those of the first."""
    if len({common(each) for each in configs}) > 1:
        raise ValueError("the replicas of a group may differ in seed, learning rate, step size, noise and share only")
    return configs[0]
