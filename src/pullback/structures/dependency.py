"""Dependency trees over the words of a sentence."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import ClassVar

import torch
from torch import Tensor

from pullback.inference import operators
from pullback.inference.precision import result_dtype, working
from pullback.inference.sparsemap.solution import SparseMAPSolution
from pullback.structures.base import Structure


class DependencyTree(Structure):
    """The dependency trees of n words, as 0/1 matrices `[..., n, n]`, head x modifier.

    `z[h, m] = 1` for an arc from head h to modifier m, and `z[m, m] = 1` for a word m attached to the
    root. Every word has one head, so each column of z sums to one. Scores have the same layout.

    Padding, that is rows and columns from the sentence's length on, may hold anything, NaN included:
    results and gradients there are exactly zero. A score of `-inf` forbids an arc.

    Ties in the projective argmax break by one rule on every backend: of several best derivations, each span
    (from the widest down) takes its leftmost split point, and the root its leftmost last child (Eisner's
    items and their splits are in `inference/eisner/README.md`).

    Args:
        lengths: the number of words of each sentence, `[...]`, integers from 0 to n; on any device.
            The default is n for all.
        projective: only trees without crossing arcs (the root stands left of the first word).
        multiroot: whether several words may attach to the root; otherwise exactly one does.
        validate: check the values of the scores (NaN, no feasible tree); costs a synchronisation on a GPU.
            The default is to check on a CPU only.

    >>> scores = torch.tensor([[2.0, 1.0], [0.0, 0.0]])   # root -> 0 scores 2, 0 -> 1 scores 1
    >>> DependencyTree().argmax(scores)
    tensor([[1., 1.],
            [0., 0.]])
    """

    event_dims: ClassVar[int] = 2

    def __init__(
        self,
        lengths: Tensor | None = None,
        projective: bool = True,
        multiroot: bool = True,
        *,
        validate: bool | None = None,
    ) -> None:
        if lengths is not None and not isinstance(lengths, Tensor):
            lengths = torch.as_tensor(lengths)
        if lengths is not None and (lengths.dtype.is_floating_point or lengths.dtype == torch.bool):
            raise TypeError(f"lengths have dtype {lengths.dtype}; they must be integers")
        self.lengths = lengths
        self.projective = projective
        self.multiroot = multiroot
        self.validate = validate

    def __repr__(self) -> str:
        lengths = "" if self.lengths is None else f"lengths={list(self.lengths.shape)}, "
        return f"DependencyTree({lengths}projective={self.projective}, multiroot={self.multiroot})"

    def argmax(self, scores: Tensor) -> Tensor:
        s, lengths, restore = self._prepare(scores.detach())
        return restore(operators.tree_argmax(s, lengths, *self._flags(s)))

    def marginals(self, scores: Tensor) -> Tensor:
        s, lengths, restore = self._prepare(scores)
        return restore(operators.tree_marginals(s, lengths, *self._flags(s)))

    def log_partition(self, scores: Tensor) -> Tensor:
        s, lengths, restore = self._prepare(scores)
        return restore(operators.tree_log_partition(s, lengths, *self._flags(s)))

    def entropy(self, scores: Tensor) -> Tensor:
        s, lengths, restore = self._prepare(scores)
        return restore(operators.tree_entropy(s, lengths, *self._flags(s)))

    def log_prob(self, scores: Tensor, z: Tensor) -> Tensor:
        """Log p(z) = <s, z> - log Z, `[...]`: taken in float64, where large scores do not cancel to noise."""
        s, lengths, _ = self._prepare(scores)
        log_z = operators.tree_log_partition(s, lengths, *self._flags(s)).reshape(scores.shape[:-2])
        return (self.score(scores.double(), z.double()) - log_z).to(result_dtype(scores))

    def sample(self, scores: Tensor, generator: torch.Generator | None = None) -> Tensor:
        s, lengths, restore = self._prepare(scores.detach())
        where = s.device if generator is None else generator.device
        seeds = torch.randint(-(2**63), 2**63 - 1, (s.shape[0],), generator=generator, device=where)
        return restore(operators.tree_sample(s, lengths, seeds.to(s.device), *self._flags(s)))

    def sparsemap_solution(
        self,
        scores: Tensor,
        *,
        warm_start: Tensor | SparseMAPSolution | None = None,
        max_iterations: int | None = None,
    ) -> SparseMAPSolution:
        from pullback.inference.sparsemap.trees import project

        s, lengths, restore = self._prepare(scores)
        return project(s, lengths, self._flags(s), restore, warm_start=warm_start, max_iterations=max_iterations)

    def step_inside(self, scores: Tensor, mu: Tensor, step: Tensor) -> tuple[Tensor, Tensor]:
        from pullback.inference.interior import step_inside

        s, lengths, restore = self._prepare(scores.detach())
        flags = self._flags(s)
        if mu.dtype != s.dtype:  # half precision: too coarse for small steps
            mu = operators.tree_marginals(s, lengths, *flags)
        allowed = self.allowed(scores).reshape(s.shape)
        moved, inside = step_inside(s, lengths, flags, allowed, mu.reshape(s.shape), step.to(s.dtype).reshape(s.shape))
        return restore(moved), inside.reshape(scores.shape[:-2])

    def local_projection(self, scores: Tensor) -> Tensor:
        """The nearest point where every word has one head and a word the root, which need not be an average of trees."""
        from pullback.inference import checks
        from pullback.inference.local_polytope import is_empty, project

        s, lengths, restore = self._prepare(scores.detach())
        allowed = self.allowed(scores).reshape(s.shape)
        if self._flags(s)[2]:
            status, words = checks.status_of(s, lengths), checks.word_mask(lengths, s.shape[-1])
            empty = is_empty(allowed, words, self.multiroot) & (status == checks.OK)
            checks.raise_for(torch.where(empty, checks.INFEASIBLE, status), lengths, s.shape[-1])
        return restore(project(s.double(), allowed, self.multiroot).to(s.dtype))

    def enumerate(self, n: int) -> Tensor:
        """All trees of n words, `[S, n, n]`, by trying every choice of heads; n up to 7 or so."""
        everything = itertools.product(range(n), repeat=n)
        trees = [heads for heads in everything if self._is_tree(heads)]
        heads = torch.tensor(trees, dtype=torch.long).reshape(len(trees), n)
        return torch.zeros(len(trees), n, n).scatter_(1, heads[:, None, :], 1.0)

    def heads(self, z: Tensor) -> Tensor:
        """The head of each word, `[..., n]`, as treebanks write it: 0 is the root, 1 the first word; padding is -1."""
        if z.dim() < 2 or z.shape[-1] != z.shape[-2]:
            raise ValueError(f"z has shape {list(z.shape)}; a DependencyTree needs [..., n, n]")
        words = torch.arange(z.shape[-1], device=z.device)
        if z.shape[-1] == 0:
            return z.new_zeros(z.shape[:-1], dtype=torch.long)
        head = z.argmax(-2)
        head = torch.where(head == words, 0, head + 1)
        return torch.where(z.sum(-2) > 0, head, -1)

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

    def allowed(self, scores: Tensor) -> Tensor:
        s, lengths, _ = self._prepare(scores.detach())
        inside = torch.arange(s.shape[-1], device=s.device) < lengths[:, None]
        return ((s != -torch.inf) & inside[:, None, :] & inside[:, :, None]).reshape(scores.shape)

    def _flags(self, s: Tensor) -> tuple[bool, bool, bool]:
        validate = s.device.type == "cpu" if self.validate is None else self.validate
        return self.projective, self.multiroot, validate

    def _prepare(self, scores: Tensor) -> tuple[Tensor, Tensor, Callable[[Tensor], Tensor]]:
        """Scores as one batch `[B, n, n]`, its lengths `[B]`, and the way back to the caller's shape and dtype."""
        if scores.dim() < 2 or scores.shape[-1] != scores.shape[-2]:
            raise ValueError(f"scores has shape {list(scores.shape)}; a DependencyTree needs [..., n, n]")
        batch, n, dtype = scores.shape[:-2], scores.shape[-1], result_dtype(scores)
        s = working(scores)
        s = s if len(batch) == 1 else s.reshape(batch.numel(), n, n)
        if self.lengths is None:
            lengths = torch.full((s.shape[0],), n, dtype=torch.long, device=s.device)
        else:
            if self.lengths.shape != batch:
                raise ValueError(
                    f"lengths has shape {list(self.lengths.shape)} and scores {list(scores.shape)}; "
                    f"for these scores a DependencyTree needs lengths of shape {list(batch)}"
                )
            lengths = self.lengths.to(s.device, torch.long)
            lengths = lengths if len(batch) == 1 else lengths.reshape(-1)

        def restore(result: Tensor) -> Tensor:
            result = result if result.dtype == dtype else result.to(dtype)
            return result if len(batch) == 1 else result.reshape(batch + result.shape[1:])

        return s, lengths, restore

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
