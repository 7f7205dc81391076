"""Scores of dependency arcs, and the heads that a tree gives to words."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class ArcScorer(nn.Module):
    """The score of each arc from the states of its two words.

        s(i -> j) = v . tanh(W [h_i; h_j] + b)

    A learned root vector stands in the place of h_i for the attachment of word j to the root. W [h_i; h_j] is computed
    as W_1 h_i + W_2 h_j, so that no `[n, n, 2h]` tensor is formed.

    Args:
        states: h, the size of a word's state and of the root's vector.
        hidden: the size of v.
    """

    def __init__(self, states: int, hidden: int) -> None:
        super().__init__()
        self.head = nn.Linear(states, hidden)
        self.modifier = nn.Linear(states, hidden, bias=False)
        self.output = nn.Linear(hidden, 1, bias=False)
        self.root = nn.Parameter(torch.empty(states).uniform_(-1, 1) / states**0.5)
        for half in (self.head, self.modifier):  # initialised as the one layer of 2h inputs that they are
            nn.init.uniform_(half.weight, -((2 * states) ** -0.5), (2 * states) ** -0.5)
        nn.init.uniform_(self.head.bias, -((2 * states) ** -0.5), (2 * states) ** -0.5)

    def forward(self, states: Tensor) -> Tensor:
        """Scores `[..., n, n]`, head x modifier, with the root on the diagonal, from states `[..., n, h]`."""
        head, modifier, v = self.head(states), self.modifier(states), self.output.weight[0]
        arcs = torch.tanh(head[..., :, None, :] + modifier[..., None, :, :]) @ v
        root = torch.tanh(self.head(self.root) + modifier) @ v
        return torch.where(_diagonal(arcs), root[..., None, :], arcs)

    def heads(self, states: Tensor, mu: Tensor) -> Tensor:
        """The mean of each word's heads, `[..., n, h]`: one head for a tree.

            head(j) = sum over i of mu(i -> j) h_i + mu(root -> j) root

        Args:
            states: `[..., n, h]`.
            mu: trees or averages of trees, `[..., n, n]`.
        """
        from_words = mu.masked_fill(_diagonal(mu), 0.0).mT @ states
        return from_words + mu.diagonal(dim1=-2, dim2=-1)[..., None] * self.root


def _diagonal(matrices: Tensor) -> Tensor:
    return torch.eye(matrices.shape[-1], dtype=torch.bool, device=matrices.device)
