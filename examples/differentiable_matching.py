"""Learn to match: features of two sides, trained on who belongs together."""

import torch

import pullback as pb

torch.manual_seed(0)
n, DIM = 6, 5
rotation = torch.linalg.qr(torch.randn(DIM, DIM)).Q  # the second side sees the first one rotated


def pairs(batch):
    left = torch.randn(batch, n, DIM)
    order = torch.rand(batch, n).argsort(1)
    right = (left @ rotation).gather(1, order[..., None].expand(-1, -1, DIM)) + 0.3 * torch.randn(batch, n, DIM)
    return left, right, order.argsort(1)


metric = torch.nn.Linear(DIM, DIM, bias=False)
optimizer = torch.optim.Adam(metric.parameters(), lr=0.02)
matching = pb.Matching()
for _ in range(150):
    left, right, gold = pairs(32)
    scores = metric(left) @ right.transpose(-1, -2)
    target = torch.nn.functional.one_hot(gold, n).float()
    loss = (matching.sparsemap(scores) - target).square().sum((1, 2)).mean()  # SparseMAP: the differentiable matching
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

left, right, gold = pairs(500)
found = matching.columns(matching.argmax(metric(left) @ right.transpose(-1, -2)))
print(f"loss {loss:.2f}; {(found == gold).float().mean():.0%} of new pairs matched")
