"""Inner steps by hand: their formulas where parts are forbidden."""

from __future__ import annotations

import torch

import pullback as pb


def test_an_unconstrained_step_leaves_forbidden_parts_at_zero() -> None:
    scores = torch.tensor([[1.0, -torch.inf, 0.0]])
    update = pb.parts.Unconstrained(step_size=0.5)
    state = update.init(pb.Categorical(), scores, start=torch.tensor([[1.0, 0.0, 0.0]]))
    for _ in range(2):
        state = update.step(pb.Categorical(), state, gamma=torch.tensor([[1.0, 4.0, -2.0]]))
    assert torch.equal(state.mu, torch.tensor([[0.0, 0.0, 2.0]]))
    assert torch.equal(state.moved, torch.tensor([[1.0, 0.0, -2.0]]))
