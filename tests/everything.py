"""Every operation of every structure on small scores, by the backend that serves: what another installation must reproduce."""

from __future__ import annotations

import sys
from typing import Any

import torch

import pullback as pb
from cases import ENTRIES, value_and_gradient


def results() -> dict[Any, Any]:
    """Values and gradients, by the name of the structure and of the operation; and what else runs on the CPU."""
    found = {}
    for entry in ENTRIES:
        if entry.fixed:
            structure, scores = entry.structure(validate=True), entry.scores()
        else:
            structure, scores = entry.whole(), entry.random(2, n=max(3, entry.smallest), seed=3)
        for name, operation in entry.operations.items():
            if name == "sample":  # one of several right ones
                found[entry.name, name] = structure.contains(operation(structure, scores))
            elif name in entry.differentiable:
                found[entry.name, name] = value_and_gradient(operation, structure, scores)
            else:
                found[entry.name, name] = operation(structure, scores)
        best = structure.topk(scores, 2)
        found[entry.name, "topk"] = structure.contains(best.structures), best.scores
    emissions = torch.randn(64, 50, 20, generator=torch.Generator().manual_seed(0))
    found["combine"] = pb.LinearChain().combine(emissions, torch.ones(20, 20)).sum()
    crf = pb.nn.CRF(3, batch_first=True)
    torch.nn.init.constant_(crf.transitions, 0.5)
    found["crf"] = crf.decode(emissions[:2, :4, :3])
    found["spigot"] = value_and_gradient(pb.SPIGOT(), pb.DependencyTree(), torch.linspace(-1, 1, 18).reshape(2, 3, 3).double())
    return found


if __name__ == "__main__":
    torch.save(results(), sys.argv[1])
