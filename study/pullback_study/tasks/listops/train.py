"""Replicas of ListOps: all on the same expressions, each in the order of its seed."""

from __future__ import annotations

import math
from collections import defaultdict
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from pullback.estimators import Estimator
from pullback.structures import DependencyTree, Structure
from pullback_study.tasks.listops.data import Split, batches, deeper, generate, in_order
from pullback_study.tasks.listops.model import Encoded, Model
from pullback_study.tasks.listops.task import LSTMS, TREES
from pullback_study.tasks.replicas import Replicas

_EVALUATED = 4000  # expressions of the smallest width, over all replicas, in a batch of evaluation; ten times as many on a GPU


class ListOpsReplicas(Replicas):
    """The best model on the validation data counts. Dropout and the estimators' noise are the group's."""

    model: Model
    best_by = "accuracy"

    def prepare(self) -> Model:
        config = self.config
        sizes = config.train_examples, config.validation_examples, config.test_examples
        splits = generate(config.depth, config.tokens, sizes, config.data_seed, config.brackets)
        self.splits = {name: part.to(self.device) for name, part in zip(("train", "validation", "test"), splits, strict=True)}
        self._epoch = -1
        self._per_epoch = len(self._batches(0)[0])
        rounds = config.rounds or config.depth
        lstms, self._trees = LSTMS.get(config.estimator, 2), config.estimator in TREES
        return Model(size=config.size, lstms=lstms, rounds=rounds, dropout=config.dropout, scaled=config.scaled)

    def rates(self) -> Tensor:
        """The encoder has its share of the learning rate."""
        shares = [self.config.encoder_rate if name.startswith("encoder") else 1.0 for name in self.model.shapes]
        return super().rates()[:, None] * torch.tensor(shares).double().repeat_interleave(torch.tensor(self.model.sizes))

    def scaled(self, gradient: Tensor) -> Tensor:
        """Clipped: g min(1, clip / |g|), with |g| the norm over all parameters of a replica."""
        if self.config.clip is None:
            return gradient
        return gradient * (self.config.clip / gradient.norm(dim=1, keepdim=True)).clamp_max(1.0)

    def offered(self) -> dict[str, Any]:
        same = len({each.step_size for each in self.configs}) == 1
        step_size: Any = self.config.step_size if same else self.step_sizes(self.config.batch_size, 2)
        steps, projection = self.config.inner_steps or 1, self.config.projection
        return {"groups": self.replicas, "step_size": step_size, "steps": steps, "projection": projection}

    def batch(self) -> tuple[Tensor, int]:
        """Rows `[R, B]`."""
        epoch, number = divmod(self.step, self._per_epoch)
        if epoch != self._epoch:
            self._epoch, (self._widths, self._order) = epoch, self._batches(epoch)
        return self._order[number], self._widths[number]

    def losses(self, rows: Tensor, width: int) -> Tensor:
        batch, named = self.splits["train"].take(rows, width), self.model.named(self.theta)
        encoded = self.model.encode(named, batch, training=True)

        def downstream(z: Tensor | None) -> Tensor:
            logits = self._logits(named, encoded, batch, z)
            return F.cross_entropy(logits.flatten(0, 1), batch.labels.flatten(), reduction="none")

        if self.estimator is not None:
            return self._objective(self.estimator, self._structure(batch), self._scores(encoded, batch), downstream)
        return downstream(self._given(batch))

    def _objective(self, estimator: Estimator, structure: Structure, scores: Tensor, downstream: Any) -> Tensor:
        """The estimator's loss at a temperature, less a bonus for the entropy H of the trees.

        At step k, from 0,

            losses of the estimator at scores s / t_k  -  w_k H(s),    t_k = min(1, (k + 1) / noise_steps)
            w_k = entropy max(0, 1 - k / entropy_steps)

        argmax(s / t + noise) = argmax(s + t noise), and samples at s / t are at the temperature t. The gradient is that for
        s / t: dividing it by t would make it large where t is small.
        """
        config, tempered = self.config, scores
        if config.noise_steps is not None:
            t = ((self.clock + 1) / config.noise_steps).clamp_max(1.0).to(scores.dtype)
            tempered = scores / t
            tempered.register_hook(lambda gradient: gradient * t)
        losses = estimator.objective(structure, tempered, downstream)
        if config.entropy:
            weight = config.entropy * (1 - self.clock / config.entropy_steps).clamp_min(0.0).to(scores.dtype)
            losses = losses - weight * structure.entropy(scores)
        return losses

    @torch.no_grad()
    def measures(self, split: Split, theta: Tensor, rounds: int | None = None) -> dict[str, Tensor]:
        """Each measure in percent: the sum over all examples of what is right, over that of what is counted."""
        sums: dict[str, Any] = defaultdict(int)
        named = self.model.named(theta)
        together = _EVALUATED * (10 if self.device.type == "cuda" else 1)
        for rows, width in in_order(split, max(1, together // self.replicas)):
            batch = split.take(rows.to(self.device).expand(self.replicas, -1), width)
            encoded, z = self.model.encode(named, batch, training=False), self._given(batch)
            best = noisy = z
            if self.estimator is not None:
                scores, structure = self._scores(encoded, batch), self._structure(batch)
                z, best = self.estimator.predict(structure, scores), structure.argmax(scores)
                noisy = structure.argmax(scores + _gumbel(scores))
            for name, pair in compared(batch, self._logits(named, encoded, batch, z, rounds), z, best, noisy).items():
                sums[name] += torch.stack([each.double().flatten(1).sum(1) for each in pair])
        return {name: 100 * right / counted.clamp_min(1) for name, (right, counted) in sums.items()}

    def measured_at_last(self) -> dict[str, dict[str, Tensor]]:
        """Also by depth, and deeper than in training."""
        found, test = super().measured_at_last(), self.splits["test"]
        for depth in range(1, self.config.depth + 1):
            rows = (test.depths == depth).nonzero()[:, 0]
            found[f"depth_{depth}"] = self.measured(test.take(rows, test.tokens.shape[1]), self.best)
        for depth, split in deeper(self.config.deeper_examples, self.config.data_seed, self.config.brackets).items():
            found[f"depth_{depth}"] = self.measured(split.to(self.device), self.best, rounds=max(depth, self.model.rounds))
        return found

    def more(self, replica: int) -> dict[str, Any]:
        rows = self.rows[replica]
        best = max(rows, key=lambda row: -math.inf if math.isnan(row["accuracy"]) else row["accuracy"])["step"]
        size, step_ms = sum(self.model.sizes), 1000 * self.seconds / max(1, self.step)
        return {"best_step": best, "loss": rows[-1]["loss"], "parameters": size, "step_ms": step_ms}

    def _logits(
        self, named: dict[str, Tensor], encoded: Encoded, batch: Split, z: Tensor | None, rounds: int | None = None
    ) -> Tensor:
        if z is None:
            return self.model.final(named, encoded, batch)
        return self.model.logits(named, encoded, z, rounds, trees=self._trees)

    def _scores(self, encoded: Encoded, batch: Split) -> Tensor:
        """`[R B, n, n]`, with the arcs forbidden whose head may not be one."""
        scores = self.model.scores(encoded)
        if self.config.heads == "all":
            return scores
        return scores.masked_fill(~batch.may_be_heads(self.config.heads).flatten(0, -2)[..., None], -torch.inf)

    def _given(self, batch: Split) -> Tensor | None:
        """The gold trees for the model that sees them."""
        return batch.gold(self.dtype).flatten(0, 1) if self.model.lstms == 0 else None

    def _structure(self, batch: Split) -> DependencyTree:
        # Without checks of values: they wait for the device, and a replica that diverges must not stop the others.
        return DependencyTree(batch.lengths.flatten(), projective=True, multiroot=False, validate=False)

    def _batches(self, epoch: int) -> tuple[list[int], Tensor]:
        widths, rows = batches(self.splits["train"], self.config.batch_size, [each.seed for each in self.configs], epoch)
        return widths, rows.to(self.device)


def _gumbel(scores: Tensor) -> Tensor:
    """Standard Gumbel noise from a stream of its own: evaluation must not change the noise of training."""
    generator = torch.Generator(scores.device).manual_seed(0)
    uniform = torch.rand(scores.shape, generator=generator, dtype=torch.float64, device=scores.device)
    return -(-uniform.clamp_min(1e-300).log()).log().to(scores.dtype)


def compared(
    batch: Split, logits: Tensor, z: Tensor | None, best: Tensor | None, noisy: Tensor | None
) -> dict[str, tuple[Tensor, Tensor]]:
    """By measure, what is right, and what it is a share of, `[R, B, ...]` of bool, from logits `[R, B, 10]`.

    What the decoder sees, the best trees and noisy ones of perturbed scores are `[R B, n, n]`, or None. Token 0 is the root in
    every tree, and is not counted. An edge is an arc with a weight above one half in what the decoder sees; for trees,
    precision and recall are the attachment score. They are equal for noisy ones, too: all have as many arcs.
    """
    right = logits.argmax(-1) == batch.labels
    every = torch.ones_like(right)
    if z is None or best is None or noisy is None:
        return {"accuracy": (right, every)}
    gold, inside, closing, operators = batch.gold(z.dtype) > 0.5, batch.inside(), batch.closing(), batch.operators()
    inside[..., 0] = False
    attached, sampled = (((trees.view(gold.shape) > 0.5) & gold).any(-2) for trees in (best, noisy))
    edges = (z.view(gold.shape) > 0.5) & inside[..., None, :]
    kinds = {"": inside, "_open": ~closing, "_operators": operators, "_digits": ~operators & ~closing, "_brackets": closing}
    return {
        "accuracy": (right, every),
        **{f"attachment{kind}": (attached & inside & where, inside & where) for kind, where in kinds.items()},
        "execution": (batch.executes(best.view(gold.shape)), every),
        "precision": (edges & gold, edges),
        "recall": (edges & gold, inside),
        "sampled": (sampled & inside, inside),
    }
