"""Paths whose weighted mean a flow is: an active set, for SparseMAP on the edges of a graph."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from pullback.inference._numba.compile import no_alloc_kernel

_LITTLE = 1e-14  # flows that are left over by rounding


def decompose(edges: Tensor, flows: Tensor, counts: Tensor, longest: int) -> tuple[Tensor, Tensor, Tensor]:
    """The parts of paths `[B, k, longest]`, int32, padded with -1, their weights `[B, k]` and their numbers `[B]`.

    Each path takes all that is left of the flow of an edge, so that no path depends on the others. `edges` `[B, any, 3]` and
    their `flows` are those of a `PathSet`.
    """
    batch, room = len(counts), max([1, *counts.tolist()])
    lists = torch.empty((batch, room, longest), dtype=torch.int32, device="cpu")
    weights, numbers = flows.new_zeros((batch, room), dtype=torch.float64), flows.new_zeros(batch, dtype=torch.int32)
    used = torch.arange(edges.shape[1], device="cpu") < counts[:, None]
    nodes = 1 + int((edges[..., 2] * used).max()) if edges.numel() else 1
    arrays = edges.contiguous(), flows.clone(), counts, edges.new_zeros(nodes + 1, dtype=torch.int64), lists, weights, numbers
    peel(*(x.numpy() for x in arrays))
    most = max([1, *numbers.tolist()])
    return lists[:, :most].clone(), weights[:, :most] / weights.sum(1, keepdim=True).clamp_min(_LITTLE), numbers


@no_alloc_kernel
def peel(edges, flows, counts, first, lists, weights, numbers):
    """Take paths along the largest flows, with the smallest of these as their weights, until nothing is left."""
    for b in range(len(counts)):
        count, last = counts[b], 0
        first[:] = 0
        for e in range(count):
            first[edges[b, e, 1] + 1] += 1
            last = max(last, edges[b, e, 2])
        for node in range(last):
            first[node + 1] += first[node]
        while numbers[b] < lists.shape[1]:
            path, node, length, least = numbers[b], np.int64(0), 0, 1.0
            while node != last and least > _LITTLE:
                best = first[node]
                for e in range(first[node], first[node + 1]):
                    if flows[b, e] > flows[b, best]:
                        best = e
                if first[node + 1] == first[node] or length == lists.shape[2]:
                    least = 0.0
                    break
                least = min(least, flows[b, best])
                lists[b, path, length] = best
                node = edges[b, best, 2]
                length += 1
            if not least > _LITTLE and path > 0:
                break
            weights[b, path] = least
            for at in range(length):
                e = lists[b, path, at]
                flows[b, e] = flows[b, e] - least if flows[b, e] > least else 0.0
                lists[b, path, at] = edges[b, e, 0]
            for at in range(length, lists.shape[2]):
                lists[b, path, at] = -1
            numbers[b] += 1
            if last == 0:
                break
