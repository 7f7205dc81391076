"""Errors about the values of a batch of trees' scores, the same from every backend."""

from __future__ import annotations

import torch
from torch import Tensor

OK, NAN, INFEASIBLE, INFINITE, BAD_LENGTH = range(5)
_WHAT = {
    NAN: "contains NaN among its real words; check the encoder that made it (padding may be anything)",
    INFINITE: "contains +inf; scores must be finite, or -inf to forbid an arc",
    INFEASIBLE: "has no feasible tree: too many arcs are forbidden (-inf)",
}


def raise_for(status: Tensor, lengths: Tensor, n: int) -> None:
    """Raise for the first sentence whose status is not OK, naming it.

    Args:
        status: `[B]` of the codes above.
        lengths: `[B]`.
        n: the size of the scores, which bounds the lengths.
    """
    bad = torch.nonzero(status)
    if len(bad) == 0:
        return
    sentence = int(bad[0])
    code = int(status[sentence])
    if code == BAD_LENGTH:
        raise ValueError(
            f"lengths[{sentence}] is {int(lengths[sentence])}; scores of {n} words need lengths from 0 to {n}"
        )
    raise ValueError(f"sentence {sentence} of the batch (length {int(lengths[sentence])}) {_WHAT[code]}")


def status_of(scores: Tensor, lengths: Tensor) -> Tensor:
    """What can be said of each sentence without inference, `[B]`: everything but INFEASIBLE."""
    n = scores.shape[-1]
    real = word_mask(lengths, n)
    real = real[:, :, None] & real[:, None, :]
    status = torch.zeros_like(lengths)
    status[((scores == torch.inf) & real).any(2).any(1)] = INFINITE
    status[(scores.isnan() & real).any(2).any(1)] = NAN
    status[(lengths < 0) | (lengths > n)] = BAD_LENGTH
    return status


def word_mask(lengths: Tensor, n: int) -> Tensor:
    """Which of n positions are words, `[B, n]`."""
    return torch.arange(n, device=lengths.device) < lengths[:, None]


def only_words(values: Tensor, lengths: Tensor) -> Tensor:
    """`[B, n, n]` with zeros in the padding, whatever it held."""
    mask = word_mask(lengths, values.shape[-1])
    return torch.where(mask[:, :, None] & mask[:, None, :], values, 0.0)
