"""Every kind of mask, by -inf and by -1e9, with values checked or not, once for a structure: few batches for slow kernels."""

from __future__ import annotations

import random
import zlib

import torch
from torch import Tensor

from .inputs import Batch, masked_parts, values
from .subjects import STRUCTURES, Sizes, parts_of, structure

KINDS = ("entries", "rows", "columns", "blocks", "all but one")
TURNS = 4
"""How many batches a structure has."""
_SIZES: dict[str, list[Sizes]] = {  # of each example; the parts have three rows at least
    "categorical": [(5,)],
    "chain": [(4, 3), (3, 3), (3, 3), (3, 3), (3, 3)],
    "subset": [(2, 5), (1, 3), (3, 5), (2, 4), (1, 3)],
    "segmentation": [(4, 3, 2), (3, 3, 2), (3, 3, 2), (3, 3, 2), (3, 3, 2)],
    "alignment": [(4, 4), (3, 4), (3, 3), (3, 3), (3, 4)],
    "ctc": [(2, 4, 3), (1, 3, 3), (2, 3, 3), (2, 4, 3), (1, 3, 3)],
    "path": [STRUCTURES["path"].small(random.Random(0), 0)],
    "grid": [(4, 5)],
    "matching": [(3, 4), (3, 3), (3, 4), (3, 4), (3, 3)],
}
_SAME = {"at-most": "subset", "knapsack": "subset", "alignment-forward": "alignment"}
_TREES = (4, 3, 4, 3, 3)


def every_mask(name: str, turn: int, longer: int = 0) -> Batch:
    """One of the batches of a structure: each example has another kind of mask, and a structure without masked parts.

    Trees are `longer` by so many words. Masks are -1e9 in float64, and -inf in float32: there, where values are not checked,
    all parts of one more example have one. Where they are checked, each kind has one of the two: the kernels are the same.
    """
    finite, validate = turn % 2 == 1, turn >= 2
    sizes = _SIZES.get(_SAME.get(name, name), [(n + longer,) for n in _TREES])
    sizes = (sizes * len(KINDS))[: len(KINDS)]
    kinds = KINDS
    if validate:
        kinds, sizes = kinds[finite::2], sizes[finite::2]
    elif not finite:
        kinds, sizes = ("everything", *kinds), [sizes[0], *sizes]
    seed = 3 * zlib.crc32(f"{name} {turn}".encode()) + (turn > 0)  # those of the first turn have forward mode, too
    chooser, generator = random.Random(seed), torch.Generator().manual_seed(seed)
    scores = values("normal", (len(sizes), *parts_of(name, sizes)), generator)
    real = torch.ones_like(scores).bool()
    if STRUCTURES[name].ragged:
        real = structure(name, sizes).allowed(torch.zeros_like(scores))
    masked = torch.stack([_masked(name, kind, i, sizes, real, chooser, generator) for i, kind in enumerate(kinds)])
    scores = scores.masked_fill(masked, -1e9 if finite else -torch.inf).to(torch.float64 if finite else torch.float32)
    text = f"normal, {', '.join(kinds)} masked by {-1e9 if finite else -torch.inf:.0e}"
    return Batch(name, sizes, scores.masked_fill(~real, torch.nan), masked, "contiguous", validate, text, seed)


def _masked(
    name: str, kind: str, example: int, sizes: list[Sizes], real: Tensor, chooser: random.Random, generator: torch.Generator
) -> Tensor:
    """Which parts of an example are masked: not none."""
    if kind == "everything":
        return real[example]
    rows = slice(example, example + 1)
    for _ in range(100):
        masked = masked_parts(name, kind, sizes[rows], real[rows], chooser, generator)[0]
        if masked.any():
            break
    return masked
