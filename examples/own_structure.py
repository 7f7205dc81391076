"""A structure of your own: with `argmax` alone you get SparseMAP, and you can train through it.

The structure: one contiguous span of words, the part of a sentence that an answer rests on. The task: each word of a
sentence says whether it is marked (noisily) and carries a value, and the target is the total of the values in the
marked span. Nobody tells the model where the span is; it learns that from the targets, through the projection onto
the convex hull of all spans.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

import pullback as pb


class Span(pb.Structure):
    """One contiguous span of n words, not empty: z in {0, 1}^n with ones from its first to its last word.

    >>> Span().argmax(torch.tensor([1.0, -3.0, 2.0, -1.0, 4.0]))
    tensor([0., 0., 1., 1., 1.])
    """

    def argmax(self, scores: Tensor) -> Tensor:
        words = torch.arange(scores.shape[-1])
        first, last = torch.triu_indices(len(words), len(words))
        spans = (first[:, None] <= words) & (words <= last[:, None])
        totals = torch.where(spans, scores.unsqueeze(-2), 0.0).sum(-1)
        return spans[totals.argmax(-1)].to(scores.dtype)


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
    span = Span()
    encoder = nn.Linear(1, 1)
    optimizer = torch.optim.Adam(encoder.parameters(), lr=0.2)
    for _ in range(60):
        marks, values, _, target = sentences(32, 8, generator)
        scores = encoder(marks[..., None]).squeeze(-1)
        mu = span.sparsemap(scores)
        loss = ((mu * values).sum(-1) - target).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    marks, _, gold, _ = sentences(1000, 8, generator)
    with torch.no_grad():
        found = span.argmax(encoder(marks[..., None]).squeeze(-1))
    exact = (found == gold).all(-1).float().mean().item()

    solution = span.sparsemap_solution(torch.tensor([0.4, 0.3, -0.2, 0.5]))
    print("spans found exactly:", exact)
    print("a projection:", solution.mu.tolist(), "as a mean of the spans")
    for z, weight in zip(solution.structures, solution.weights, strict=True):
        print("  ", z.int().tolist(), "with weight", round(weight.item(), 3))
    return exact


if __name__ == "__main__":
    assert main() > 0.7
