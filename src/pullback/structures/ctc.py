"""The paths of connectionist temporal classification."""

from __future__ import annotations

import itertools
from typing import Any, ClassVar

import torch
from torch import Tensor

from pullback.inference.ctc.family import CTC as FAMILY
from pullback.inference.front.family import Family
from pullback.inference.front.layout import as_sizes, check_batches
from pullback.structures.family import FamilyStructure
from pullback.structures.readers import (
    check_range,
    check_width,
    integers,
    is_readable,
    lengths_of,
    ones_at,
    real_positions,
)


class CTC(FamilyStructure):
    """The paths of T frames that collapse to a target, as 0/1 tensors `[..., T, V]`.

    `z[t, v] = 1` for the symbol v of frame t. A path collapses to a target if the target is left when equal neighbours are
    merged and then blanks are removed. Scores have the same layout: with log-probabilities (`log_softmax` over V), the
    log-partition is the log-probability of the target, and its negative is the CTC loss.

    Frames from an example's length on are padding and may hold anything, NaN included. A score of `-inf` forbids a symbol
    at a frame. A target of L symbols, r of which are equal to the one before, needs at least L + r frames. All operations take
    O(T L) time and memory; the loss is deterministic.

    Ties in the argmax: from the last frame back, the same symbol of the target (or the same blank) first, then the one before
    it, then the symbol before the blank; after the last frame, the blank.

    Args:
        targets: the symbols of each example, integers `[..., S]`; beyond the target's length they may hold anything.
        target_lengths: the number of symbols of each target, `[...]`. By default all but padding at the end, -1 or -100.
        lengths: the number of frames of each example, `[...]`. The default is T for all.
        blank: the symbol that stands for nothing.
        validate: check the values of targets and scores; costs a synchronisation on a GPU. The default is to check on a CPU
            only.

    >>> scores = torch.tensor([[0.0, 2.0, 0.0], [0.0, 2.0, 1.0], [1.0, 0.0, 0.0], [0.0, 1.0, 3.0]])   # T = 4, V = 3
    >>> CTC([1, 2]).symbols(CTC([1, 2]).argmax(scores))
    tensor([1, 1, 0, 2])
    >>> CTC([1, 2]).log_partition(scores.log_softmax(-1)).neg()
    tensor(0.5156)
    """

    family: ClassVar[Family] = FAMILY

    def __init__(
        self, targets: Any, target_lengths: Any = None, lengths: Any = None, blank: int = 0, *, validate: bool | None = None
    ) -> None:
        super().__init__(validate=validate)
        if isinstance(blank, bool) or not isinstance(blank, int) or blank < 0:
            raise ValueError(f"blank is {blank!r}; it must be the index of a symbol, at least 0")
        self.targets = integers(as_sizes(targets, "targets"), "CTC", "targets", "S")
        self.lengths = self._as_lengths(lengths)
        self.blank = blank
        known = self._as_lengths(target_lengths, "target_lengths")
        check_width(self._widths.get("target_lengths"), self.targets.shape[-1], "target_lengths")
        self.target_lengths = real_positions(self.targets, None, "targets")[0].sum(-1) if known is None else known
        if validate is not False:
            self._check_targets()

    def _check_targets(self) -> None:
        targets, lengths = self.targets, self.target_lengths
        check_batches(lengths.shape, targets.shape[:-1], "target_lengths", "targets")
        if not is_readable(targets) or not is_readable(lengths):
            return
        batch = torch.broadcast_shapes(lengths.shape, targets.shape[:-1])
        known = lengths_of(lengths, batch, targets.shape[-1], targets.device, "target_lengths").expand(batch)
        targets = targets.expand(*batch, -1)
        real = torch.arange(targets.shape[-1], device=known.device) < known[..., None]
        check_range(targets, real, 2**63 - 1, "targets", "a symbol is at least 0; beyond target_lengths, anything is padding")
        allowed = torch.where(targets == self.blank, self.blank - 1, targets)
        check_range(targets, real, allowed, "targets", "that is the blank, and a target has none")

    def symbols(self, z: Tensor) -> Tensor:
        """The symbol of each frame, `[..., T]`; -1 for padding."""
        z = self._cleaned(z)
        if z.shape[-1] == 0:
            return z.new_full(z.shape[:-1], -1, dtype=torch.long)
        used, symbol = torch.where(z.isfinite(), z, 0.0).max(-1)  # a failed example is NaN
        return torch.where(used > 0.5, symbol, -1)

    def from_symbols(self, symbols: Tensor, V: int) -> Tensor:
        """The structures `[..., T, V]` of the symbol of each frame, `[..., T]`: the inverse of `symbols`.

        Frames from an example's length on may hold anything; without lengths, -1 and -100 are padding.
        """
        x = integers(symbols, "CTC", "symbols", "T")
        real, x = self._real_positions(x, "symbols")
        check_range(x, real, V - 1, "symbols", "with V = {V} symbols are from 0 to {last}", V=V, last=V - 1)
        return ones_at(x[..., None], real[..., None], V)

    def enumerate(self, T: int, V: int) -> Tensor:  # type: ignore[override]
        """All paths, `[S, T, V]`, that collapse to the target, which must be one; V^T up to some thousands."""
        if self.targets.dim() > 1 or self.target_lengths.dim() > 0:
            raise ValueError(f"enumerate needs a structure of one target; targets has shape {list(self.targets.shape)}")
        target = self.targets[: int(self.target_lengths)].tolist()
        paths = [path for path in itertools.product(range(V), repeat=T) if self._collapsed(path) == target]
        symbols = torch.tensor(paths, dtype=torch.long).reshape(len(paths), T, 1)
        return ones_at(symbols, torch.ones_like(symbols, dtype=torch.bool), V)

    def _collapsed(self, path: tuple[int, ...]) -> list[int]:
        """Returns the target that a path collapses to."""
        return [symbol for symbol, _ in itertools.groupby(path) if symbol != self.blank]
