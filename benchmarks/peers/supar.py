"""supar: a parser's structured distributions. Modifier x head, the root first."""

from __future__ import annotations

import importlib.util
import sys
import types
import warnings
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from benchmarks.comparison import Contender
from benchmarks.inputs import Case
from pullback import DependencyTree

NAME = "supar"
_NEVER = -1e9  # it forms 0 * -inf, so what must not happen gets a low score


def _import() -> Any:
    """`supar.structs` alone: the rest of the package needs a parser's dependencies, which inference does not."""
    warnings.filterwarnings("ignore", message="Using a non-tuple sequence.*")
    if "supar" not in sys.modules:
        spec = importlib.util.find_spec("supar")
        if spec is None or not spec.submodule_search_locations:
            raise ImportError("supar is not installed")
        folder = Path(next(iter(spec.submodule_search_locations)))
        for name, path in (("supar", folder), ("supar.utils", folder / "utils")):
            package = types.ModuleType(name)
            package.__path__ = [str(path)]
            sys.modules[name] = package
    return importlib.import_module("supar.structs")


def argmax(case: Case) -> Contender:
    library, scores = _import(), _rooted(case)
    return Contender(NAME, lambda: library.DependencyCRF(scores, case.lengths, multiroot=True).argmax, _read_heads)


def marginals(case: Case) -> Contender:
    library, scores = _import(), _rooted(case)
    return Contender(NAME, lambda: library.DependencyCRF(scores, case.lengths, multiroot=True).marginals, _read)


def marginals_backward(case: Case) -> Contender:
    library, scores = _import(), _rooted(case)
    direction = DependencyTree.to_root_first(case.direction).transpose(-1, -2).contiguous()

    def call() -> tuple[Tensor, Tensor]:
        mu = library.DependencyCRF(scores, case.lengths, multiroot=True).marginals
        return mu, torch.autograd.grad(mu, scores, direction)[0]

    return Contender(NAME, call, _read)


def nonprojective_argmax(case: Case) -> Contender:
    library, scores = _import(), _rooted(case)
    return Contender(NAME, lambda: library.MatrixTree(scores, case.lengths, multiroot=True).argmax, _read_heads)


def nonprojective_marginals(case: Case) -> Contender:
    library, scores = _import(), _rooted(case)
    return Contender(NAME, lambda: library.MatrixTree(scores, case.lengths, multiroot=True).marginals, _read)


def _rooted(case: Case) -> Tensor:
    return DependencyTree.to_root_first(case.scores, fill=_NEVER).transpose(-1, -2).contiguous()


def _read(result: Tensor | tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    results = result if isinstance(result, tuple) else (result,)
    return tuple(DependencyTree.from_root_first(each.detach().transpose(-1, -2)) for each in results)


def _read_heads(heads: Tensor) -> tuple[Tensor]:
    z = torch.zeros(*heads.shape, heads.shape[-1], device=heads.device).scatter_(2, heads[:, :, None], 1.0)
    return (DependencyTree.from_root_first(z.transpose(-1, -2)),)
