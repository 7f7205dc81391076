"""Predict, then optimise: costs of the cells of a grid, learned for the shortest paths that they lead to, with SPO+."""

import torch

import pullback as pb

torch.manual_seed(0)
grid = pb.ShortestPath.grid(5, 5, "straight")
mixing = (torch.rand(25, 5) < 0.5).float()


def examples(count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Features `[count, 5]`, and the costs of the cells, which are no linear function of them."""
    x = torch.randn(count, 5)
    costs = ((x @ mixing.T / 5**0.5 + 3) ** 4 / 3.5**4 + 1) * (0.5 + torch.rand(count, 25))
    return x, costs.reshape(count, 5, 5)


def regret(model: torch.nn.Module, x: torch.Tensor, costs: torch.Tensor) -> float:
    """By how much the chosen paths cost more than the shortest ones, relative to these."""
    with torch.no_grad():
        chosen = grid.argmax(-model(x).unflatten(1, (5, 5)))
    least = grid.score(costs, grid.argmax(-costs)).sum()
    return float((grid.score(costs, chosen).sum() - least) / least)


x, costs = examples(100)
unseen = examples(1000)
found = {"untrained": regret(torch.nn.Linear(5, 25), *unseen)}
for name in ("squared error", "SPO+"):
    torch.manual_seed(1)
    model = torch.nn.Linear(5, 25)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.03)
    for _ in range(300):
        predicted = model(x).unflatten(1, (5, 5))
        if name == "SPO+":
            loss = pb.losses.SPOPlus()(grid, -predicted, costs=costs).mean()
        else:
            loss = (predicted - costs).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    found[name] = regret(model, *unseen)
for name, share in found.items():
    print(f"{name:14} regret {share:.1%}")
assert found["SPO+"] < found["untrained"] / 2
