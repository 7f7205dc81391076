"""Matchings in plain PyTorch: shortest augmenting paths of a whole batch, one step of all examples at a time."""

from __future__ import annotations

import torch
from torch import Tensor

from pullback.inference.assignment.family import MATCHING
from pullback.inference.engine import partition
from pullback.inference.front import checks


def argmax(scores: Tensor, lengths: Tensor, other_lengths: Tensor, validate: bool) -> Tensor:
    """The compiled search (search.py), with a row of the batch for each example. Column m is where new rows begin."""
    layout, scores = MATCHING.layout, scores.detach()
    status = layout.status(scores, (lengths, other_lengths))
    rows, columns = layout.in_range(scores, (lengths, other_lengths))
    usable = layout.mask(scores, (rows, columns)) & (status == checks.OK)[:, None, None]
    s = torch.where(usable, scores.double(), -torch.inf)
    batch, n, m = s.shape
    everyone = torch.arange(batch, device=s.device)
    row_of = torch.full((batch, m + 1), -1, device=s.device)
    price = s.new_zeros(batch, m + 1)
    feasible = torch.ones(batch, dtype=torch.bool, device=s.device)
    for row in range(n):
        row_of[:, m] = torch.where(feasible & (row < rows), row, -1)
        last = torch.full((batch,), m, device=s.device)
        length, before = s.new_zeros(batch), torch.full((batch, m + 1), m, device=s.device)
        lowest, done = s.new_full((batch, m + 1), torch.inf), torch.zeros(batch, m + 1, dtype=torch.bool, device=s.device)
        for _ in range(row + 1):
            i = row_of[everyone, last]
            going = i >= 0
            done[everyone, last] |= going
            line = torch.cat([s[everyone, i.clamp_min(0)], s.new_full((batch, 1), -torch.inf)], 1)
            own = torch.where(last < m, line[everyone, last] - price[everyone, last], 0.0)
            to = length[:, None] + (own[:, None] - (line - price))
            shorter = going[:, None] & ~done & (line > -torch.inf) & (to < lowest)
            lowest = torch.where(shorter, to, lowest)
            before = torch.where(shorter, last[:, None], before)
            nearest, column = torch.where(done, torch.inf, lowest)[:, :m].min(1) if m else (length + torch.inf, last)
            feasible &= ~(going & (nearest == torch.inf))
            going &= feasible
            length, last = torch.where(going, nearest, length), torch.where(going, column, last)
        added = feasible & (row < rows)
        price = torch.where(added[:, None] & done & (lowest < torch.inf), price + (length[:, None] - lowest), price)
        for _ in range(row + 1):
            moving = added & (last != m)
            previous = before[everyone, last]
            row_of[everyone, last] = torch.where(moving, row_of[everyone, previous], row_of[everyone, last])
            last = torch.where(moving, previous, last)
    status = torch.where((status == checks.OK) & ~feasible, checks.INFEASIBLE, status)
    z = (torch.arange(n, device=s.device)[:, None] == row_of[:, None, :m]).to(scores.dtype)
    return checks.settled(z, status, validate)


def topk(scores: Tensor, lengths: Tensor, other_lengths: Tensor, k: int, *, validate: bool) -> tuple[Tensor, Tensor]:
    """The k best matchings, by the column of the first row that differs from a better one: Murty's algorithm."""
    layout, scores = MATCHING.layout, scores.detach()
    status, sizes = layout.status(scores, (lengths, other_lengths)), layout.in_range(scores, (lengths, other_lengths))
    rows, columns = (torch.where(status == checks.OK, size, 0) for size in sizes)
    s = torch.where(layout.mask(scores, (rows, columns)), scores, -torch.inf)

    def best(which: Tensor, s: Tensor) -> Tensor:
        return MATCHING.argmax(s, rows[which], columns[which], False)

    parts, totals = partition.by_groups(best, s, k, dim=-1)
    status = torch.where((status == checks.OK) & (totals[:, 0] == -torch.inf), checks.INFEASIBLE, status)
    return parts, checks.settled(totals, status, validate)
