"""How good predictions and trees are: sums over the examples of a batch, for each replica and depth."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor

from pullback_study.tasks.listops.data import Split

SHARES = {
    "accuracy": ("right", "examples"),
    "attachment": ("attached", "tokens"),
    "attachment_open": ("attached_open", "tokens_open"),
    "precision": ("true_edges", "edges"),
    "recall": ("true_edges", "tokens"),
}
"""Each measure is a share: the sum of one count over the sum of another."""


def counts(batch: Split, logits: Tensor, z: Tensor | None, best: Tensor | None) -> dict[str, Tensor]:
    """Counts for each example, `[R, B]`.

    Token 0 is the root in every tree, and is not counted. An edge is an arc with a weight above one half in what the
    decoder sees; for trees, precision and recall are the attachment score.

    Args:
        batch: tensors `[R, B, ...]`.
        logits: `[R, B, 10]`.
        z: what the decoder sees, `[R B, n, n]`; None without trees.
        best: the best trees.
    """
    found = {"right": logits.argmax(-1) == batch.labels, "examples": torch.ones_like(batch.labels)}
    if z is not None and best is not None:
        inside = batch.inside()
        inside[..., 0] = False
        opening = inside & ~batch.closing()
        gold = batch.gold(z.dtype)
        right = (best.view(gold.shape) * gold).sum(-2) > 0.5
        edges = (z.view(gold.shape) > 0.5) & inside[..., None, :]
        found |= {
            "attached": right & inside, "tokens": inside, "attached_open": right & opening, "tokens_open": opening,
            "true_edges": (edges & (gold > 0.5)).flatten(-2), "edges": edges.flatten(-2),
        }  # fmt: skip
    return {name: value.double().flatten(2).sum(-1) if value.dim() > 2 else value.double() for name, value in found.items()}


def shares(found: dict[str, Tensor]) -> dict[str, Tensor]:
    """The measures in percent, from sums of counts."""
    return {name: 100 * found[top] / found[below].clamp_min(1) for name, (top, below) in SHARES.items() if top in found}


def summed(parts: Iterable[dict[str, Tensor]]) -> dict[str, Tensor]:
    """The sum over the examples of several batches, `[R]`."""
    total: dict[str, Tensor] = {}
    for part in parts:
        for name, value in part.items():
            total[name] = total[name] + value.sum(-1) if name in total else value.sum(-1)
    return total
