"""A failing batch made as small as it can be: fewer examples, plain memory, fewer masks, rounder scores."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import torch

from .inputs import Batch


def smallest(batch: Batch, fails: Callable[[Batch], bool], tries: int) -> Batch:
    """The batch after all simplifications, one at a time, with which it still fails.

    Args:
        batch: that fails.
        fails: whether another batch does, too.
        tries: the most batches to try.
    """
    going = True
    while going:
        going = False
        for simpler in _simpler(batch):
            if tries == 0:
                return batch
            tries -= 1
            if fails(simpler):
                batch, going = simpler, True
                break
    return batch


def _simpler(batch: Batch) -> Iterator[Batch]:
    """Batches with one thing less, the larger changes first."""
    count = len(batch.sizes)
    if batch.layout != "contiguous":
        yield replace(batch, layout="contiguous")
    if batch.validate:
        yield replace(batch, validate=False)
    if count > 1:
        yield from (batch.only(i) for i in range(count))
        for i in range(count):
            rows = [j for j in range(count) if j != i]
            yield replace(batch, sizes=[batch.sizes[j] for j in rows], scores=batch.scores[rows], masked=batch.masked[rows])
    if batch.scores.dtype.itemsize == 2:
        yield replace(batch, scores=batch.scores.float())
    scores = batch.scores
    real = ~scores.isnan() & ~batch.masked
    for rounder in (torch.zeros_like(scores), scores.round(), (10 * scores).round() / 10):
        simpler = torch.where(real, rounder, scores)
        if not torch.equal(simpler.nan_to_num(), scores.nan_to_num()):
            yield replace(batch, scores=simpler)
    for place in batch.masked.nonzero().tolist()[:40]:
        mask, fewer = batch.masked.clone(), scores.clone()
        mask[tuple(place)], fewer[tuple(place)] = False, 0.0
        yield replace(batch, scores=fewer, masked=mask)
    for place in (real & (scores != 0)).nonzero().tolist()[:40]:
        fewer = scores.clone()
        fewer[tuple(place)] = 0.0
        yield replace(batch, scores=fewer)


def as_code(batch: Batch) -> str:
    """What makes the batch again, in Python."""
    return f"sizes = {batch.sizes}\nscores = torch.tensor({batch.scores.tolist()}, dtype={batch.scores.dtype})".replace(
        "nan", "torch.nan"
    ).replace("-inf", "-torch.inf")
