"""Replica groups: seeds, learning rates and step sizes of one method and setting, trained as one batched model."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from pullback_study.tasks.synthetic.data import Split, generate, v_measure
from pullback_study.tasks.synthetic.methods import METHODS
from pullback_study.tasks.synthetic.model import Adam, Examples, Graphed, Model, Outputs
from pullback_study.tasks.synthetic.streams import StreamedCategorical, StreamedGumbel, Streams, key
from pullback_study.tasks.synthetic.task import Config
from pullback_study.tasks.task import Trainer

_MEASURES = ("loss", "accuracy", "v_measure")


class ReplicaGroup(Trainer):
    """Trains R = S x G replicas together: S seeds, each with its own data, and G settings for each seed.

    A replica's data, initialisation and noise depend on its own config alone, so that it takes the same steps
    in every group, up to rounding.

    Args:
        configs: seed by seed, the same number for each; they differ in seed, learning rate and step size only.
        device: `cpu` or `cuda`; on the latter a step is captured as a CUDA graph.
        graph: False to launch the kernels of each step one by one, also on a GPU.
    """

    def __init__(self, configs: Sequence[Config], device: str = "cpu", *, graph: bool = True) -> None:
        self.configs = configs
        self.config = config = _shared(configs)
        seeds = list(dict.fromkeys(each.seed for each in configs))
        self.replicas, self._per_seed = len(configs), len(configs) // len(seeds)
        if [each.seed for each in configs] != [seed for seed in seeds for _ in range(self._per_seed)]:
            raise ValueError(f"a group has the same number of replicas for each seed; got {[c.seed for c in configs]}")
        self.step, self.steps = 0, config.steps
        self._dtype = getattr(torch, config.dtype)
        self._device = torch.device(device)
        self._method = METHODS[config.estimator]
        self._graph = graph and self._device.type == "cuda" and not self._method.reads_back
        self._advance_one: Callable[[], None] | None = None
        self._evaluations: list[Tensor] = []

        self._load_data(seeds)
        self._clock = torch.zeros((), dtype=torch.int64, device=self._device)
        self._estimator = self._method.build(**self._offered())
        # Without checks of values: they wait for the device, and a replica that diverges must not stop the others.
        self._structure = StreamedCategorical(self._streams.gumbel, validate=False)
        self.model = Model(
            classes=1 if config.estimator == "linear" else config.clusters,
            features=config.features,
            encoder=self._estimator is not None,
        )
        self._known = self._given(self._train) if self._estimator is None else None
        initial = torch.stack([self.model.initial(each.seed) for each in configs])
        self.theta = initial.to(self._device, self._dtype).requires_grad_()
        self._adam = Adam(self.theta, self._per_replica([each.learning_rate or 0.0 for each in configs]), self._clock)
        self._loss = torch.zeros(self.replicas, dtype=self._dtype, device=self._device)
        self.decoder_calls = 0

    def advance(self, until: int, stop: Callable[[], bool]) -> None:
        if self._advance_one is None:
            self._advance_one = self._captured() if self._graph else self._update
        while self.step < until and not stop():
            self._advance_one()
            self.step += 1
            if self.step % self.config.evaluate_every == 0:
                measures = self._evaluate(self._validation)
                self._evaluations.append(torch.cat([self._loss[:, None].double(), measures], 1).cpu())

    def state(self) -> dict[str, Any]:
        return {
            "step": self.step,
            "parameters": self.theta.detach().cpu(),
            "adam_mean": self._adam.mean.cpu(),
            "adam_square": self._adam.square.cpu(),
            "loss": self._loss.cpu(),
            "evaluations": list(self._evaluations),
            "decoder_calls": self.decoder_calls,
            "estimator": self._estimator.state_dict() if self._estimator else {},
        }

    @torch.no_grad()
    def restore(self, state: dict[str, Any]) -> None:
        self.step = state["step"]
        self._clock.fill_(self.step)
        self.theta.copy_(state["parameters"])
        self._adam.mean.copy_(state["adam_mean"])
        self._adam.square.copy_(state["adam_square"])
        self._loss.copy_(state["loss"])
        self._evaluations = list(state["evaluations"])
        self.decoder_calls = state["decoder_calls"]
        if self._estimator:
            self._estimator.load_state_dict(state["estimator"])

    def history(self) -> list[list[dict[str, Any]]]:
        return [[self._row(i, r) for i in range(len(self._evaluations))] for r in range(self.replicas)]

    def latest(self) -> list[dict[str, Any]]:
        last = len(self._evaluations) - 1
        return [self._row(last, r) for r in range(self.replicas)] if self._evaluations else []

    def results(self) -> list[dict[str, Any]]:
        validation, test = self._evaluate(self._validation).tolist(), self._evaluate(self._test).tolist()
        return [
            {
                "validation_accuracy": validation[r][0],
                "validation_v_measure": validation[r][1],
                "test_accuracy": test[r][0],
                "test_v_measure": test[r][1],
                "loss": self._loss[r].item(),
                "decoder_calls": self.decoder_calls,
            }
            for r in range(self.replicas)
        ]

    def parameters(self) -> list[dict[str, Tensor]]:
        return [{name: value.clone() for name, value in self.model.named(row).items()} for row in self.theta.detach()]

    def _update(self) -> None:
        """One step of Adam on each replica's mean loss: a function of tensors alone."""
        self.decoder_calls = 0
        self._streams.begin_step()
        outputs = self.model.outputs(self.theta, self._train.x)
        loss = self._losses(outputs).view(self.replicas, -1).mean(1)
        (gradient,) = torch.autograd.grad(loss.sum(), self.theta)
        if self.config.gamma_scale == "paper":  # the surrogate as it is: not divided by n once more
            gradient[:, : sum(self.model.sizes[:2])] *= self.config.train_examples
        self._adam.update(gradient)
        self._loss.copy_(loss.detach())
        self._clock.add_(1)

    def _captured(self) -> Callable[[], None]:
        before = self.state()
        step = Graphed(self._update)
        calls = self.decoder_calls  # a replay does not run the Python that counts
        self.restore(before)
        self.decoder_calls = calls
        return step

    def _losses(self, outputs: Outputs) -> Tensor:
        def downstream(z: Tensor) -> Tensor:
            self.decoder_calls += 1
            return F.softplus(self._against * outputs.logits(z))

        if self._estimator is None:
            assert self._known is not None
            return downstream(self._known)
        return self._estimator.objective(self._structure, outputs.scores, downstream)

    @torch.no_grad()
    def _evaluate(self, examples: Examples) -> Tensor:
        """Accuracy and V-measure in percent, `[R, 2]`, without noise."""
        outputs = self.model.outputs(self.theta, examples.x)
        if self._estimator is None:
            z = clusters = self._given(examples)
        else:
            z = self._estimator.predict(self._structure, outputs.scores)
            clusters = self._estimator.predict(self._structure, outputs.scores, argmax=True)
        right = (outputs.logits(z).view(self.replicas, -1) > 0) == (self._spread(examples.y) > 0)
        counts = self._spread(examples.z).mT @ clusters.view(self.replicas, -1, clusters.shape[-1])
        accuracy = right.double().mean(1)
        return 100 * torch.stack([accuracy, v_measure(counts)], 1)

    def _given(self, examples: Examples) -> Tensor:
        """The z of a model that does not infer it, `[B, K]`: the true clusters, or the one class of a linear model."""
        if self.model.classes == 1:
            return examples.x.new_ones(self.replicas * examples.x.shape[1], 1)
        return self._spread(examples.z).flatten(0, 1)

    def _offered(self) -> dict[str, Any]:
        """What the replicas, equal consecutive parts of the batch, offer to an estimator: own step sizes, own noise."""
        config, n = self.config, self.config.train_examples
        scale = n if config.gamma_scale == "paper" else 1
        etas = self._per_replica([(each.step_size or 0.0) / scale for each in self.configs])
        step_size = etas.to(self._dtype).repeat_interleave(n)[:, None]
        keys = [key("noise", each.seed, each.learning_rate, each.step_size) for each in self.configs]
        self._streams = Streams(keys, n * config.clusters, self._clock)
        noise = StreamedGumbel(self._streams)
        return {"groups": self.replicas, "step_size": step_size, "steps": config.inner_steps or 1, "noise": noise}

    def _load_data(self, seeds: Sequence[int]) -> None:
        config = self.config
        sizes = (config.train_examples, config.validation_examples, config.test_examples)
        drawn = [
            generate(clusters=config.clusters, seed=seed, features=config.features, sizes=sizes) for seed in seeds
        ]
        self._train = self._examples([data.train for data in drawn])
        self._validation = self._examples([data.validation for data in drawn])
        self._test = self._examples([data.test for data in drawn])
        self._against = -self._spread(self._train.y).flatten()

    def _examples(self, splits: Sequence[Split]) -> Examples:
        x = torch.stack([split.x for split in splits]).to(self._device, self._dtype)
        z = F.one_hot(torch.stack([split.z for split in splits]), self.config.clusters).to(self._device, self._dtype)
        y = (2 * torch.stack([split.y for split in splits]) - 1).to(self._device, self._dtype)
        return Examples(x, z, y)

    def _spread(self, of_seeds: Tensor) -> Tensor:
        """From `[S, n, ...]` to `[R, n, ...]`: each replica of a seed has its data."""
        return of_seeds.repeat_interleave(self._per_seed, 0)

    def _per_replica(self, values: Sequence[float]) -> Tensor:
        return torch.tensor(values, dtype=torch.float64, device=self._device)

    def _row(self, evaluation: int, replica: int) -> dict[str, Any]:
        values = self._evaluations[evaluation][replica].tolist()
        return {"step": (evaluation + 1) * self.config.evaluate_every, **dict(zip(_MEASURES, values, strict=True))}


def _shared(configs: Sequence[Config]) -> Config:
    """What the replicas have in common; their own settings are those of the first."""
    first = configs[0]
    seed, rate, size = first.seed, first.learning_rate, first.step_size
    if any(dataclasses.replace(each, seed=seed, learning_rate=rate, step_size=size) != first for each in configs):
        raise ValueError("the replicas of a group may differ in seed, learning rate and step size only")
    return first
