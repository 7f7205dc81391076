"""Projective dependency trees by Eisner's algorithm: plain, slow, obviously right. See README.md for the items."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from pullback.inference import checks, random
from pullback.inference.differentiate import gradient, hessian_product
from pullback.inference.trees import from_heads

Combine = Callable[[list[Tensor]], Tensor]
Spans = dict[tuple[int, int], Tensor]
_FORBIDDEN = -1e15  # stands for -inf where gradients are taken: below any real score, far from overflow


def argmax(scores: Tensor, lengths: Tensor, multiroot: bool, validate: bool) -> Tensor:
    status = checks.status_of(scores, lengths)
    heads = torch.full(scores.shape[:2], -1, dtype=torch.long)
    for b, length in enumerate(lengths.tolist()):
        if status[b] == checks.OK and length > 0:
            chart = _Chart(scores[b : b + 1, :length, :length], multiroot, _largest)
            if chart.prefix[length] == -torch.inf:
                status[b] = checks.INFEASIBLE
            else:
                _follow(chart, lambda terms: int(torch.stack(terms).argmax()), heads[b])
    if validate:
        checks.raise_for(status, lengths, scores.shape[-1])
    return from_heads(heads, scores.dtype)


def log_partition(scores: Tensor, lengths: Tensor, multiroot: bool, validate: bool) -> Tensor:
    safe = _safe(scores, lengths, validate)
    log_z = _log_partition(safe, lengths, multiroot)
    if validate:
        checks.raise_for((log_z < _FORBIDDEN / 2) * checks.INFEASIBLE, lengths, scores.shape[-1])
    return log_z


def marginals(scores: Tensor, lengths: Tensor, multiroot: bool, validate: bool) -> Tensor:
    log_partition(scores, lengths, multiroot, validate)
    safe = _safe(scores, lengths, validate)
    return gradient(lambda s: _log_partition(s, lengths, multiroot), safe).to(scores.dtype)


def marginals_vjp(
    scores: Tensor, lengths: Tensor, direction: Tensor, multiroot: bool, validate: bool
) -> Tensor:
    safe = _safe(scores, lengths, validate)
    v = checks.only_words(direction.double(), lengths)
    return hessian_product(lambda s: _log_partition(s, lengths, multiroot), safe, v).to(scores.dtype)


def entropy(scores: Tensor, lengths: Tensor, multiroot: bool, validate: bool) -> Tensor:
    """H = log Z - <s, mu>, which does not change with a constant added to a word's column: its largest score goes."""
    log_partition(scores, lengths, multiroot, validate)
    real = _safe(scores, lengths, validate)
    real = real - real.amax(1, keepdim=True) if real.numel() > 0 else real
    log_z = log_partition(real, lengths, multiroot, validate)
    mu = marginals(real, lengths, multiroot, validate)
    return log_z - (mu * real).sum((1, 2))


def entropy_gradient(scores: Tensor, lengths: Tensor, multiroot: bool, validate: bool) -> Tensor:
    """-J s, from which a constant of each column drops out: its largest score goes."""
    safe = _safe(scores, lengths, validate)
    along = safe - safe.amax(1, keepdim=True) if safe.numel() > 0 else safe
    return -marginals_vjp(scores, lengths, along, multiroot, validate)


def sample(scores: Tensor, lengths: Tensor, seeds: Tensor, multiroot: bool, validate: bool) -> Tensor:
    log_partition(scores, lengths, multiroot, validate)
    safe = _safe(scores, lengths, validate)
    heads = torch.full(scores.shape[:2], -1, dtype=torch.long)
    for b, length in enumerate(lengths.tolist()):
        if length > 0:
            chart = _Chart(safe[b : b + 1, :length, :length], multiroot, _log_sum)
            uniform = random.stream(int(seeds[b]))

            def draw(terms: list[Tensor], uniform: Callable[[], float] = uniform) -> int:
                p = torch.cat(terms).softmax(0).cumsum(0)
                return min(int((p <= uniform() * p[-1]).sum()), len(terms) - 1)

            _follow(chart, draw, heads[b])
    return from_heads(heads, scores.dtype)


