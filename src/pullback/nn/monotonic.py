"""The alignment search of text to speech."""

from __future__ import annotations

from torch import Tensor

from pullback.inference.front.layout import check_tensor
from pullback.structures.alignment import Alignment


def maximum_path(value: Tensor, mask: Tensor) -> Tensor:
    """The best monotone path of frames over the tokens of a text, `[B, tokens, frames]` of zeros and ones. No gradient.

    The paths are those of `Alignment(moves="forward")`: each frame has one token, tokens come in order, and none is left out.
    The signature is that of `monotonic_align.maximum_path`, which it replaces. Where paths are equally good, tokens begin late.

    Args:
        value: the score of each token at each frame, `[B, tokens, frames]`, such as log-likelihoods.
        mask: of the same shape, of booleans or of zeros and ones: 1 for the first tokens and frames of each example. Scores
            outside may be anything.

    >>> import torch
    >>> value = torch.tensor([[[1.0, 0.2, 0.0], [0.0, 0.0, 1.0]]])
    >>> maximum_path(value, torch.ones(1, 2, 3))
    tensor([[[1., 1., 0.],
             [0., 0., 1.]]])
    """
    check_tensor(value, "maximum_path", "value")
    check_tensor(mask, "maximum_path", "mask")
    if value.dim() != 3 or mask.shape != value.shape:
        raise ValueError(
            f"value has shape {list(value.shape)} and mask {list(mask.shape)}; maximum_path needs [B, tokens, frames] for both"
        )
    if 0 in value.shape[1:]:
        return Alignment(moves="forward").argmax(value.detach())
    return Alignment(mask[:, :, 0] != 0, mask[:, 0] != 0, moves="forward").argmax(value.detach())
