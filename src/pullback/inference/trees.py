"""The family of dependency trees, and trees as head vectors."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from pullback.inference.family import STANDARD, Family, Nouns
from pullback.inference.layout import Layout, Size
from pullback.inference.sparsemap.operation import active_set_capacity, sparsemap_operations


def _folder(operation: str, options: dict[str, Any]) -> str:
    if operation == "sparsemap":
        return "sparsemap"
    if options["projective"]:
        return "eisner"
    return "chu_liu_edmonds" if operation == "argmax" else "matrix_tree"


TREES = Family(
    "tree",
    Layout("DependencyTree", "n, n", sizes=(Size("lengths", bounds="n"),), centre=(-2,)),
    folder=_folder,
    nouns=Nouns(example="sentence", structure="tree", part="arc", unit="words"),
    options={"projective": bool, "multiroot": bool},
    operations=STANDARD + sparsemap_operations(active_set_capacity),
    most_parts=lambda shape: shape[-1],
)


def from_heads(heads: Tensor, dtype: torch.dtype) -> Tensor:
    """The packed 0/1 matrices `[B, n, n]` of head vectors `[B, n]`: a word's own index is the root, -1 padding."""
    z = torch.zeros(*heads.shape, heads.shape[-1], dtype=dtype, device=heads.device).transpose(-1, -2).contiguous()
    return z.scatter_(-2, heads.clamp_min(0).unsqueeze(-2), (heads >= 0).to(dtype).unsqueeze(-2))
