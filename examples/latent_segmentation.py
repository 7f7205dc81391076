"""Latent segments: a sequence is cut where its mean changes, learned from a count alone."""

import torch

import pullback as pb

torch.manual_seed(0)
n = W = 12


def sequences(batch):
    changes = torch.rand(batch, n) < 0.25
    changes[:, 0] = False
    levels = torch.randn(batch, n) * 3
    last = torch.where(changes | (torch.arange(n) == 0), torch.arange(n), 0).cummax(1).values
    return levels.gather(1, last) + 0.1 * torch.randn(batch, n), changes.sum(1) + 1.0


def spreads(x):
    """How uneven each segment is, [B, n, W]; segments beyond the end are no parts and may hold anything."""
    windows = torch.nn.functional.pad(x, (0, W - 1)).unfold(1, W, 1)
    return torch.stack([windows[..., : w + 1].std(-1, correction=0) for w in range(W)], -1)


weight, bias = torch.nn.Parameter(torch.tensor(-5.0)), torch.nn.Parameter(torch.tensor(-1.0))
optimizer = torch.optim.Adam([weight, bias], lr=0.3)
structure = pb.Segmentation()
for _ in range(200):
    x, count = sequences(64)
    scores = (weight * spreads(x) + bias)[..., None]  # one label
    expected = structure.marginals(scores).sum((1, 2, 3))
    loss = (expected - count).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

x, count = sequences(500)
best = structure.argmax((weight * spreads(x) + bias)[..., None])
print(f"loss {loss:.2f}; right number of segments in {(best.sum((1, 2, 3)) == count).float().mean():.0%} of new sequences")
print("the first one:", [round(v, 1) for v in x[0].tolist()], structure.segments(best[0]))
