"""A bidirectional LSTM that padding cannot enter."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class BiLSTM(nn.Module):
    """Two LSTMs over sentences padded on the right, one from the left and one from each sentence's own last word.

    An LSTM's state depends on what came before it alone, so padding on the right changes nothing; the second one
    reads each sentence reversed in place. Packed sequences give the same, more slowly on a CPU, and they need the lengths
    on the host.

    Args:
        inputs: the size of a word's vector.
        units: of both directions together, an even number.
    """

    def __init__(self, inputs: int, units: int) -> None:
        super().__init__()
        self.forwards = nn.LSTM(inputs, units // 2, batch_first=True)
        self.backwards = nn.LSTM(inputs, units // 2, batch_first=True)

    def forward(self, vectors: Tensor, lengths: Tensor) -> Tensor:
        """States `[B, n, units]`, zero on padding, from vectors `[B, n, d]` and lengths `[B]`."""
        position = torch.arange(vectors.shape[1], device=vectors.device)
        inside = position < lengths[:, None]
        mirrored = torch.where(inside, lengths[:, None] - 1 - position, position)
        left = self.forwards(vectors)[0]
        right = _take(self.backwards(_take(vectors, mirrored))[0], mirrored)
        return torch.cat([left, right], -1).masked_fill(~inside[..., None], 0.0)


def _take(sequences: Tensor, positions: Tensor) -> Tensor:
    return sequences.gather(1, positions[..., None].expand(-1, -1, sequences.shape[-1]))
