"""CTC's paths in plain PyTorch: one recursion over frames for all operations, and the k best paths."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from pullback.inference.ctc.family import CTC
from pullback.inference.engine.recursion import Combine, operations
from pullback.inference.front import checks


def value(scores: Tensor, lengths: Tensor, target_lengths: Tensor, targets: Tensor, blank: int, combine: Combine) -> Tensor:
    """`line[s]`, the value of state s: its score + combine over staying, the state before, and the one before that."""
    emissions, skips, _ = _states(scores, target_lengths, targets, blank)
    line = _start(emissions)
    ends = [_ends(line, target_lengths)]
    for t in range(scores.shape[1]):
        line = emissions[:, t] + combine(torch.stack(_ways(line, skips), 1), 1)
        ends.append(_ends(line, target_lengths))
    last = torch.stack(ends, 1)[torch.arange(len(scores), device=scores.device), lengths]
    return combine(last, 1)


def _states(scores: Tensor, target_lengths: Tensor, targets: Tensor, blank: int) -> tuple[Tensor, Tensor, Tensor]:
    """The states blank, symbol, blank, ..., blank of targets: their scores `[B, T, 2 S + 1]`, 0 where the state before may be
    skipped and else -inf, `[B, 2 S + 1]`, and their symbols.
    """
    batch, _, count = scores.shape
    states = 2 * targets.shape[1] + 1
    symbols = torch.full((batch, states), blank, device=scores.device)
    symbols[:, 1::2] = targets
    place = torch.arange(states, device=scores.device)
    good = (symbols >= 0) & (symbols < count) & (((place % 2) == 0) | (symbols != blank))
    good &= place < 2 * target_lengths[:, None] + 1
    good &= (target_lengths <= targets.shape[1])[:, None]
    symbols = symbols.clamp(0, max(count - 1, 0))
    if count == 0:
        return scores.new_full((*scores.shape[:2], states), -torch.inf), scores.new_full(symbols.shape, -torch.inf), symbols
    emissions: Tensor = Picked.apply(scores, symbols)
    before = torch.cat([symbols[:, :2], symbols[:, :-2]], 1)[:, :states]
    skips = torch.where((place % 2 == 1) & (place > 1) & (symbols != before), 0.0, scores.new_tensor(-torch.inf))
    return torch.where(good[:, None], emissions, -torch.inf), skips, symbols


class Picked(torch.autograd.Function):
    """The scores of the symbols of states, `[B, T, states]`, of `[B, T, V]` and symbols `[B, states]`. Its gradient sums
    the states of each symbol in one order: that of `gather` adds by atomics on a GPU, and differs from run to run.
    """

    @staticmethod
    def forward(ctx: Any, scores: Tensor, symbols: Tensor) -> Tensor:
        ctx.save_for_backward(symbols)
        ctx.count = scores.shape[2]
        return scores.gather(2, symbols[:, None].expand(-1, scores.shape[1], -1))

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:  # type: ignore[override]
        return _Summed.apply(grad, *ctx.saved_tensors, ctx.count), None


class _Summed(torch.autograd.Function):
    """The transpose of `Picked`.

    With the states sorted by their symbols, each gets the sum of those of its symbol up to it, of 1, 2, 4, ... states; the last
    one of a symbol has its total. Others go to a column that is dropped.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, symbols: Tensor, count: int) -> Tensor:
        ctx.save_for_backward(symbols)
        symbols, order = symbols.sort(dim=1, stable=True)
        total, states = x.gather(2, order[:, None].expand(-1, x.shape[1], -1)), symbols.shape[1]
        step = 1
        while step < states:
            same = (symbols[:, step:] == symbols[:, :-step])[:, None]
            total = torch.cat([total[..., :step], total[..., step:] + torch.where(same, total[..., :-step], 0.0)], 2)
            step *= 2
        last = torch.ones_like(symbols, dtype=torch.bool)
        last[:, :-1] = symbols[:, 1:] != symbols[:, :-1]
        place = torch.where(last, symbols, count)[:, None].expand(-1, x.shape[1], -1)
        return x.new_zeros(*x.shape[:2], count + 1).scatter(2, place, total)[..., :count]

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:  # type: ignore[override]
        return Picked.apply(grad, *ctx.saved_tensors), None, None