class _Chart:
    """Eisner's items for a batch of sentences of one padded length, each value `[B]`."""

    def __init__(self, scores: Tensor, multiroot: bool, combine: Combine) -> None:
        n = scores.shape[-1]
        zero = scores.new_zeros(scores.shape[0])
        self.scores, self.multiroot = scores, multiroot
        self.right: Spans = {(i, i): zero for i in range(n)}
        self.left: Spans = {(i, i): zero for i in range(n)}
        self.right_arc: Spans = {}
        self.left_arc: Spans = {}
        for width in range(1, n):
            for i in range(n - width):
                j = i + width
                between = combine(self.between_terms(i, j))
                self.right_arc[i, j] = between + scores[:, i, j]
                self.left_arc[i, j] = between + scores[:, j, i]
                self.right[i, j] = combine(self.right_terms(i, j))
                self.left[i, j] = combine(self.left_terms(i, j))
        self.prefix = {0: zero}
        self.root_arc: dict[int, Tensor] = {}
        for r in range(n):
            self.root_arc[r] = combine(self.root_arc_terms(r)) + scores[:, r, r]
            self.prefix[r + 1] = combine(self.prefix_terms(r + 1))

    def between_terms(self, i: int, j: int) -> list[Tensor]:
        return [self.right[i, k] + self.left[k + 1, j] for k in range(i, j)]

    def right_terms(self, i: int, j: int) -> list[Tensor]:
        return [self.right_arc[i, k] + self.right[k, j] for k in range(i + 1, j + 1)]

    def left_terms(self, i: int, j: int) -> list[Tensor]:
        return [self.left[i, k] + self.left_arc[k, j] for k in range(i, j)]

    def root_arc_terms(self, r: int) -> list[Tensor]:
        starts = range(r + 1) if self.multiroot else [0]
        return [self.prefix[i] + self.left[i, r] for i in starts]

    def prefix_terms(self, j: int) -> list[Tensor]:
        return [self.root_arc[r] + self.right[r, j - 1] for r in range(j)]


def _follow(chart: _Chart, choose: Callable[[list[Tensor]], int], heads: Tensor) -> None:
    """Build one tree top-down: `choose` picks a term of each item on the way."""
    todo: list[tuple[str, int, int]] = []
    j = chart.scores.shape[-1]
    while j > 0:
        r = choose(chart.prefix_terms(j))
        heads[r] = r
        todo.append(("right", r, j - 1))
        start = choose(chart.root_arc_terms(r))
        todo.append(("left", start, r))
        j = start
    while todo:
        side, i, j = todo.pop()
        if i == j:
            continue
        if side == "right":
            k = i + 1 + choose(chart.right_terms(i, j))
            heads[k] = i
            todo.append(("right", k, j))
            inner = (i, k)
        else:
            k = i + choose(chart.left_terms(i, j))
            heads[k] = j
            todo.append(("left", i, k))
            inner = (k, j)
        split = inner[0] + choose(chart.between_terms(*inner))
        todo += [("left", split + 1, inner[1]), ("right", inner[0], split)]


def _log_partition(safe: Tensor, lengths: Tensor, multiroot: bool) -> Tensor:
    chart = _Chart(safe, multiroot, _log_sum)
    prefixes = torch.stack([chart.prefix[j] for j in range(safe.shape[-1] + 1)])
    return prefixes.gather(0, lengths[None]).squeeze(0)


def _largest(terms: list[Tensor]) -> Tensor:
    return torch.stack(terms).amax(0)


def _log_sum(terms: list[Tensor]) -> Tensor:
    return torch.stack(terms).logsumexp(0)


def _safe(scores: Tensor, lengths: Tensor, validate: bool) -> Tensor:
    """Scores in float64 without -inf and without what padding holds."""
    if validate:
        checks.raise_for(checks.status_of(scores, lengths), lengths, scores.shape[-1])
    return checks.only_words(scores.detach().double(), lengths).clamp_min(_FORBIDDEN)
