"""Projective dependency trees by Eisner's algorithm, a width of spans at a time. See README.md for the items."""

from __future__ import annotations

import torch
from torch import Tensor

from pullback.inference.recursion import Combine, operations
from pullback.inference.trees import TREES


def value(scores: Tensor, lengths: Tensor, multiroot: bool, combine: Combine) -> Tensor:
    """The combined value of all trees, `[B]`.

    An item of spans of width w is `[B, n - w]`, by their first word. Every list of terms goes by its split, from the left.
    """
    batch, n, _ = scores.shape
    right, left, right_arc, left_arc = ([scores.new_zeros(batch, n)] for _ in range(4))
    for w in range(1, n):
        m = n - w  # spans
        between = [right[d][:, :m] + left[w - 1 - d][:, d + 1 : d + 1 + m] for d in range(w)]
        meeting = combine(torch.stack(between, 2), 2)
        right_arc.append(meeting + scores.diagonal(w, 1, 2))
        left_arc.append(meeting + scores.diagonal(-w, 1, 2))
        right.append(combine(torch.stack([right_arc[d][:, :m] + right[w - d][:, d : d + m] for d in range(1, w + 1)], 2), 2))
        left.append(combine(torch.stack([left[d][:, :m] + left_arc[w - d][:, d : d + m] for d in range(w)], 2), 2))
    prefix, root_arc = [scores.new_zeros(batch)], []
    for r in range(n):
        starts = range(r + 1) if multiroot else [0]
        before = combine(torch.stack([prefix[i] + left[r - i][:, i] for i in starts], 1), 1)
        root_arc.append(before + scores[:, r, r])
        prefix.append(combine(torch.stack([root_arc[i] + right[r - i][:, i] for i in range(r + 1)], 1), 1))
    return torch.stack(prefix, 1).gather(1, lengths[:, None]).squeeze(1)


argmax, log_partition, marginals, marginals_vjp, entropy, entropy_gradient, sample = operations(value, TREES.layout)
