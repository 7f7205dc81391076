"""Shortest paths through a grid, learned from the paths that travellers took: only their recursion is written here."""

import torch

import pullback as pb


class GridPath(pb.DynamicProgram):
    """The cells `[rows, columns]` of a path that goes right or down."""

    event_dims = 2

    def value(self, scores, combine):
        batch, rows, columns = scores.shape
        best = scores.new_full((batch, rows + 1, columns + 1), -torch.inf)
        best[:, 0, 1] = 0.0  # where a path begins: above the first cell
        for i in range(rows):
            for j in range(columns):
                before = torch.stack([best[:, i, j + 1], best[:, i + 1, j]], 1)
                best[:, i + 1, j + 1] = scores[:, i, j] + combine(before, 1)
        return best[:, rows, columns]


torch.manual_seed(0)
paths = GridPath()
paths.check(3, 3)
terrain, costs = torch.randn(256, 8, 8, 4), torch.tensor([1.0, -2.0, 0.5, 0.0])
taken = paths.argmax(-(terrain @ costs))
weights = torch.zeros(4, requires_grad=True)
optimizer = torch.optim.Adam([weights], lr=0.1)
for _ in range(60):
    loss = -paths.log_prob(terrain @ weights, taken).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
right = (paths.argmax(terrain @ weights) == taken).flatten(1).all(1).float().mean()
print(f"{right:.0%} of the paths are found")
assert right > 0.8
