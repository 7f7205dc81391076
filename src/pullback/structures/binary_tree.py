"""Binary trees over the words of a sentence."""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import Tensor

from pullback.inference.cky.family import BINARY_TREE
from pullback.inference.front.family import Family
from pullback.structures.family import FamilyStructure
from pullback.structures.readers import check_range, is_padding, ones_at, tuples


class BinaryTree(FamilyStructure):
    """The binary trees over n words, as 0/1 matrices `[..., n, n]` of spans.

    `z[i, j] = 1`, i <= j, if the words i, ..., j (both included) are a constituent; a tree has 2n - 1 spans, leaves
    included. Scores have the same layout. Entries below the diagonal are not parts: like padding they may hold
    anything, NaN included. A score of `-inf` forbids a span. All operations take O(n^3) (CKY, inside-outside).

    Ties in the argmax: from the root down, the leftmost split.

    Args:
        lengths: the number of words of each sentence, `[...]`. The default is n for all.
        validate: check the values of the scores; costs a synchronisation on a GPU. The default is to check on a CPU only.

    >>> scores = torch.zeros(3, 3)
    >>> scores[0, 1] = 1.0
    >>> BinaryTree().brackets(BinaryTree().argmax(scores))
    [(0, 0), (0, 1), (0, 2), (1, 1), (2, 2)]
    """

    family: ClassVar[Family] = BINARY_TREE

    def __init__(self, lengths: Any = None, *, validate: bool | None = None) -> None:
        super().__init__(validate=validate)
        self.lengths = self._as_lengths(lengths)

    def brackets(self, z: Tensor) -> list[Any]:
        """The spans of each tree, as lists of (first, last) word, both included, nested like the batch."""
        return self._listed(z)

    def from_brackets(self, brackets: Any, n: int) -> Tensor:
        """The structures `[..., n, n]` of spans (first, last) of words, both included: the inverse of `brackets`.

        Args:
            brackets: lists of tuples, nested like the batch, or integers `[..., S, 2]`, with -1 or -100 for no span.
                Single words need not be listed.
            n: the number of words.
        """
        x = tuples(brackets, 2, "a BinaryTree", "brackets")
        first, last = x.unbind(-1)
        real, limit = ~is_padding(first), self._limit(x, n)
        check_range(last, real, limit - 1, "the last word of brackets", "words are from 0 to the length less one")
        check_range(last - first, real & (last >= 0), n, "the width of brackets", "the first word stands before the last")
        check_range(first, real, n, "the first word of brackets", "words are counted from 0")
        leaf = torch.arange(n, device=x.device)
        leaves = torch.diag_embed((leaf < limit).expand(*x.shape[:-2], n).float())
        return torch.maximum(ones_at(first * n + last, real, n * n).reshape(*x.shape[:-2], n, n), leaves)

    def enumerate(self, n: int) -> Tensor:  # type: ignore[override]
        """All binary trees of n words, `[S, n, n]`, by trying every split; n up to 9 or so."""
        if n == 0:
            return torch.zeros(1, 0, 0)
        return torch.stack(list(_trees(0, n - 1, n)))


def _trees(first: int, last: int, n: int) -> Any:
    if first == last:
        z = torch.zeros(n, n)
        z[first, last] = 1.0
        yield z
    for split in range(first, last):
        for left in _trees(first, split, n):
            for right in _trees(split + 1, last, n):
                z = left + right
                z[first, last] = 1.0
                yield z
