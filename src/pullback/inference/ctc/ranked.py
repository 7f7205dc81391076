"""The k best of CTC's paths on the CPU, by the engine of hypergraphs: one table for the states of all targets.

Its parts are `[T, S + 1, 3]`: at each frame, for the first l symbols of a target, the blank behind them, the last of them, and
the same where the blank before it is skipped, with a score of -inf where it is equal to its neighbour.
"""

from __future__ import annotations

import torch
from torch import Tensor

from pullback.inference.ctc import reference
from pullback.inference.ctc.family import CTC
from pullback.inference.engine.hypergraph import ranked
from pullback.inference.engine.hypergraph.recursions import graph_of
from pullback.inference.engine.recursion import Combine
from pullback.inference.front import checks
from pullback.inference.front.layout import Layout, Size

_STATES = Layout("CTC", "T, G, K", sizes=(Size("lengths", bounds="T"), Size("target_lengths", bounds="G")))
_MOST = 2**20  # of the states of all frames, of which a table is made


def _value(scores: Tensor, lengths: Tensor, target_lengths: Tensor, combine: Combine) -> Tensor:
    """`blank[l]` and `symbol[l]`, the values of the paths so far that end with the blank, or the symbol, of l symbols."""
    count, nothing = scores.shape[2], scores.new_full((len(scores), 1), -torch.inf)
    blank = torch.cat([scores.new_zeros(len(scores), 1), nothing.expand(-1, count - 1)], 1)
    symbol = nothing.expand(-1, count)
    ends = [blank]
    for t in range(scores.shape[1]):
        own, again, skip = scores[:, t, :, 1], scores[:, t, :, 0], scores[:, t, :, 2]
        before, skipped = (torch.cat([nothing, x[:, :-1]], 1) for x in (blank, symbol))
        blank, symbol = (
            combine(torch.stack([blank + again, symbol + again], 1), 1),
            combine(torch.stack([symbol + own, before + own, skipped + skip], 1), 1),
        )
        ends.append(combine(torch.stack([blank, symbol], 1), 1))
    place = lengths * count + target_lengths.clamp_max(count - 1)
    return torch.cat(ends, 1).gather(1, place[:, None]).squeeze(1)


_topk = ranked.operation(_STATES, graph_of(_value, _STATES), "cpu", lambda shape: shape[0])


def topk(
    scores: Tensor, lengths: Tensor, target_lengths: Tensor, targets: Tensor, k: int, blank: int, validate: bool
) -> tuple[Tensor, Tensor]:
    """The parts `[B, k, T]` of the k best paths, and their scores `[B, k]`. Long ones are left to the reference."""
    (batch, frames, symbols), count = scores.shape, targets.shape[1] + 1
    if frames * count > _MOST or scores.numel() == 0:
        return reference.topk(scores, lengths, target_lengths, targets, k, blank, validate)
    sizes = lengths, target_lengths, targets
    status, safe = CTC.layout.status(scores, sizes), CTC.layout.in_range(scores, sizes)
    emissions, skips, found = reference._states(scores.detach(), target_lengths, targets, blank)
    own = torch.cat([emissions.new_full((batch, frames, 1), -torch.inf), emissions[:, :, 1::2]], 2)
    skip = own + torch.cat([skips.new_full((batch, 1), -torch.inf), skips[:, 1::2]], 1)[:, None]
    fits = (target_lengths >= 0) & (target_lengths < count) & (status == checks.OK)
    states = torch.stack([emissions[:, :, ::2], own, skip], 3)
    parts, totals = _topk(states, safe[0], torch.where(fits, target_lengths, 0), k, validate=False)
    totals = torch.where(fits[:, None], totals.nan_to_num(-torch.inf, neginf=-torch.inf), -torch.inf)
    infeasible = (status == checks.OK) & (totals[:, 0] == -torch.inf)
    frame, state = parts // (3 * count), parts % (3 * count)
    place = (2 * (state // 3) - (state % 3 > 0).long()).flatten(1).clamp_min(0)
    named = frame * symbols + found.gather(1, place).reshape(parts.shape)
    parts = torch.where((frame < frames) & (totals > -torch.inf)[:, :, None], named, frames * symbols)
    return parts, checks.settled(totals, torch.where(infeasible, checks.INFEASIBLE, status), validate)
