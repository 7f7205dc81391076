"""Random batches of the kinds of input that found defects: values, masks, ragged sizes, memory layouts and dtypes."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace

import torch
from torch import Tensor

import pullback as pb

from .subjects import STRUCTURES, Sizes, members, parts_of, structure

VALUES = ("normal", "normal", "ties", "zeros", "mixed", "tiny", "million")
MASKS = ("none", "none", "entries", "few", "rows", "columns", "blocks", "all but one", "everything")
LAYOUTS = ("contiguous", "contiguous", "transposed", "shifted", "every other", "expanded")
DTYPES = (torch.float32, torch.float32, torch.float64, torch.float64, torch.float16, torch.bfloat16)


@dataclass(frozen=True)
class Batch:
    """Scores of a structure.

    Attributes:
        name: of the structure.
        sizes: those of each example.
        scores: `[B, *parts]`, contiguous; NaN where there is no part.
        masked: which parts have a mask for a score, `[B, *parts]`; each example has a structure without them, or no structure.
        layout: how the scores lie in memory.
        validate: whether values are checked, which names bad examples.
        kind: of the values and masks, in words.
        seed: that makes it again.
    """

    name: str
    sizes: list[Sizes]
    scores: Tensor
    masked: Tensor
    layout: str
    validate: bool
    kind: str
    seed: int

    def __str__(self) -> str:
        dtype = str(self.scores.dtype).removeprefix("torch.")
        return f"{self.name} {self.sizes} {self.kind} {dtype} {self.layout} validate={self.validate} seed={self.seed}"

    @property
    def parts(self) -> Sizes:
        return tuple(self.scores.shape[1:])

    @property
    def infeasible(self) -> list[bool]:
        """Which examples have no structure: their parts are all forbidden, and they are not empty."""
        real = ~self.scores.isnan()
        forbidden = ~(real & (self.scores > -torch.inf)).flatten(1).any(1)
        never = STRUCTURES[self.name].optional
        return [bool(f) and not never and not self.is_empty(i) for i, f in enumerate(forbidden)]

    def is_empty(self, example: int) -> bool:
        """Whether the only structure of an example has no parts."""
        return 0 in self.sizes[example]

    def scores_on(self, device: torch.device | str) -> Tensor:
        """The scores in their layout."""
        x = self.scores.to(device)
        if self.layout == "transposed":
            return x.movedim(0, -1).contiguous().movedim(-1, 0)
        if self.layout == "shifted":  # at an address that is not a multiple of 16 bytes
            return torch.cat([x.flatten()[:1], x.flatten()])[1:].view(x.shape) if x.numel() else x
        if self.layout == "every other":
            return torch.stack([x, torch.full_like(x, torch.nan)], -1)[..., 0]
        if self.layout == "expanded":  # all examples are the first one
            return x[:1].expand(x.shape)
        return x

    def structure_on(self, device: torch.device | str) -> pb.Structure:
        return structure(self.name, self.sizes, device, validate=self.validate)

    def only(self, example: int) -> Batch:
        """One example alone, as it lies in its batch."""
        rows = slice(example, example + 1)
        return replace(self, sizes=self.sizes[rows], scores=self.scores[rows], masked=self.masked[rows])


def draw(seed: int, name: str, validate: bool, *, large: float, count: int) -> Batch:
    """A random batch.

    Args:
        seed: of everything that is random.
        name: of the structure.
        validate: whether values are checked.
        large: the share of batches with sizes at the switches of kernels.
        count: the most examples of a batch with small sizes.
    """
    chooser, generator = random.Random(seed), torch.Generator().manual_seed(seed)
    sizes = _sizes(chooser, STRUCTURES[name], chooser.random() < large, count)
    value, mask = chooser.choice(VALUES), chooser.choice(MASKS)
    layout, dtype = chooser.choice(LAYOUTS), chooser.choice(DTYPES)
    if layout == "expanded":
        sizes = sizes[:1] * len(sizes)
    parts = parts_of(name, sizes)
    if STRUCTURES[name].ragged and not STRUCTURES[name].fixed and chooser.random() < 0.25:  # padding that no example uses
        parts = (parts[0] + 1, parts[0] + 1 if name in SQUARE else parts[1], *parts[2:]) if len(parts) > 1 else (parts[0] + 1,)
    scores = values(value, (len(sizes), *parts), generator)
    real = structure(name, sizes).allowed(torch.zeros_like(scores))
    masked = masked_parts(name, mask, sizes, real, chooser, generator)
    most = 6e4 if dtype == torch.float16 else 1e30
    masks = [-torch.inf, -torch.inf, -1e30, torch.finfo(dtype).min, *[-1e9] * (value not in ("mixed", "million"))]
    masks = [-torch.inf] if mask == "everything" or dtype == torch.float16 else masks  # whose numbers are no large masks
    scores, which = _with_masks(scores.clamp(-most, most), masked, masks, chooser, generator)
    scores = scores.to(dtype).masked_fill(~real, torch.nan)
    if layout == "expanded":
        scores, masked = scores[:1].expand_as(scores).contiguous(), masked[:1].expand_as(masked).contiguous()
    return Batch(name, sizes, scores, masked, layout, validate, f"{value}, {mask} masked{which}", seed)


SQUARE = ("projective", "projective-single", "nonprojective", "nonprojective-single", "binary-tree")


def _sizes(chooser: random.Random, subject, is_large: bool, count: int) -> list[Sizes]:
    """Those of each example; the first is the largest."""
    if is_large:
        first = subject.large(chooser)
        others = [tuple(chooser.randint(0, x) for x in first) for _ in range(chooser.randint(0, 2))]
    else:
        first = subject.small(chooser, 99)
        others = [subject.small(chooser, max(first[0], first[-1] if subject.ragged > 1 else 0))
                  for _ in range(chooser.randint(0, count - 1))]  # fmt: skip
    own, same = [x[: subject.ragged] for x in others], first[subject.ragged :]
    if first[0] <= first[subject.ragged - 1]:  # a size that the next one limits
        own = [tuple(sorted(x)) for x in own]
    return [first, *((0,) * subject.ragged + same if x[:1] == (0,) else x + same for x in own)]


def values(kind: str, shape: Sizes, generator: torch.Generator) -> Tensor:
    scores = torch.randn(shape, generator=generator, dtype=torch.float64)
    if kind == "ties":
        return torch.randint(-1, 2, shape, generator=generator).double()
    if kind == "mixed":
        return scores * 10 ** (16 * torch.rand(shape, generator=generator, dtype=torch.float64) - 8)
    return scores * {"zeros": 0.0, "tiny": 1e-8, "million": 1e6}.get(kind, 1.0)


def masked_parts(
    name: str, kind: str, sizes: list[Sizes], real: Tensor, chooser: random.Random, generator: torch.Generator
) -> Tensor:
    """Which parts are masked; of each example, a random structure stays unless everything is masked."""
    if kind == "none":
        return torch.zeros_like(real)
    if kind == "everything":  # of one example
        out = torch.zeros_like(real)
        out[chooser.randrange(len(sizes))] = True
        return out & real
    share = torch.rand(real.shape, generator=generator)
    count, first, last, others = len(real), real.shape[1], real.shape[-1], [1] * (real.dim() - 2)
    across = torch.rand(count, first, generator=generator).reshape(count, first, *others)
    along = torch.rand(count, last, generator=generator).reshape(count, *others, last)
    ends = (torch.rand(count, 2, generator=generator) * first).sort(1).values
    place = torch.arange(first)
    block = (place >= ends[:, :1].floor()) & (place <= ends[:, 1:])
    out = {
        "entries": share < 0.4,
        "few": share < 0.1,
        "rows": (across < 0.75).expand_as(real),
        "columns": (along < 0.5).expand_as(real),
        "blocks": block.reshape(count, first, *others).expand_as(real),
        "all but one": torch.ones_like(real),
    }[kind]
    return out & real & ~_kept(name, sizes, real, generator)


def _kept(name: str, sizes: list[Sizes], real: Tensor, generator: torch.Generator) -> Tensor:
    """A random structure for each example."""
    noise = torch.randn(real.shape, generator=generator, dtype=torch.float64)
    if max(map(max, sizes)) > 8:
        return structure(name, sizes).argmax(noise) > 0
    rows = []
    for own in sizes:
        z = members(name, own, tuple(real.shape[1:]))
        rows.append(z[int(torch.randint(len(z), (), generator=generator))] > 0)
    return torch.stack(rows).reshape(real.shape)


def _with_masks(
    scores: Tensor, masked: Tensor, masks: list[float], chooser: random.Random, generator: torch.Generator
) -> tuple[Tensor, str]:
    """Scores with masks of one size, or another one for each part; and in words, of which size."""
    if not masked.any():
        return scores, ""
    several = len(masks) > 1 and chooser.random() < 0.3
    sizes = torch.tensor(masks, dtype=torch.float64)
    chosen = torch.randint(len(sizes), scores.shape if several else (), generator=generator)
    return torch.where(masked, sizes[chosen], scores), " by several" if several else f" by {float(sizes[chosen]):.0e}"
