"""Independent answers to compare with: brute force over an enumerated set, and the definition of a tree."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

import torch
from torch import Tensor
from torch.nn.functional import pad

from cases import Entry


@functools.cache
def everything(case: Entry, n: int) -> Tensor:
    """All structures of size n, `[S, *parts]`, float64."""
    return case.enumerate(*case.sized(n)).double()


Own = Callable[[Tensor], Tensor]


def totals(z: Tensor, scores: Tensor, own: Own) -> Tensor:
    """The score of every z of `[S, *parts]`, `[S]`; a part that is not used contributes nothing."""
    parts, s = z.flatten(1), scores.flatten()
    return torch.where(parts == 0, 0.0, s.double().cpu()).mul(parts).sum(1) + own(z)


def brute_force(case: Entry, operation: str, scores: Tensor, lengths: Sequence[int] | None = None) -> Tensor:
    """`operation` by enumeration, in float64 on the CPU, differentiable; zeros in the padding.

    Args:
        case: the structure.
        operation: the name of one of the functions below.
        scores: `[B, *parts]`.
        lengths: the size of each example, all parts by default.
    """
    n = scores.shape[-case.event_dims]
    results = []
    for s, length in zip(scores, [n] * len(scores) if lengths is None else lengths, strict=True):
        inside = s if lengths is None else s[(slice(length),) * case.event_dims]
        result = _ORACLES[operation](everything(case, length), inside, case.own)
        results.append(pad(result, (0, n - length) * result.dim()))
    return torch.stack(results)


def _marginals(z: Tensor, scores: Tensor, own: Own) -> Tensor:
    return (totals(z, scores, own).softmax(0) @ z.flatten(1)).reshape(scores.shape)


def _log_partition(z: Tensor, scores: Tensor, own: Own) -> Tensor:
    return totals(z, scores, own).logsumexp(0)


def _entropy(z: Tensor, scores: Tensor, own: Own) -> Tensor:
    log_p = totals(z, scores, own)
    log_p = log_p[log_p > -torch.inf].log_softmax(0)
    return -(log_p.exp() * log_p).sum()


def _best(z: Tensor, scores: Tensor, own: Own) -> Tensor:
    return totals(z, scores, own).amax(0)


_ORACLES: dict[str, Callable[[Tensor, Tensor, Own], Tensor]] = {
    "marginals": _marginals,
    "log_partition": _log_partition,
    "entropy": _entropy,
    "best": _best,
}


def index_of(case: Entry, z: Tensor) -> Tensor:
    """Where each of `[B, *parts]` stands in the enumeration, `[B]`; fails if one is not in it."""
    known = everything(case, z.shape[-case.event_dims]).flatten(1)
    same = (z.double().cpu().flatten(1)[:, None] == known[None]).all(-1)
    assert same.any(-1).all(), f"not in the enumerated set: {z[~same.any(-1).to(z.device)][0]}"
    return same.double().argmax(-1)


def assert_structures(case: Entry, z: Tensor, lengths: Sequence[int] | None = None) -> None:
    """Each of `[B, *parts]` is a structure of its length, with zeros in the padding."""
    if case.kind is None:
        index_of(case, z)
        return
    for one, length in zip(z, [z.shape[-1]] * len(z) if lengths is None else lengths, strict=True):
        inside = one[(slice(length),) * case.event_dims]
        assert one.sum() == inside.sum(), f"not zero in the padding: {one}"
        assert ((inside == 0) | (inside == 1)).all(), inside
        assert (inside.sum(0) == 1).all(), f"not one head a word: {inside}"
        assert is_tree(inside.long().argmax(0).tolist() if length else [], case.projective, case.multiroot), inside


def is_tree(heads: Sequence[int], projective: bool, multiroot: bool) -> bool:
    """The definition: heads (a word's own index is the root) without cycles, and, if asked, with one root, projective.

    Projective: every word between a head and its modifier descends from the head.
    """
    words = range(len(heads))
    ancestors = [_ancestors(heads, m) for m in words]
    if any(found is None for found in ancestors):
        return False
    if len(heads) and not multiroot and sum(heads[m] == m for m in words) != 1:
        return False
    arcs = [(heads[m], m) for m in words if heads[m] != m]
    between = [(h, k) for h, m in arcs for k in range(min(h, m) + 1, max(h, m))]
    return not projective or all(h in (ancestors[k] or ()) for h, k in between)


def _ancestors(heads: Sequence[int], word: int) -> list[int] | None:
    """The words above this one, or None if it is below a cycle."""
    found: list[int] = []
    while heads[word] != word:
        word = heads[word]
        if word in found:
            return None
        found.append(word)
    return found


def forbid(case: Entry, scores: Tensor, *, share: float = 0.4, seed: int = 0) -> Tensor:
    """`[B, *parts]` with about this share of parts at -inf, and at least one structure left in each example."""
    generator = torch.Generator().manual_seed(seed)
    z = everything(case, scores.shape[-case.event_dims]).to(scores.device)
    kept = z[torch.randint(len(z), (len(scores),), generator=generator)].bool()
    out = (torch.rand(scores.shape, generator=generator) < share).to(scores.device)
    return scores.masked_fill(out & ~kept, -torch.inf)


def chi_square_tail(counts: Tensor, probabilities: Tensor) -> float:
    """How likely counts at least this far from their expectation are, if the probabilities are right.

    Cells are pooled from the rarest up until each expects ten, so that the chi-square limit holds.
    """
    expected = probabilities * counts.sum()
    assert counts[probabilities == 0].sum() == 0, "something impossible was drawn"
    observed, expectation, cells = 0.0, 0.0, []
    for i in expected.argsort().tolist():
        observed, expectation = observed + float(counts[i]), expectation + float(expected[i])
        if expectation >= 10:
            cells.append((observed, expectation))
            observed, expectation = 0.0, 0.0
    if expectation > 0 and cells:
        last = cells.pop()
        cells.append((last[0] + observed, last[1] + expectation))
    if len(cells) < 2:  # one outcome alone
        return 1.0
    statistic = sum((o - e) ** 2 / e for o, e in cells)
    freedom = torch.tensor((len(cells) - 1) / 2, dtype=torch.float64)
    return float(torch.special.gammaincc(freedom, torch.tensor(statistic / 2, dtype=torch.float64)))


def mask_of(entry: Entry) -> Tensor:
    """Which entries of a padded batch are parts, of bool."""
    return entry.structure().allowed(torch.zeros(len(entry.sizes), *entry.parts))


def poisoned(entry: Entry, scores: Tensor) -> Tensor:
    """The same with NaN outside of the parts."""
    return torch.where(mask_of(entry), scores, torch.nan)


def exact(entry: Entry, scores: Tensor, example: int) -> tuple[Tensor, Tensor, Tensor]:
    """All structures of an example, their scores and probabilities."""
    z = entry.all_of(example)
    s = torch.where(mask_of(entry)[example], scores[example], 0.0)
    value = (torch.where(z > 0, s, 0.0)).flatten(1).sum(1) + entry.own(z)
    return z, value, value.softmax(0)


def mean(p: Tensor, z: Tensor) -> Tensor:
    """The mean of structures of these probabilities."""
    return (p.reshape(-1, *[1] * (z.dim() - 1)) * z).sum(0)
