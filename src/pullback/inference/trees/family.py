"""The family of dependency trees, and trees as head vectors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from pullback.inference.front import random
from pullback.inference.front.family import STANDARD, Family, Nouns
from pullback.inference.front.layout import Layout, Size
from pullback.inference.sparsemap.operation import active_set_capacity, sparsemap_operations


def _folder(operation: str, options: dict[str, Any]) -> str:
    if operation == "sparsemap":
        return "sparsemap"
    if options["projective"]:
        return "eisner"
    return "chu_liu_edmonds" if operation in ("argmax", "topk") else "matrix_tree"


TREES = Family(
    "tree",
    Layout("DependencyTree", "n, n", sizes=(Size("lengths", bounds="n"),), centre=(-2,)),
    folder=_folder,
    nouns=Nouns(example="sentence", structure="tree", part="arc", unit="words"),
    options={"projective": bool, "multiroot": bool},
    operations=STANDARD + sparsemap_operations(active_set_capacity),
    most_parts=lambda shape, *options: shape[-1],
)


def from_heads(heads: Tensor, dtype: torch.dtype) -> Tensor:
    """The packed 0/1 matrices `[B, n, n]` of head vectors `[B, n]`: a word's own index is the root, -1 padding."""
    z = torch.zeros(*heads.shape, heads.shape[-1], dtype=dtype, device=heads.device).transpose(-1, -2).contiguous()
    return z.scatter_(-2, heads.clamp_min(0).unsqueeze(-2), (heads >= 0).to(dtype).unsqueeze(-2))


def draw(marginals: Callable[[Tensor], Tensor], scores: Tensor, lengths: Tensor, seeds: Tensor) -> Tensor:
    """Random trees `[B, n, n]`: word after word, a head from its marginals given the heads of the words before.

    For scores of any size, in n times the time of marginals. NaN where these are NaN.
    """
    left, words = scores.detach().double().clone(), torch.arange(scores.shape[-1], device=scores.device)
    heads = torch.full(scores.shape[:2], -1, dtype=torch.long, device=scores.device)
    uniform, fails = random.uniforms(seeds, 0, len(words)), torch.zeros_like(lengths, dtype=torch.bool)
    for m in range(len(words)):
        upto = marginals(left)[:, :, m].cumsum(1)
        fails = fails | upto[:, -1].isnan()
        head = (upto <= uniform[:, m, None] * upto[:, -1:]).sum(1).clamp_max(len(words) - 1)
        heads[:, m] = torch.where(m < lengths, head, -1)
        left[:, :, m] = torch.where(words == head[:, None], left[:, :, m], -torch.inf)
    return torch.where(fails[:, None, None], torch.nan, from_heads(heads, scores.dtype))
