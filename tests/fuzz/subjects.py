"""The structures that are fuzzed: how to make one for a batch, its parts, its sizes, and all its members where they are few."""

from __future__ import annotations

import functools
import itertools
import math
import random
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import pad

import pullback as pb

Sizes = tuple[int, ...]
# sizes at which some kernel gives way to another; LONG are for recursions with little work per step
SWITCHES = (16, 31, 32, 50, 63, 64, 65)
ALL_SUMS = ("log_partition", "marginals", "entropy", "log_partition's gradient", "marginals' gradient", "entropy's gradient")
LONG = (*SWITCHES, 128, 256, 1024)


@dataclass(frozen=True)
class Subject:
    """A structure.

    Attributes:
        make: from one tensor `[B]` for each size and options to the structure of a batch.
        parts: from the largest sizes of a batch to the shape of the parts.
        small: draws sizes whose members are few; with 0 those of a short example that goes into the same batch.
        large: draws sizes at the switches of kernels.
        ragged: how many of the sizes differ from example to example; the others are the same in a batch.
        enumerate: all members, from the sizes.
        gibbs: whether it has a distribution.
        projects: whether it has SparseMAP.
        own: what the structure adds to the score of each of `[S, *parts]`, `[S]` of float64, beside its parts' scores.
        optional: whether the empty structure is always there.
        fixed: whether the structure knows the shape of its parts.
        one_rule: whether ties break in one way in every backend; a matching does on every device, but not in the reference.
        varies: what may have other bits alone than in a batch: docs/numerics.md promises the rest.
    """

    make: Callable[..., pb.Structure]
    parts: Callable[[Sizes], Sizes]
    small: Callable[[random.Random, int], Sizes]
    large: Callable[[random.Random], Sizes]
    ragged: int
    enumerate: Callable[..., Tensor]
    gibbs: bool = True
    projects: bool = True
    own: Callable[[Tensor], Tensor] = lambda z: z.new_zeros(len(z), dtype=torch.float64)
    optional: bool = False
    fixed: bool = False
    one_rule: bool = True
    varies: tuple[str, ...] = ()


def _tree(projective: bool, multiroot: bool) -> Subject:
    return Subject(
        lambda n, **options: pb.DependencyTree(n, projective, multiroot, **options),
        lambda sizes: (sizes[0], sizes[0]),
        lambda draw, most: (draw.randint(0, min(most, 4)),),
        lambda draw: (draw.choice(SWITCHES),),
        1,
        lambda n: pb.DependencyTree(projective=projective, multiroot=multiroot).enumerate(n),
        one_rule=projective,
    )


