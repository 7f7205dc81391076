"""Dependency trees over the words of a sentence."""

from __future__ import annotations

import itertools
from typing import ClassVar

import torch
from torch import Tensor

from pullback.inference.front.family import Family
from pullback.inference.front.layout import as_flag
from pullback.inference.trees.family import TREES
from pullback.structures import members
from pullback.structures.family import FamilyStructure
from pullback.structures.readers import (
    check_range,
    integers,
    is_readable,
    lengths_of,
    ones_at,
)


class DependencyTree(FamilyStructure):
    """The dependency trees of n words, as 0/1 matrices `[..., n, n]`, head x modifier.

    `z[h, m] = 1` for an arc from head h to modifier m, and `z[m, m] = 1` for a word m attached to the
    root. Every word has one head, so each column of z sums to one. Scores have the same layout.

    Padding, that is rows and columns from the sentence's length on, may hold anything, NaN included:
    results and gradients there are exactly zero. A score of `-inf` forbids an arc.

    Ties in the projective argmax break by one rule on every backend: of several best derivations, each span
    (from the widest down) takes its leftmost split point, and the root its leftmost last child (Eisner's
    items and their splits are in `inference/eisner/README.md`).

    Args:
        lengths: the number of words of each sentence, integers from 0 to n, of the leading dimensions of the scores or
            of a shape that broadcasts to them; on any device. The default is n for all.
        projective: only trees without crossing arcs (the root stands left of the first word).
        multiroot: whether several words may attach to the root; otherwise exactly one does.
        validate: check the values of the scores (NaN, no feasible tree); costs a synchronisation on a GPU.
            The default is to check on a CPU only.

    >>> scores = torch.tensor([[2.0, 1.0], [0.0, 0.0]])   # root -> 0 scores 2, 0 -> 1 scores 1
    >>> DependencyTree().argmax(scores)
    tensor([[1., 1.],
            [0., 0.]])
    """

    family: ClassVar[Family] = TREES

    def __init__(
        self,
        lengths: Tensor | None = None,
        projective: bool = True,
        multiroot: bool = True,
        *,
        validate: bool | None = None,
    ) -> None:
        super().__init__(validate=validate)
        self.lengths = self._as_lengths(lengths)
        self.projective = as_flag(projective, "projective")
        self.multiroot = as_flag(multiroot, "multiroot")

    def step_inside(self, scores: Tensor, mu: Tensor, step: Tensor) -> tuple[Tensor, Tensor]:
        """The projection of mu - step onto the marginal polytope, for examples where it is a shift along the affine hull.

        mu = Marg(s) is an inner point, so a small step stays inside. The shift then saves a search by SparseMAP. This
        method is optional for structures.

        Args:
            scores: `[..., n, n]`.
            mu: their marginals.
            step: `[..., n, n]`; only allowed parts are read.

        Returns:
            `moved`, the part of the step along the affine hull, `[..., n, n]`, and `inside`, `[...]` of bool: where it is
            true, sparsemap(mu - step) = mu - moved is certain. False says nothing. No gradient.
        """
        from pullback.inference.trees.interior import step_inside

        flat = self._flat(scores.detach())
        s, options = flat.scores, (*self._options(), self._validates(flat))
        if mu.dtype != s.dtype:  # half precision: too coarse for small steps
            mu = self._call("marginals", flat)
        allowed = (s != -torch.inf) & flat.mask
        moved, inside = step_inside(s, flat.sizes[0], options, allowed, mu.reshape(s.shape), step.to(s.dtype).reshape(s.shape))
        return flat.restore(moved), flat.reshape(inside)

    def local_projection(self, scores: Tensor) -> Tensor:
        """The nearest point where every word has one head and at least one word is at the root (the local polytope).

        The result need not be an average of trees. Where it is, it equals `sparsemap`. This method is optional for
        structures. No gradient.
        """
        from pullback.inference.front import checks
        from pullback.inference.trees.local_polytope import is_empty, project

        flat = self._flat(scores)
        s, mask = flat.scores.detach(), flat.mask
        allowed = (s != -torch.inf) & mask
        if self._validates(flat):
            status = TREES.layout.status(s, flat.sizes)
            empty = is_empty(allowed, mask.any(-1), self.multiroot) & (status == checks.OK)
            status = torch.where(empty, checks.INFEASIBLE, status)
            if status.any():
                raise ValueError(TREES.describe(status, s.shape, flat.sizes))
        return flat.restore(project(s.double(), allowed, self.multiroot).to(s.dtype))

    def enumerate(self, n: int) -> Tensor:  # type: ignore[override]
        """All trees of n words, `[S, n, n]`, by trying every choice of heads; n up to 7 or so."""
        everything = itertools.product(range(n), repeat=n)
        trees = [heads for heads in everything if self._is_tree(heads)]
        heads = torch.tensor(trees, dtype=torch.long).reshape(len(trees), n)
        return torch.zeros(len(trees), n, n).scatter_(1, heads[:, None, :], 1.0)

    def heads(self, z: Tensor) -> Tensor:
        """The head of each word, `[..., n]`, as treebanks write it: 0 is the root, 1 the first word; padding is -1."""
        z = self._cleaned(z)
        words = torch.arange(z.shape[-1], device=z.device)
        if z.shape[-1] == 0:
            return z.new_zeros(z.shape[:-1], dtype=torch.long)
        used, head = torch.where(z.isfinite(), z, 0.0).max(-2)  # a failed example, or padding of unknown length, is NaN
        return torch.where(used > 0, torch.where(head == words, 0, head + 1), -1)

    def _why_not(self, z: Tensor, example: tuple[int, ...]) -> str:
        one = members.one_of(self, example)
        clean = one._cleaned(z)
        if not ((clean == 0) | (clean == 1)).all():
            return super()._why_not(z, example)
        heads, length = clean.sum(-2), z.shape[-1] if one.lengths is None else int(one.lengths)
        if (heads[:length] != 1).any():
            word = int((heads[:length] != 1).nonzero()[0])
            return f"word {word} has {int(heads[word])} heads, not one"
        if self.projective and DependencyTree(one.lengths, False, self.multiroot).contains(z):
            return "its arcs cross; leave such sentences out, or use DependencyTree(projective=False)"
        if not self.multiroot and DependencyTree(one.lengths, self.projective).contains(z):
            return f"{int(clean.diagonal().sum())} words are attached to the root; DependencyTree(multiroot=True) allows that"
        return "its arcs have a cycle" if not self.projective else "its arcs have a cycle, or cross"

    def from_heads(self, heads: Tensor) -> Tensor:
        """The trees `[..., n, n]` of the head of each word, `[..., n]`, as treebanks write it: the inverse of `heads`.

        0 is the root, 1 the first word. Entries beyond a sentence's length may hold anything; without lengths, -1 and -100 are
        padding. `contains` says which of the results are trees of this kind, projective for example.

        >>> DependencyTree().from_heads(torch.tensor([2, 0]))
        tensor([[0., 0.],
                [1., 1.]])
        """
        x = integers(heads, "a DependencyTree", "heads")
        real, x = self._real_positions(x, "heads")
        n, word = x.shape[-1], torch.arange(x.shape[-1], device=x.device)
        limit = n if self.lengths is None else lengths_of(self.lengths, x.shape[:-1], n, x.device)[..., None]
        check_range(x, real, limit, "heads", "heads are from 0 (the root) to the number of words")
        own = real & (x == word + 1)
        if is_readable(x) and own.any():
            where = torch.nonzero(own)[0].tolist()
            raise ValueError(f"heads{where} is {where[-1] + 1}: a word cannot be its own head; the root is 0")
        return ones_at(torch.where(x == 0, word, x - 1)[..., None], real[..., None], n).mT

    @staticmethod
    def to_root_first(packed: Tensor, fill: float = 0.0) -> Tensor:
        """From packed `[..., n, n]` to `[..., n + 1, n + 1]` with the root as token 0.

        Entries without a meaning there (arcs into the root, a word to itself) become `fill`:
        0 for structures, `-inf` for scores.
        """
        n = packed.shape[-1]
        out = packed.new_full((*packed.shape[:-2], n + 1, n + 1), fill)
        words = torch.eye(n, dtype=torch.bool, device=packed.device)
        out[..., 0, 1:] = packed.diagonal(dim1=-2, dim2=-1)
        out[..., 1:, 1:] = torch.where(words, packed.new_tensor(fill), packed)
        return out

    @staticmethod
    def from_root_first(rooted: Tensor) -> Tensor:
        """From `[..., n + 1, n + 1]` with the root as token 0 to packed `[..., n, n]`."""
        n = rooted.shape[-1] - 1
        words = torch.eye(n, dtype=torch.bool, device=rooted.device)
        return torch.where(words, rooted[..., :1, 1:], rooted[..., 1:, 1:])

    def _is_tree(self, heads: tuple[int, ...]) -> bool:
        words = range(len(heads))
        roots = [m for m in words if heads[m] == m]
        if words and (not roots or (len(roots) > 1 and not self.multiroot)):
            return False
        return all(_reaches_root(heads, m) for m in words) and not (self.projective and _crosses(heads))


def _reaches_root(heads: tuple[int, ...], word: int) -> bool:
    for _ in heads:
        if heads[word] == word:
            return True
        word = heads[word]
    return False


def _crosses(heads: tuple[int, ...]) -> bool:
    arcs = [(-1 if h == m else min(h, m), max(h, m)) for m, h in enumerate(heads)]
    return any(a < c < b < d for a, b in arcs for c, d in arcs)
