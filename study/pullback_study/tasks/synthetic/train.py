"""Replicas of the synthetic study: S seeds, each with its own data, and G settings for each seed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from pullback_study.tasks.replicas import Replicas
from pullback_study.tasks.streams import StreamedCategorical, StreamedGumbel, Streams, key
from pullback_study.tasks.synthetic.data import Split, generate, v_measure
from pullback_study.tasks.synthetic.model import Examples, Model


class Clusters(Replicas):
    """R = S x G replicas, seed by seed; a step is on the whole training set, and noise depends on the replica alone."""

    model: Model
    curve_loss = "last"

    def prepare(self) -> Model:
        config, seeds = self.config, list(dict.fromkeys(each.seed for each in self.configs))
        self._per_seed = self.replicas // len(seeds)
        if [each.seed for each in self.configs] != [seed for seed in seeds for _ in range(self._per_seed)]:
            raise ValueError(f"a group has the same number of replicas for each seed; got {[c.seed for c in self.configs]}")
        sizes = (config.train_examples, config.validation_examples, config.test_examples)
        drawn = [generate(clusters=config.clusters, seed=seed, features=config.features, sizes=sizes) for seed in seeds]
        parts = ("train", "validation", "test")
        self.splits = {name: self._examples([getattr(data, name) for data in drawn]) for name in parts}
        train = self.splits["train"]
        self._against = -self._spread(train.y).flatten()
        keys = [key("noise", each.seed, each.learning_rate, each.step_size) for each in self.configs]
        self._streams = Streams(keys, config.train_examples * config.clusters, self.clock)
        # Without checks of values: they wait for the device, and a replica that diverges must not stop the others.
        self._structure = StreamedCategorical(self._streams.gumbel, validate=False)
        classes = 1 if config.estimator == "linear" else config.clusters
        model = Model(classes=classes, features=config.features, encoder=self.method.latent)
        self._known = None if self.method.latent else self._given(train, classes)
        return model

    def offered(self) -> dict[str, Any]:
        config, n = self.config, self.config.train_examples
        step_size = self.step_sizes(n, 1, scale=n if config.gamma_scale == "paper" else 1)
        noise = StreamedGumbel(self._streams)
        return {"groups": self.replicas, "step_size": step_size, "steps": config.inner_steps or 1, "noise": noise}

    def losses(self, rows: Tensor, width: int) -> Tensor:
        self._streams.begin_step()
        outputs = self.model.outputs(self.theta, self.splits["train"].x)

        def downstream(z: Tensor) -> Tensor:
            return F.softplus(self._against * outputs.logits(z))

        if self.estimator is None:
            assert self._known is not None
            return downstream(self._known)
        return self.estimator.objective(self._structure, outputs.scores, downstream)

    def scaled(self, gradient: Tensor) -> Tensor:
        if self.config.gamma_scale == "paper":  # the surrogate as it is: not divided by n once more
            gradient[:, : sum(self.model.sizes[:2])] *= self.config.train_examples
        return gradient

    @torch.no_grad()
    def measures(self, examples: Examples, theta: Tensor) -> dict[str, Tensor]:
        """Accuracy and V-measure in percent."""
        outputs = self.model.outputs(theta, examples.x)
        if self.estimator is None:
            z = clusters = self._given(examples, self.model.classes)
        else:
            z = self.estimator.predict(self._structure, outputs.scores)
            clusters = self.estimator.predict(self._structure, outputs.scores, argmax=True)
        right = (outputs.logits(z).view(self.replicas, -1) > 0) == (self._spread(examples.y) > 0)
        counts = self._spread(examples.z).mT @ clusters.view(self.replicas, -1, clusters.shape[-1])
        return {"accuracy": 100 * right.double().mean(1), "v_measure": 100 * v_measure(counts)}

    def more(self, replica: int) -> dict[str, Any]:
        calls = self.method.decoder_calls(self.config.inner_steps or 1)
        return {"loss": self.loss[replica].item(), "decoder_calls": calls}

    def _given(self, examples: Examples, classes: int) -> Tensor:
        """The z of a model that does not infer it, `[B, K]`: the true clusters, or the one class of a linear model."""
        if classes == 1:
            return examples.x.new_ones(self.replicas * examples.x.shape[1], 1)
        return self._spread(examples.z).flatten(0, 1)

    def _examples(self, splits: Sequence[Split]) -> Examples:
        x = torch.stack([split.x for split in splits]).to(self.device, self.dtype)
        z = F.one_hot(torch.stack([split.z for split in splits]), self.config.clusters).to(self.device, self.dtype)
        y = (2 * torch.stack([split.y for split in splits]) - 1).to(self.device, self.dtype)
        return Examples(x, z, y)

    def _spread(self, of_seeds: Tensor) -> Tensor:
        """From `[S, n, ...]` to `[R, n, ...]`: each replica of a seed has its data."""
        return of_seeds.repeat_interleave(self._per_seed, 0)
