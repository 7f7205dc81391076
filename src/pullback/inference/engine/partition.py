"""The k best structures from an argmax: Murty's and Lawler's partition.

A structure is a choice for each of some groups. The best one splits the others by the first group in which they differ from it:
so none is found twice, and each of these sets is searched by one argmax, in which the groups before that one are fixed and some
choices of that one are forbidden. The best of all sets comes next, and its set is split in turn. Of equal ones, the one found
first comes first.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

_MOST = 2**22  # numbers that one call of the argmax takes


@dataclass(frozen=True)
class Sets:
    """Sets of structures.

    Attributes:
        values: the score of the best member, `[N]`; -inf for an empty set.
        choices: of the best member, `[N, G]`; -1 for a group that is padding.
        start: the first group that is not fixed, `[N]`.
        banned: what that group cannot choose, `[N, M]`.
    """

    values: Tensor
    choices: Tensor
    start: Tensor
    banned: Tensor

    def map(self, function: Callable[[Tensor], Tensor]) -> Sets:
        return Sets(function(self.values), function(self.choices), function(self.start), function(self.banned))


Solve = Callable[[Tensor, Sets], tuple[Tensor, Tensor]]
"""From the numbers of examples `[N]` and a set for each to the choices of its best member, not known yet, and the score."""


def ranked(solve: Solve, choices: Tensor, values: Tensor, k: int, options: int) -> tuple[Tensor, Tensor]:
    """The choices of the k best structures, `[B, k, G]`, and their scores `[B, k]`, -inf where there are fewer.

    Args:
        solve: the argmax under constraints.
        choices: of the best structures, `[B, G]`.
        values: their scores `[B]`, float64; -inf for examples without a structure.
        k: how many.
        options: M, how many choices a group has at most.
    """
    batch, groups = choices.shape
    start, banned = choices.new_zeros(batch), torch.zeros(batch, options, dtype=torch.bool, device=choices.device)
    pool, found = Sets(values, choices, start, banned).map(lambda x: x[:, None]), []
    step = max(_MOST // max(batch * groups * options, 1), 1)
    for left in range(k - 1, -1, -1):
        head = pool.map(lambda x: x[:, 0])
        found.append(head)
        pool = pool.map(lambda x: torch.cat([x[:, 1:], torch.zeros_like(x[:, :1])], 1))
        pool.values[:, -1] = -torch.inf
        for begin in range(0, groups if left else 0, step):
            some = torch.arange(begin, min(begin + step, groups), device=choices.device)
            pool = _best(pool, _split(solve, head, some), left)
    return torch.stack([head.choices for head in found], 1), torch.stack([head.values for head in found], 1)


def _best(a: Sets, b: Sets, count: int) -> Sets:
    """The best sets of both, those of `a` first among equals."""
    order = torch.cat([a.values, b.values], 1).sort(dim=1, descending=True, stable=True).indices[:, :count]

    def pick(x: Tensor, y: Tensor) -> Tensor:
        both = torch.cat([x, y], 1)
        return both.gather(1, order if both.dim() == 2 else order[:, :, None].expand(-1, -1, both.shape[2]))

    return Sets(pick(a.values, b.values), pick(a.choices, b.choices), pick(a.start, b.start), pick(a.banned, b.banned))


def _split(solve: Solve, head: Sets, some: Tensor) -> Sets:
    """The members of a set that first differ from its best one in each of some groups, as sets `[B, groups]`."""
    batch, (count,) = len(head.values), some.shape
    chosen, options = head.choices[:, some], head.banned.shape[1]
    own = torch.arange(options, device=some.device) == chosen[:, :, None]
    banned = own | (head.banned[:, None] & (some == head.start[:, None])[:, :, None])
    possible = (chosen >= 0) & (some >= head.start[:, None]) & ~banned.all(2) & (head.values > -torch.inf)[:, None]
    rows = torch.arange(batch, device=some.device).repeat_interleave(count)
    unknown = Sets(head.values[rows], head.choices[rows], some.repeat(batch), banned.flatten(0, 1))
    choices, values = solve(rows, unknown)
    values = torch.where(possible, values.reshape(batch, count), -torch.inf)
    return Sets(values, choices.reshape(batch, count, head.choices.shape[1]), some.expand(batch, -1), banned)


def by_groups(argmax: Callable[[Tensor, Tensor], Tensor], scores: Tensor, k: int, dim: int) -> tuple[Tensor, Tensor]:
    """The parts `[B, k, G]` and the scores `[B, k]` of the k best structures that have one part along a dimension; K for none.

    Args:
        argmax: from numbers of examples `[N]` and their scores to structures, NaN where there is none.
        scores: `[B, *parts]`, two dimensions of parts, -inf on everything that is not a part.
        k: how many.
        dim: of the parts, -1 or -2: each index of the other one is a group, which is without a part if it is padding.
    """
    s, every = scores.transpose(dim, -1), torch.arange(len(scores), device=scores.device)
    groups, options = s.shape[1:]
    if groups * options == 0:
        values = torch.zeros(len(s), k, dtype=torch.float64, device=s.device)
        values[:, 1:] = -torch.inf
        return torch.zeros(len(s), k, groups, dtype=torch.long, device=s.device), values
    group, option = torch.arange(groups, device=s.device), torch.arange(options, device=s.device)

    def best(rows: Tensor, s: Tensor) -> tuple[Tensor, Tensor]:
        z = argmax(rows, s.transpose(dim, -1)).transpose(dim, -1)
        used, choice = torch.where(z > 0.5, 1, 0).max(2)
        value = torch.where(used > 0, s.gather(2, choice[:, :, None])[:, :, 0].double(), 0.0).sum(1)
        return torch.where(used > 0, choice, -1), torch.where(z[:, 0, 0].isnan() | ~(value > -torch.inf), -torch.inf, value)

    def solve(rows: Tensor, sets: Sets) -> tuple[Tensor, Tensor]:
        start = sets.start[:, None]
        lost = (group < start)[:, :, None] & (option != sets.choices[:, :, None])
        lost |= (group == start)[:, :, None] & sets.banned[:, None]
        return best(rows, s[rows].masked_fill_(lost, -torch.inf))

    choices, values = ranked(solve, *best(every, s), k, options)
    parts = choices + group * options if dim == -1 else choices * groups + group
    return torch.where((choices >= 0) & (values > -torch.inf)[:, :, None], parts, groups * options), values


def by_argmax(argmax: Callable[[Tensor], Tensor], scores: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The parts `[B, k, most]` and the scores `[B, k]` of the k best structures, from an argmax alone; K for none.

    Each part is a group: used or not. A part is forced into a structure by a bonus on its score, larger than all that other
    scores can make up for.

    Args:
        argmax: from scores `[B, N, *parts]` to structures.
        scores: `[B, *parts]`, -inf on everything that is not a part.
        k: how many.
    """
    flat, batch = scores.flatten(1), len(scores)
    sizes = torch.where(flat.isfinite(), flat.abs(), 0.0)
    large = sizes > 1e6  # masks, perhaps: a bonus of their size would cost the digits of the other scores
    bonus, most = (1.0 + 2.0 * x.sum(1) for x in (torch.where(large, 0.0, sizes), sizes))
    part = torch.arange(flat.shape[1], device=flat.device)

    def best(rows: Tensor, given: Tensor) -> tuple[Tensor, Tensor]:
        z = argmax(given.reshape(batch, len(rows) // max(batch, 1), *scores.shape[1:])).reshape(given.shape)
        value = torch.where(z > 0.5, flat[rows].double(), 0.0).sum(1)
        return (z > 0.5).long(), torch.where(z.isnan().any(1) | ~(value > -torch.inf), -torch.inf, value)

    def attempt(rows: Tensor, sets: Sets, more: Tensor) -> tuple[Tensor, Tensor]:
        start, used = sets.start[:, None], sets.choices == 1
        forced, lost = ((part < start) & x | (part == start) & ~x for x in (used, ~used))
        raised = torch.where(forced, flat[rows] + more[rows, None], flat[rows])
        choices, value = best(rows, raised.masked_fill_(lost, -torch.inf))
        obeys = ~((choices == 1) & lost | (choices == 0) & forced).any(1)
        return choices, torch.where(obeys, value, -torch.inf)

    def solve(rows: Tensor, sets: Sets) -> tuple[Tensor, Tensor]:
        choices, value = attempt(rows, sets, bonus)
        if ((value == -torch.inf) & large.any(1)[rows]).any():
            other, again = attempt(rows, sets, most)
            choices, value = torch.where((value == -torch.inf)[:, None], other, choices), torch.maximum(value, again)
        return choices, value

    choices, values = ranked(solve, *best(torch.arange(batch, device=flat.device), flat), k, 2)
    used = (choices == 1) & (values > -torch.inf)[:, :, None]
    most_parts = int(used.sum(2).max()) if used.numel() else 0
    return torch.where(used, part, len(part)).sort(dim=2).values[:, :, :most_parts], values
