"""A rationale: choose 2 of 10 features that explain a label, learned from the label."""

import torch
import torch.nn.functional as F

import pullback as pb

torch.manual_seed(0)
features, k = 10, 2
selector = torch.nn.Parameter(torch.zeros(features))
predictor = torch.nn.Sequential(torch.nn.Linear(features, 64), torch.nn.ReLU(), torch.nn.Linear(64, 2))
optimizer = torch.optim.Adam([{"params": [selector], "lr": 0.05}, {"params": predictor.parameters(), "lr": 0.01}])
estimator, subset = pb.STEMarginals(), pb.Subset(k)

for _ in range(200):
    x = torch.randn(256, features)
    y = (x[:, 3] + x[:, 7] > 0).long()

    def downstream(z, x=x, y=y):
        return F.cross_entropy(predictor(x * z), y, reduction="none")

    loss = estimator.objective(subset, selector.expand(256, features), downstream).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

print(f"loss {loss:.2f}; chosen features {subset.indices(subset.argmax(selector)).tolist()}, the label needs [3, 7]")
