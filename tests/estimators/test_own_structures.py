"""What a user's structure gets from what it defines: the table of docs/write-a-structure.md."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor

import pullback as pb
from pullback.estimators import registry

TABLE = Path(__file__).parents[2] / "docs" / "write-a-structure.md"


class Pairs(pb.Structure):
    """Two neighbours of n items, from an argmax alone."""

    def argmax(self, scores: Tensor) -> Tensor:
        return self.everything(scores)[self.totals(scores).argmax(-1)]

    def everything(self, scores: Tensor) -> Tensor:
        n = scores.shape[-1]
        return (torch.eye(n)[:-1] + torch.eye(n)[1:]).to(scores)

    def totals(self, scores: Tensor) -> Tensor:
        return scores[..., :-1] + scores[..., 1:]


class Distribution(Pairs):
    """The same, with a log-partition."""

    def log_partition(self, scores: Tensor) -> Tensor:
        return self.totals(scores).logsumexp(-1)


class Sampled(Distribution):
    """The same, with samples."""

    def sample(self, scores: Tensor, generator: torch.Generator | None = None) -> Tensor:
        upto = self.totals(scores.detach()).softmax(-1).cumsum(-1)
        drawn = torch.rand(upto.shape[:-1], generator=generator).unsqueeze(-1)
        return self.everything(scores)[(upto < drawn).sum(-1).clamp_max(upto.shape[-1] - 1)]


def documented() -> list[set[str]]:
    """The estimators in the rows of the table, by what they add."""
    rows = [line for line in TABLE.read_text().splitlines() if "the estimators `" in line]
    return [{name.strip(" `|") for name in row.split("the estimators ")[1].split(",")} for row in rows]


def works(structure: pb.Structure, entry: registry.Entry) -> bool:
    scores = torch.randn(3, 5, generator=torch.Generator().manual_seed(0)).requires_grad_()
    torch.manual_seed(0)
    try:
        registry.create(entry.name).objective(structure, scores, lambda z: (z.cumsum(-1).sum(-1) - 1) ** 2).sum().backward()
    except NotImplementedError as error:
        if not any(f"`{operation}`" in str(error) for operation in ("marginals", "sample", "log_partition")):
            raise
        return False
    return scores.grad is not None and bool(scores.grad.isfinite().all())


@pytest.mark.parametrize(("rows", "structure"), list(enumerate([Pairs(), Distribution(), Sampled()], 1)))
def test_the_table_is_true(rows: int, structure: pb.Structure) -> None:
    promised = set().union(*documented()[:rows])
    entries = [entry for entry in registry.ENTRIES if entry.only is None]
    found = {type(registry.create(entry.name)).__name__ for entry in entries if works(structure, entry)}
    assert promised <= found
    assert found - promised <= {"Standardized"}  # of another one
