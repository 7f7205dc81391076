"""Accuracy and depth of trees on a split, without noise."""

from __future__ import annotations

import torch
from torch import Tensor

from pullback_study.corpora.batches import batches
from pullback_study.corpora.corpus import Split
from pullback_study.text.depth import depths
from pullback_study.text.latent import LatentTrees
from pullback_study.text.model import TextModel

BATCH_SIZE = 64


@torch.no_grad()
def evaluate(model: TextModel, latent: LatentTrees | None, split: Split, vectors: Tensor) -> dict[str, float]:
    """`accuracy` in percent and, where there are trees, the mean `depth` of the best ones.

    Args:
        model: left in the mode it was in.
        latent: how the decoder's structures are found; None for a baseline.
        split: on the device of the model.
        vectors: of the words, `[rows, d]`, on the device of the model.
    """
    training = model.training
    model.eval()
    right = torch.zeros((), dtype=torch.int64, device=vectors.device)
    depth, trees = torch.zeros_like(right), 0
    for batch in batches(split, BATCH_SIZE, seed=None):
        encoded = model.encode(vectors[batch.words], batch.lengths)
        mu = None
        if latent is not None:
            scores = model.scores(encoded)
            mu = latent.predict(scores, batch.lengths)
            depth += depths(latent.heads(scores, batch.lengths)).sum()
            trees += batch.lengths.numel()
        right += (model.logits(encoded, mu).argmax(-1) == batch.labels).sum()
    model.train(training)
    measures = {"accuracy": 100 * right.item() / len(split)}
    return measures | ({"depth": depth.item() / trees} if trees else {})