def _alignment(moves: str) -> Subject:
    def small(draw: random.Random, most: int) -> Sizes:
        n = draw.randint(0, min(most, 4))
        return n, (draw.randint(n, n + 2) if n else 0)

    def large(draw: random.Random) -> Sizes:
        n, m = sorted(draw.choice(LONG[:-1]) for _ in range(2))
        return n, max(min(m, 8192 // n), n if moves == "forward" else 1)  # every row needs a column then

    return Subject(
        lambda n, m, **options: pb.Alignment(n, m, moves, **options), lambda sizes: sizes[:2], small, large, 2,
        lambda n, m: pb.Alignment(moves=moves).enumerate(n, m),
    )  # fmt: skip


def _subset(draw: random.Random, most: int) -> Sizes:
    n = draw.randint(0, min(most, 7))
    return draw.randint(0, n), n


def _large_subset(draw: random.Random) -> Sizes:
    n = draw.choice(LONG)
    return draw.choice([1, n // 3, n // 2, n - 1]), n


def _matching(draw: random.Random, most: int) -> Sizes:
    n = draw.randint(0, min(most, 3))
    return n, (draw.randint(n, n + 2) if n else 0)


def _large_matching(draw: random.Random) -> Sizes:
    n = draw.choice(SWITCHES)
    return n, n + draw.choice([0, 1, 7])


_TARGET = torch.tensor([1, 2]).repeat(90)  # without repeats, each of which would take another frame


def _ctc(draw: random.Random, most: int) -> Sizes:
    frames = draw.randint(0, min(most, 5))
    return (draw.randint(1, frames) if frames else 0), frames, 3


def _large_ctc(draw: random.Random) -> Sizes:
    frames = draw.choice(LONG[:-1])
    return draw.choice([1, frames // 4, min(frames // 2, 170)]), frames, draw.choice([3, 20, 65])


def _large_chain(draw: random.Random) -> Sizes:
    tags = draw.choice([1, 2, 5, 9, 20, 64, 65])
    return min(draw.choice(LONG), max(30_000 // tags**2, 2)), tags


def _large_segmentation(draw: random.Random) -> Sizes:
    n = draw.choice(LONG[:-1])
    return n, draw.choice([1, 2, 6, min(n, 16)]), draw.choice([1, 2, 5])


def _exact(*shape: int) -> Tensor:
    """Numbers from -2 to 2 that every dtype has."""
    return torch.randint(-8, 9, shape, generator=torch.Generator().manual_seed(0)) / 4


_TRANSITIONS = torch.tensor([[0.5, -1.0, 0.25], [1.5, -2.0, -0.75], [-0.25, 1.0, 0.5]])  # exact in every dtype


_TAGS = _exact(5, 5), _exact(5), _exact(5)
"""Transitions, start and end."""


def _of_tags(z: Tensor) -> Tensor:
    """The transitions, start and end of each of `[S, n, 5]`, by looking them up."""
    between, start, end = (x.double() for x in _TAGS)
    found = []
    for one in z.nan_to_num(0.0):
        t = one.nonzero()[:, 1].tolist()
        found.append(
            sum(float(between[a, b]) for a, b in itertools.pairwise(t)) + float(start[t[0]] + end[t[-1]] if t else 0.0)
        )
    return torch.tensor(found, dtype=torch.float64)


def _of_labels(z: Tensor) -> Tensor:
    """The transitions between the segments of each of `[S, n, W, 3]`, by looking them up."""
    labels = [[label for _, _, label in one.nonzero().tolist()] for one in z.nan_to_num(0.0)]
    return torch.tensor([sum(float(_TRANSITIONS[a, b]) for a, b in itertools.pairwise(t)) for t in labels], dtype=torch.float64)


class Steps(pb.DynamicProgram):
    """Steps of one or two positions, as a user would write them: [i, w] is one of w + 1 positions from position i."""

    event_dims = 2

    def value(self, scores: Tensor, combine: Callable[[Tensor, int], Tensor]) -> Tensor:
        ends = [scores.new_zeros(len(scores))]
        for j in range(1, scores.shape[1] + 1):
            ends.append(combine(torch.stack([ends[j - w] + scores[:, j - w, w - 1] for w in (1, 2) if w <= j], 1), 1))
        return torch.stack(ends, 1)


_COSTS = torch.arange(65) % 7 + 1
_EDGES = [(i, i + step) for i in range(8) for step in (1, 2, 4) if i + step < 8] + [(9, 3), (5, 8)]  # the last two on no path

STRUCTURES: dict[str, Subject] = {
    "categorical": Subject(
        pb.Categorical, lambda sizes: sizes[:1], lambda draw, most: (draw.randint(1, min(most, 8) + 1),),
        lambda draw: (draw.choice(LONG),), 0, lambda k: pb.Categorical().enumerate(k), varies=ALL_SUMS,
    ),
    "projective": _tree(True, True),
    "projective-single": _tree(True, False),
    "nonprojective": _tree(False, True),
    "nonprojective-single": _tree(False, False),
    "chain": Subject(
        lambda n, **options: pb.LinearChain(n, **options), lambda sizes: (*sizes, sizes[1]),
        lambda draw, most: (draw.randint(0, min(most, 5)), draw.randint(1, 3)), _large_chain, 1,
        lambda n, tags: pb.LinearChain().enumerate(n, tags), varies=ALL_SUMS,
    ),
    "factored-chain": Subject(
        lambda n, **options: pb.FactoredChain(*[x.to(n.device) for x in _TAGS], lengths=n, **options), lambda sizes: sizes,
        lambda draw, most: (draw.randint(0, min(most, 4)), 5), lambda draw: (draw.choice(LONG), 5), 1,
        lambda n, tags: pb.FactoredChain(_TAGS[0]).enumerate(n, tags), projects=False, own=_of_tags, varies=ALL_SUMS,
    ),
    "subset": Subject(
        lambda k, n, **options: pb.Subset(k, n, **options), lambda sizes: (sizes[1],), _subset, _large_subset, 2,
        lambda k, n: pb.Subset(k).enumerate(n), varies=ALL_SUMS,
    ),
    "at-most": Subject(
        lambda k, n, **options: pb.Subset(k, n, True, **options), lambda sizes: (sizes[1],), _subset,
        lambda draw: (draw.choice([1, 5, 40]), draw.choice(SWITCHES)), 2,
        lambda k, n: pb.Subset(k, at_most=True).enumerate(n), optional=True, varies=ALL_SUMS,
    ),
    "knapsack": Subject(
        lambda b, n, **options: pb.Knapsack(_COSTS, b, n, **options), lambda sizes: (_COSTS.shape[-1],), _subset,
        lambda draw: (draw.choice([1, 30, 200]), draw.choice(SWITCHES)), 2,
        lambda b, n: pb.Knapsack(_COSTS, b).enumerate(n), optional=True, fixed=True, varies=ALL_SUMS,
    ),
    "segmentation": Subject(
        pb.Segmentation, lambda sizes: sizes,
        lambda draw, most: (draw.randint(0, min(most, 5)), draw.randint(1, 3), draw.randint(1, 2)), _large_segmentation, 1,
        lambda n, w, tags: pb.Segmentation().enumerate(n, w, tags), varies=ALL_SUMS,
    ),
    "semi-markov": Subject(
        lambda n, **options: pb.Segmentation(n, _TRANSITIONS, **options), lambda sizes: sizes,
        lambda draw, most: (draw.randint(0, min(most, 4)), draw.randint(1, 3), 3),
        lambda draw: (draw.choice(SWITCHES), draw.choice([1, 2, 6, 20]), 3), 1,
        lambda n, w, tags: pb.Segmentation().enumerate(n, w, tags), projects=False, own=_of_labels, varies=ALL_SUMS,
    ),
    "binary-tree": Subject(
        pb.BinaryTree, lambda sizes: (sizes[0], sizes[0]), lambda draw, most: (draw.randint(0, min(most, 6)),),
        lambda draw: (draw.choice(SWITCHES),), 1, lambda n: pb.BinaryTree().enumerate(n),
        varies=ALL_SUMS,
    ),
    "alignment": _alignment("any"),
    "alignment-forward": _alignment("forward"),
    "ctc": Subject(
        lambda length, t, **options: pb.CTC(_TARGET, length, t, **options), lambda sizes: sizes[1:],
        _ctc, _large_ctc, 2, lambda length, t, v: pb.CTC(_TARGET[:length]).enumerate(t, v),
    ),
    "path": Subject(
        lambda **options: pb.ShortestPath(_EDGES, 0, 7, **options), lambda sizes: sizes, lambda draw, most: (len(_EDGES),),
        lambda draw: (len(_EDGES),), 0, lambda edges: pb.ShortestPath(_EDGES, 0, 7).enumerate(), varies=ALL_SUMS,
    ),
    "grid": Subject(
        lambda **options: pb.ShortestPath.grid(4, 5, **options), lambda sizes: sizes, lambda draw, most: (4, 5),
        lambda draw: (4, 5), 0, lambda n, m: pb.ShortestPath.grid(4, 5).enumerate(), varies=ALL_SUMS,
    ),
    "own": Subject(
        Steps, lambda sizes: (sizes[0], 2), lambda draw, most: (draw.randint(0, min(most, 6)),),
        lambda draw: (draw.choice(SWITCHES),), 1, lambda n: pb.Segmentation().enumerate(n, 2, 1).squeeze(-1), varies=ALL_SUMS,
    ),
    "matching": Subject(
        pb.Matching, lambda sizes: sizes, _matching, _large_matching, 2,
        lambda n, m: pb.Matching().enumerate(n, m), gibbs=False, one_rule=False,
    ),
}  # fmt: skip


def structure(name: str, sizes: list[Sizes], device: torch.device | str = "cpu", **options: bool) -> pb.Structure:
    """The structure of a batch with these sizes."""
    subject = STRUCTURES[name]
    tensors = [torch.tensor(x, dtype=torch.long, device=device) for x in zip(*sizes, strict=True)]
    return subject.make(*tensors[: subject.ragged], **options)


def parts_of(name: str, sizes: list[Sizes]) -> Sizes:
    """The shape of the parts of a padded batch."""
    return STRUCTURES[name].parts(tuple(map(max, zip(*sizes, strict=True))))


@functools.lru_cache(maxsize=512)
def members(name: str, sizes: Sizes, parts: Sizes) -> Tensor:
    """All structures of an example, padded to a shape, `[S, K]` of float64."""
    z = STRUCTURES[name].enumerate(*sizes).double()
    padding = [p for full, own in zip(reversed(parts), reversed(z.shape[1:]), strict=True) for p in (0, full - own)]
    return pad(z, padding).reshape(len(z), math.prod(parts))