def _start(emissions: Tensor) -> Tensor:
    """The line ahead of the first frame: a path comes from the first state."""
    first = torch.arange(emissions.shape[2], device=emissions.device) == 0
    return torch.where(first, 0.0, emissions.new_tensor(-torch.inf)).expand(len(emissions), -1)


def _ways(line: Tensor, skips: Tensor) -> list[Tensor]:
    """The values of the three ways to each state, `[B, states, ...]`."""
    nothing = torch.full_like(line[:, :1], -torch.inf)
    one = torch.cat([nothing, line[:, :-1]], 1)
    two = torch.cat([nothing, nothing, line[:, :-2]], 1)[:, : line.shape[1]]
    return [line, one, two + skips.reshape(*skips.shape, *[1] * (line.dim() - 2))]


def _ends(line: Tensor, target_lengths: Tensor) -> Tensor:
    """The values of the last blank and of the last symbol, `[B, 2, ...]`."""
    possible = (2 * target_lengths < line.shape[1]) & (target_lengths >= 0)
    last = torch.where(possible, 2 * target_lengths, 0)
    rows = torch.arange(len(line), device=line.device)
    both = torch.stack([line[rows, last], line[rows, (last - 1).clamp_min(0)]], 1)
    real = torch.stack([possible, possible & (target_lengths > 0)], 1)
    return torch.where(real.reshape(*real.shape, *[1] * (line.dim() - 2)), both, -torch.inf)


argmax, log_partition, marginals, marginals_vjp, entropy, entropy_gradient, sample = operations(value, CTC.layout)


def topk(
    scores: Tensor, lengths: Tensor, target_lengths: Tensor, targets: Tensor, k: int, blank: int, validate: bool
) -> tuple[Tensor, Tensor]:
    """The parts `[B, k, T]` of the k best paths, and their scores `[B, k]`: the k best of every state, frame by frame."""
    sizes, (batch, frames, _) = (lengths, target_lengths, targets), scores.shape
    status, safe = CTC.layout.status(scores, sizes), CTC.layout.in_range(scores, sizes)
    usable = CTC.layout.mask(scores, safe) & (status == checks.OK)[:, None, None]
    s = torch.where(usable, scores.detach().double(), -torch.inf)
    emissions, skips, symbols = _states(s, safe[1], targets, blank)
    rank = torch.arange(k, device=s.device)
    line = torch.where(rank == 0, _start(emissions)[..., None], -torch.inf)
    ends, choices = _ends(line, safe[1]), []
    for t in range(frames):
        best = torch.cat(_ways(line, skips), 2).sort(dim=2, descending=True, stable=True)
        line = best.values[..., :k] + emissions[:, t, :, None]
        choices.append(best.indices[..., :k])
        ends = torch.where((safe[0] == t + 1)[:, None, None], _ends(line, safe[1]), ends)
    best = ends.flatten(1).sort(dim=1, descending=True, stable=True)
    totals, chosen = best.values[:, :k], best.indices[:, :k]
    real = totals > -torch.inf
    state, rank = torch.where(real, 2 * safe[1][:, None] - chosen // k, 0).clamp_min(0), chosen % k
    none, rows = math.prod(scores.shape[1:]), torch.arange(batch, device=s.device)
    parts = torch.full((batch, k, frames), none, device=s.device)
    for t in range(frames - 1, -1, -1):
        here = real & (t < safe[0])[:, None]
        parts[:, :, t] = torch.where(here, t * scores.shape[2] + symbols.gather(1, state), none)
        choice = choices[t][rows[:, None], state, rank]
        state, rank = torch.where(here, state - choice // k, state), torch.where(here, choice % k, rank)
    infeasible = (status == checks.OK) & ~real[:, 0]
    return parts, checks.settled(totals, torch.where(infeasible, checks.INFEASIBLE, status), validate)
