"""Every launch of a kernel that the `cuda` backend makes, recorded instead of run: for what needs no device."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import Tensor

from pullback.inference._triton.support import _NOTHING, Fixed
from pullback.inference.front.family import backend
from pullback.inference.trees.family import TREES

ALGORITHMS = ("eisner", "chu_liu_edmonds", "matrix_tree", "sparsemap")
FOLDERS = (
    "engine.hypergraph.cuda", "engine.hypergraph.cuda_likelihood", "chain.cuda", "alignment.cuda", "subset.cuda",
    "sparsemap.cuda_batched",
)  # fmt: skip


@dataclass(frozen=True)
class Launch:
    """A kernel with its arguments by name, tensors without their memory; `options` are its constants, and the number of
    warps and stages.
    """

    kernel: Any
    programs: int
    arguments: dict[str, Any]
    options: dict[str, int]

    @property
    def tensors(self) -> list[Tensor]:
        parts = [y for x in self.arguments.values() for y in (x if isinstance(x, tuple) else (x,))]
        return [x for x in parts if isinstance(x, Tensor)]

    @property
    def numbers(self) -> set[str]:
        """The arguments that are numbers, or tuples of numbers."""
        firsts = {name: x[0] if isinstance(x, tuple) else x for name, x in self.arguments.items()}
        return {name for name, x in firsts.items() if not isinstance(x, Tensor)}

    @property
    def name(self) -> str:
        return f"{self.kernel.__module__.removeprefix('pullback.inference.')}.{self.kernel.__name__}"


def record(monkeypatch: pytest.MonkeyPatch) -> list[Launch]:
    """Where the launches of all calls to come are written."""
    launches: list[Launch] = []

    def launch(kernel: Any, programs: int, device: torch.device, *args: Any, fixed: Fixed = _NOTHING, **options: int) -> None:
        args, options = (*args, *fixed.args), fixed.options | options
        names = [name for name in kernel.arg_names if name not in options]
        launches.append(Launch(kernel, programs, dict(zip(names, map(_without_memory, args), strict=True)), options))

    for module in (*(f"{algorithm}.cuda" for algorithm in ALGORITHMS), *FOLDERS):
        monkeypatch.setattr(importlib.import_module(f"pullback.inference.{module}"), "launch", launch)
    return launches


def _without_memory(x: Any) -> Any:
    if isinstance(x, tuple):
        return type(x)(*map(_without_memory, x))
    return x.to("meta") if isinstance(x, Tensor) else x


def call_everything(n: int, batch: int, dtype: torch.dtype) -> None:
    """Each operation once for each algorithm, on scores of no particular value."""
    scores, lengths = torch.zeros(batch, n, n, dtype=dtype), torch.full((batch,), n)
    seeds = torch.zeros(batch, dtype=torch.long)
    starts, weights = torch.zeros(batch, 1, n, dtype=torch.int32), torch.ones(batch, 1, dtype=torch.float64)
    with backend("cuda"):
        for projective in (True, False):
            flags = projective, True, False
            TREES.argmax(scores, lengths, *flags)
            TREES.log_partition(scores, lengths, *flags)
            TREES.marginals(scores, lengths, *flags)
            TREES.marginals_vjp(scores, lengths, scores, *flags)
            TREES.entropy(scores, lengths, *flags)
            TREES.sample(scores, lengths, seeds, *flags)
            found = TREES.sparsemap(scores, lengths, starts, weights, 100, True, 0.0, *flags)
            TREES.sparsemap_vjp(found[1], found[3], scores, False)
