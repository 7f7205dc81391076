import pytest
import torch

from pullback_study.tasks.replicas import Adam


@pytest.mark.parametrize("peer", [torch.optim.Adam, lambda p, lr: torch.optim.AdamW(p, lr=lr, weight_decay=0.0)])
def test_equals_pytorchs_for_each_replica(peer):
    rates = [0.1, 0.01, 0.001]
    generator = torch.Generator().manual_seed(0)
    start = torch.randn(3, 7, generator=generator, dtype=torch.float64)
    gradients = torch.randn(30, 3, 7, generator=generator, dtype=torch.float64)
    step = torch.zeros((), dtype=torch.int64)
    together = Adam(start.clone(), rates, step)
    alone = [start[r].clone().requires_grad_() for r in range(3)]
    peers = [peer([parameter], lr=rate) for parameter, rate in zip(alone, rates, strict=True)]
    for gradient in gradients:
        together.update(gradient)
        step.add_(1)
        for r, optimizer in enumerate(peers):
            alone[r].grad = gradient[r].clone()
            optimizer.step()
    torch.testing.assert_close(together.parameters, torch.stack(alone).detach(), rtol=1e-12, atol=1e-13)
