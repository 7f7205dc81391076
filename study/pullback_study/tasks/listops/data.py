"""ListOps as tensors: expressions of similar length make batches."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from pullback_study.tasks.listops.expressions import ALWAYS, ARGUMENTS, CLOSE, TOKENS, depth, draw, executed, heads
from pullback_study.tasks.listops.task import EXTRAPOLATED

WIDTH = 8
"""Expressions are padded to a multiple of this many tokens: few different shapes."""
_EXTRAPOLATED_TOKENS = 100
_NUMBERS = {token: i for i, token in enumerate(TOKENS)}
_CLOSE = _NUMBERS[CLOSE]


@dataclass(frozen=True)
class Split:
    """N expressions: `tokens` and `heads` `[N, n]`, padded with 0; `lengths`, `labels` and `depths` `[N]`.

    The head of token 0 is token 0: the root.
    """

    tokens: Tensor
    heads: Tensor
    lengths: Tensor
    labels: Tensor
    depths: Tensor

    def __len__(self) -> int:
        return len(self.lengths)

    @property
    def widths(self) -> Tensor:
        """What each expression is padded to, `[N]`."""
        return ((self.lengths + WIDTH - 1) // WIDTH * WIDTH).clamp_max(self.tokens.shape[1])

    def take(self, rows: Tensor, width: int) -> Split:
        """The expressions of these rows, `[...]`, padded to a width that holds them."""
        return Split(
            self.tokens[..., :width][rows], self.heads[..., :width][rows],
            self.lengths[rows], self.labels[rows], self.depths[rows],
        )  # fmt: skip

    def to(self, device: torch.device) -> Split:
        return Split(*(values.to(device) for values in (self.tokens, self.heads, self.lengths, self.labels, self.depths)))

    def inside(self) -> Tensor:
        """Where tokens are, `[..., n]`."""
        return torch.arange(self.tokens.shape[-1], device=self.tokens.device) < self.lengths[..., None]

    def closing(self) -> Tensor:
        """Where closing brackets are, `[..., n]`."""
        return (self.tokens == _CLOSE) & self.inside()

    def operators(self) -> Tensor:
        """Where operators are, `[..., n]`."""
        return (self.tokens < _CLOSE) & self.inside()

    def may_be_heads(self, which: str) -> Tensor:
        """The tokens that may be heads, `[..., n]`: `all`, `open` (all but closing brackets), or `operators`."""
        return {"all": self.inside, "open": lambda: self.inside() & ~self.closing(), "operators": self.operators}[which]()

    def executes(self, best: Tensor) -> Tensor:
        """Whether the trees `[..., n, n]` evaluate to the labels by the exact rules, `[...]`."""
        owners, shape = best.argmax(-2).flatten(0, -2), self.lengths.shape
        each = zip(self.tokens.flatten(0, -2).tolist(), owners.tolist(), self.lengths.flatten().tolist(), strict=True)
        values = [executed([TOKENS[token] for token in tokens[:n]], heads[:n]) for tokens, heads, n in each]
        known = torch.tensor([-1 if value is None else value for value in values], device=self.labels.device)
        return known.view(shape) == self.labels

    def gold(self, dtype: torch.dtype) -> Tensor:
        """The gold trees, `[..., n, n]`: head x modifier, the root on the diagonal."""
        places = torch.arange(self.tokens.shape[-1], device=self.tokens.device)
        return ((self.heads[..., None, :] == places[:, None]) & self.inside()[..., None, :]).to(dtype)


def encode(expressions: Sequence[Sequence[str]], *, brackets: bool = True) -> Split:
    """The tensors of some expressions, with or without their closing brackets."""
    kept = [[place for place, token in enumerate(tokens) if brackets or token != CLOSE] for tokens in expressions]
    lengths = torch.tensor([len(places) for places in kept])
    shape = len(expressions), int(lengths.max())
    (numbers, owners), labels = torch.zeros(2, *shape, dtype=torch.int64), []
    for row, (tokens, places) in enumerate(zip(expressions, kept, strict=True)):
        found, new = heads(tokens), {place: i for i, place in enumerate(places)}
        labels.append(executed(tokens, found))
        numbers[row, : len(places)] = torch.tensor([_NUMBERS[tokens[place]] for place in places])
        owners[row, : len(places)] = torch.tensor([new[found[place]] for place in places])
    return Split(numbers, owners, lengths, torch.tensor(labels), torch.tensor([depth(tokens) for tokens in expressions]))


@functools.lru_cache(maxsize=2)
def generate(
    deepest: int, tokens: int, sizes: tuple[int, int, int], seed: int, brackets: bool = True
) -> tuple[Split, Split, Split]:
    """Training, validation and test expressions, all distinct, of depth 1 to `deepest` in equal parts."""
    known: set[str] = set()
    how = {"tokens": tokens, "known": known, "arguments": ARGUMENTS if brackets else ALWAYS}
    parts = [
        draw(range(1, deepest + 1), size, seed=f"listops {name} {seed}", **how)  # type: ignore[arg-type]
        for name, size in zip(("test", "validation", "train"), reversed(sizes), strict=True)
    ]
    test, validation, train = (encode(part, brackets=brackets) for part in parts)
    return train, validation, test


@functools.lru_cache(maxsize=2)
def deeper(examples: int, seed: int, brackets: bool = True) -> dict[int, Split]:
    """By depth, expressions that are nested more deeply, or longer, than any in training."""
    how = {"tokens": _EXTRAPOLATED_TOKENS, "arguments": ARGUMENTS if brackets else ALWAYS}
    return {
        each: encode(draw([each], examples, seed=f"listops deeper {each} {seed}", **how), brackets=brackets)  # type: ignore[arg-type]
        for each in EXTRAPOLATED
    }


def batches(split: Split, size: int, seeds: Sequence[int], epoch: int) -> tuple[list[int], Tensor]:
    """An epoch: the width of each batch, and its rows for each seed, `[batches, seeds, size]`.

    A batch has expressions of one width. Which width comes when is the same for all seeds, and which expressions is the
    seed's own. The last batch of a width is filled up with expressions of its first.
    """
    widths = split.widths.cpu()
    order: list[int] = []
    rows: list[Tensor] = []
    for width in widths.unique().tolist():
        members = (widths == width).nonzero()[:, 0]
        count = -(-len(members) // size)
        filled = torch.arange(count * size) % len(members)
        chosen = [members[_permutation(len(members), epoch, seed, width)[filled]] for seed in seeds]
        rows += torch.stack(chosen).view(len(seeds), count, size).unbind(1)
        order += [width] * count
    shuffled = _permutation(len(order), epoch, -1, 0).tolist()
    return [order[i] for i in shuffled], torch.stack([rows[i] for i in shuffled])


def in_order(split: Split, size: int) -> list[tuple[Tensor, int]]:
    """All rows once, with the width of each batch."""
    widths = split.widths.cpu()
    return [
        (part, width)
        for width in widths.unique().tolist()
        for part in (widths == width).nonzero()[:, 0].split(max(1, size * WIDTH**2 // width**2))
    ]


def _permutation(count: int, epoch: int, seed: int, width: int) -> Tensor:
    generator = torch.Generator().manual_seed(((seed + 1) * 1_000_003 + epoch) * 101 + width)
    return torch.randperm(count, generator=generator)
