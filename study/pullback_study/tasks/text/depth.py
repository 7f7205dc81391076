"""How deep trees are."""

from __future__ import annotations

import torch
from torch import Tensor


def depths(heads: Tensor) -> Tensor:
    """The arcs on the longest path from the artificial root, for each tree, `[...]`.

    A flat tree, one word attached to the root and all others to that word, has depth 2.

    Args:
        heads: the head of each word, `[..., n]`: 0 is the root, 1 the first word, -1 padding (`DependencyTree.heads`).

    >>> depths(torch.tensor([[0, 1, 1], [0, 1, 2], [0, -1, -1]]))
    tensor([2, 3, 1])
    """
    inside = heads >= 0
    ancestor = torch.nn.functional.pad(heads.clamp_min(0), (1, 0))  # node 0 is the root, its own ancestor
    depth = torch.nn.functional.pad(inside.long(), (1, 0))
    covered = 1
    while covered < heads.shape[-1]:  # pointer jumping: each round doubles the arcs that are counted
        depth = depth + depth.gather(-1, ancestor)
        ancestor = ancestor.gather(-1, ancestor)
        covered *= 2
    return depth.amax(-1)
