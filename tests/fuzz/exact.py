"""The right answers: by enumeration in extended precision where members are few, else from another backend in float64."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

import pullback as pb
from pullback.inference.front.family import backend

from .inputs import Batch
from .subjects import STRUCTURES, members

Answers = dict[str, np.ndarray]


@dataclass(frozen=True)
class Enumerated:
    """An example whose members are known.

    Attributes:
        z: the members without forbidden parts, `[S, K]`.
        scores: `[K]`, zero where no member has a part.
        own: what the structure adds to the scores of the members, `[S]`.
    """

    z: np.ndarray
    scores: np.ndarray
    own: np.ndarray

    @property
    def totals(self) -> np.ndarray:
        """The scores of the members, `[S]`."""
        return self.z @ self.scores + self.own


def enumerated(batch: Batch, example: int) -> Enumerated:
    z = members(batch.name, batch.sizes[example], batch.parts).numpy().astype(np.longdouble)
    s = batch.scores[example].double().reshape(-1).numpy().astype(np.longdouble)
    z = z[~(z[:, s == -np.inf] > 0).any(1)]
    own = STRUCTURES[batch.name].own(torch.from_numpy(z.astype(float)).reshape(len(z), *batch.parts))
    return Enumerated(z, np.where((z > 0).any(0), s, 0), own.numpy().astype(np.longdouble))


def by_enumeration(known: Enumerated, direction: np.ndarray, gold: np.ndarray, other: np.ndarray | None) -> Answers:
    """The answers of all operations, and gradients: of marginals along a direction.

    Args:
        known: the members and scores.
        direction: `[K]`.
        gold: a member.
        other: further scores, for `kl`.
    """
    z, totals = known.z, known.totals
    best = totals.max()
    p = np.exp(totals - best)
    mass = p.sum()
    p /= mass
    log_z = best + np.log(mass)
    log_p = np.where(p > 0, totals - best - np.log(mass), 0)
    mu, entropy = p @ z, -(p * log_p).sum()
    out = {"argmax": best, "log_partition": log_z, "marginals": mu, "entropy": entropy}
    out["log_partition's gradient"] = mu
    out["entropy's gradient"] = -((p * (log_p + entropy)) @ z)
    out["marginals' gradient"] = (p * (z @ direction - mu @ direction)) @ z
    out["log_prob"] = totals[(z == gold).all(1).argmax()] - log_z
    out["log_prob's gradient"] = gold - mu
    if other is not None:
        those = z @ other + known.own
        q = np.exp(those - those.max())
        q /= q.sum()
        ratio = np.where(p > 0, log_p - (those - those.max() - np.log(np.exp(those - those.max()).sum())), 0)
        out["kl"] = (p * ratio).sum()
        out["kl's gradient"] = (p * (ratio - out["kl"])) @ z
        out["kl's gradient in the other scores"] = q @ z - mu
    return out


def by_another_backend(batch: Batch, name: str, direction: Tensor, gold: Tensor) -> dict[str, Tensor]:
    """The answers for a whole batch, in float64, with masks at -inf: NaN for examples without a structure.

    Args:
        batch: the scores.
        name: of the backend.
        direction: `[B, *parts]`, for the gradient of marginals.
        gold: `[B, *parts]`, members.
    """
    scores = batch.scores.double().masked_fill(batch.masked, -torch.inf)
    structure = without_checks(batch)
    out: dict[str, Tensor] = {}
    with backend(name):
        z = structure.argmax(scores)
        out["argmax"] = torch.where(z > 0, scores, 0.0).flatten(1).sum(1) + 0.0 * z.flatten(1).sum(1)
        out["argmax"] += STRUCTURES[batch.name].own(z)
        if not STRUCTURES[batch.name].gibbs:
            return out
        for operation in ("log_partition", "entropy", "marginals"):
            leaf = scores.clone().requires_grad_()
            value = getattr(structure, operation)(leaf)
            out[operation] = value.detach()
            weights = direction if operation == "marginals" else torch.ones_like(value)
            (out[f"{operation}'s gradient" if operation[-1] != "s" else f"{operation}' gradient"],) = torch.autograd.grad(
                value, leaf, weights
            )
        out["log_prob"] = structure.log_prob(scores, gold)
        out["log_prob's gradient"] = torch.where(out["marginals"].isnan(), torch.nan, gold - out["marginals"])
    return out


def without_checks(batch: Batch) -> pb.Structure:
    """The structure of a batch on the CPU, without checks of values."""
    return replace(batch, validate=False).structure_on("cpu")


def members_of(batch: Batch, example: int) -> Tensor:
    """The members of an example without masked parts, `[S, K]`."""
    z = members(batch.name, batch.sizes[example], batch.parts)
    return z[~(z[:, batch.masked[example].flatten()] > 0).any(1)]


def all_members_of(batch: Batch, example: int) -> Tensor:
    """All members of an example, `[S, K]`."""
    return members(batch.name, batch.sizes[example], batch.parts)


def other_scores(batch: Batch) -> Tensor:
    """Further scores with the same forbidden parts and padding."""
    values = torch.cos(torch.arange(float(batch.scores.numel()))).reshape(batch.scores.shape)
    return torch.where(batch.scores.isfinite(), values.to(batch.scores.dtype), batch.scores)


def gains(batch: Batch, mu: Tensor, oracle: str, is_large: bool) -> list[float]:
    """By how much the best member gains on each mean, <s - mu, z - mu>, in float64: zero for a projection."""
    scores = torch.where(batch.masked | batch.scores.isnan(), 0.0, batch.scores.double())
    inner = scores - mu
    own = (inner * mu).flatten(1).sum(1)
    if is_large:
        with backend(oracle):
            z = without_checks(batch).argmax(inner.masked_fill(batch.masked, -torch.inf))
        return ((inner * z).flatten(1).sum(1) - own).tolist()
    found = [members_of(batch, i) @ inner[i].flatten() for i in range(len(mu))]
    return [float(x.max() - own[i]) if len(x) else 0.0 for i, x in enumerate(found)]
