"""Structures of your own: from an `argmax` alone, and from a `log_partition`.

Tags: a sequence of tags, one for each position, by Viterbi's algorithm in plain PyTorch. With its `argmax` come SparseMAP
and its certificate, and all estimators that need no more.

Span: one contiguous span of words, the part of a sentence that an answer rests on. With a differentiable `log_partition`
come marginals, entropy, log-probabilities and divergences. The model below learns where spans are from targets
alone, through the marginals of all spans.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

import pullback as pb


class Tags(pb.Structure):
    """One of C tags at each of n positions: z[i, a, b] = 1 for tag a at i - 1 and tag b at i; row 0 at the first position.

    >>> scores = torch.tensor([[[0.0, 1.0], [9.0, 9.0]], [[0.0, 0.0], [2.0, 0.0]]])
    >>> Tags().argmax(scores)
    tensor([[[0., 1.],
             [0., 0.]],
    <BLANKLINE>
            [[0., 0.],
             [1., 0.]]])
    """

    event_dims = 3

    def argmax(self, scores: Tensor) -> Tensor:
        n, first = scores.shape[-3], torch.zeros_like(scores[..., 0, 0, :1]).long()
        best, before = scores[..., 0, 0, :], []
        for i in range(1, n):
            best, at = (best.unsqueeze(-1) + scores[..., i, :, :]).max(-2)
            before.append(at)
        tags = [best.argmax(-1, keepdim=True)]
        for at in reversed(before):
            tags.insert(0, at.gather(-1, tags[0]))
        z = torch.zeros_like(scores)
        for i, (a, b) in enumerate(zip([first, *tags], tags, strict=False)):
            z[..., i, :, :] = nn.functional.one_hot(a, z.shape[-1]).mT * nn.functional.one_hot(b, z.shape[-1])
        return z

    def allowed(self, scores: Tensor) -> Tensor:
        exists = torch.ones(scores.shape[-3:], dtype=torch.bool, device=scores.device)
        exists[0, 1:] = False
        return exists & (scores != -torch.inf)


class Span(pb.Structure):
    """One contiguous span of n words, not empty: z in {0, 1}^n with ones from its first to its last word.

    >>> Span().argmax(torch.tensor([1.0, -3.0, 2.0, -1.0, 4.0]))
    tensor([0., 0., 1., 1., 1.])
    >>> Span().marginals(torch.zeros(2))
    tensor([0.6667, 0.6667])
    """

    def enumerate(self, n: int) -> Tensor:
        words = torch.arange(n)
        first, last = torch.triu_indices(n, n)
        return ((first[:, None] <= words) & (words <= last[:, None])).float()

    def argmax(self, scores: Tensor) -> Tensor:
        return self.enumerate(scores.shape[-1]).to(scores)[self._totals(scores).argmax(-1)]

    def log_partition(self, scores: Tensor) -> Tensor:
        return self._totals(scores).logsumexp(-1)

    def _totals(self, scores: Tensor) -> Tensor:
        spans = self.enumerate(scores.shape[-1]).to(scores.device)
        return torch.where(spans > 0, scores.unsqueeze(-2), 0.0).sum(-1)


def sentences(count: int, n: int, generator: torch.Generator) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Marks and values of words `[count, n]`, the gold spans `[count, n]`, and the targets `[count]`."""
    ends = torch.randint(n, (count, 2), generator=generator).sort(-1).values
    words = torch.arange(n)
    gold = ((ends[:, :1] <= words) & (words <= ends[:, 1:])).float()
    marks = gold + 0.25 * torch.randn(count, n, generator=generator)
    values = torch.randn(count, n, generator=generator)
    return marks, values, gold, (gold * values).sum(-1)


def main() -> float:
    """Train, and return the share of sentences whose span is found exactly."""
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(0)
    span, encoder = Span(), nn.Linear(1, 1)
    optimizer = torch.optim.Adam(encoder.parameters(), lr=0.2)
    for _ in range(60):
        marks, values, _, target = sentences(32, 8, generator)
        mu = span.marginals(encoder(marks[..., None]).squeeze(-1))
        loss = ((mu * values).sum(-1) - target).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    marks, _, gold, _ = sentences(1000, 8, generator)
    with torch.no_grad():
        scores = encoder(marks[..., None]).squeeze(-1)
        found = span.argmax(scores)
    exact = (found == gold).all(-1).float().mean().item()
    print("spans found exactly:", exact)
    print("entropy of their distributions, in nats:", round(span.entropy(scores).mean().item(), 3))

    solution = Tags().sparsemap_solution(torch.randn(4, 10, 5, 5, generator=generator))
    print("tag sequences in four projections:", (solution.weights > 0).sum(-1).tolist())
    print("largest duality gap:", f"{solution.gap.max():.0e}", "converged:", solution.converged.all().item())
    return exact


if __name__ == "__main__":
    assert main() > 0.7
