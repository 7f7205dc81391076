"""What the active-set method keeps of each sentence: the arcs that its trees have used, and the active trees.

Several sentences are solved at once, one a lane. An arc that a tree of the sentence has used has a slot. Scores and
mean are kept for slots only, so that they cost as much as the arcs in use, not n^2.
"""

from __future__ import annotations

from collections import namedtuple

import numpy as np

from pullback.inference.checks import INFINITE, NAN, OK
from pullback.inference.compile import inner, lean
from pullback.inference.sparsemap.overlap import padded

_CAPACITY = 24
NEVER_BUILT = 1 << 30  # so many changes that the inverse is built before it is used

Arcs = namedtuple(
    "Arcs",
    [
        "slot_of",  # [lanes, n, n] int32: the slot of an arc, or -1
        "head_of",  # [lanes, n * n] int16: the arc of a slot
        "word_of",
        "scores",  # [lanes, n * n]: of each slot, less the word's shift
        "mean",  # [lanes, n * n]: mu at each slot
        "counts",  # [lanes] int64: how many slots there are
        "shifts",  # [lanes, n]: the largest s - mu of each word at the start; less it, the projection is the same
    ],
)
Trees = namedtuple(
    "Trees",
    [
        "slots",  # [lanes, capacity, n] int32: of the arcs of each active tree
        "heads",  # [lanes, capacity, padded n] int16: of each active tree
        "weights",  # [lanes, capacity]
        "inverse",  # [lanes, capacity, capacity]: of the Gram matrix, the number of arcs two trees share
        "sums",  # [lanes, capacity]: of the inverse's rows
        "sizes",  # [lanes] int64: how many trees are active
        "changes",  # [lanes] int64: how often the inverse was updated since it was built
        "stalls",  # [lanes] int64: how often the gap was tiny and did not shrink
        "gram",  # [capacity]: scratch, as the next two
        "step",
        "slopes",
    ],
)


@inner
def make_arcs(lanes, n):
    slots = (lanes, n * n)
    return Arcs(
        np.empty((lanes, n, n), np.int32),
        np.empty(slots, np.int16),
        np.empty(slots, np.int16),
        np.empty(slots, np.float64),
        np.empty(slots, np.float64),
        np.zeros(lanes, np.int64),
        np.empty((lanes, n), np.float64),
    )


@inner
def make_trees(lanes, n, capacity=_CAPACITY):
    return Trees(
        np.empty((lanes, capacity, n), np.int32),
        np.full((lanes, capacity, padded(n)), -1, np.int16),
        np.empty((lanes, capacity), np.float64),
        np.empty((lanes, capacity, capacity), np.float64),
        np.empty((lanes, capacity), np.float64),
        np.zeros(lanes, np.int64),
        np.zeros(lanes, np.int64),
        np.zeros(lanes, np.int64),
        np.empty(capacity, np.float64),
        np.empty(capacity, np.float64),
        np.empty(capacity, np.float64),
    )


@inner
def full(trees):
    """Whether some lane has no room for one more tree."""
    return trees.sizes.max() == trees.weights.shape[1]


@inner
def grown(trees):
    """The trees with room for about twice as many in each lane."""
    lanes, capacity, n = trees.slots.shape
    new = make_trees(lanes, n, 2 * capacity + 8)  # rows of an odd number of cache lines spread over its sets
    for other in range(lanes):
        new.sizes[other], new.changes[other] = trees.sizes[other], trees.changes[other]
        new.stalls[other] = trees.stalls[other]
        for i in range(trees.sizes[other]):
            new.weights[other, i] = trees.weights[other, i]
            new.sums[other, i] = trees.sums[other, i]
            for m in range(n):
                new.slots[other, i, m] = trees.slots[other, i, m]
                new.heads[other, i, m] = trees.heads[other, i, m]
            for j in range(trees.sizes[other]):
                new.inverse[other, i, j] = trees.inverse[other, i, j]
    return new


@lean
def enter(arcs, trees, lane, scores, length):
    """Begin with a sentence: no tree is active, no arc has a slot. Returns its status."""
    trees.sizes[lane] = trees.changes[lane] = trees.stalls[lane] = arcs.counts[lane] = 0
    trouble = 0
    for h in range(length):
        for m in range(length):
            trouble += not scores[h, m] < np.inf
            arcs.slot_of[lane, h, m] = -1
    if trouble == 0:
        return OK
    for h in range(length):
        for m in range(length):
            if scores[h, m] != scores[h, m]:
                return NAN
    return INFINITE


@lean
def shift(arcs, lane, scores, length):
    """Shift the scores so that s - mu has a largest entry of zero for each word: near a solution it is small then.

    After a small step from a structure it differs by as much as the step is long, which a rough oracle has to see.
    """
    for m in range(length):
        top = -np.inf
        for h in range(length):
            slot = arcs.slot_of[lane, h, m]
            slack = scores[h, m] - (arcs.mean[lane, slot] if slot >= 0 else 0.0)
            top = slack if slack > top else top
        arcs.shifts[lane, m] = top if top > -np.inf else 0.0
    for slot in range(arcs.counts[lane]):
        h, m = arcs.head_of[lane, slot], arcs.word_of[lane, slot]
        arcs.scores[lane, slot] = scores[h, m] - arcs.shifts[lane, m]


@lean
def place(arcs, trees, lane, scores, length, heads, weight):
    """Put a tree behind the active ones, in the room there is for it, and give slots to its new arcs."""
    behind = trees.sizes[lane]
    for m in range(length):
        slot = arcs.slot_of[lane, heads[m], m]
        if slot < 0:
            slot = arcs.counts[lane]
            arcs.counts[lane] += 1
            arcs.slot_of[lane, heads[m], m] = slot
            arcs.head_of[lane, slot], arcs.word_of[lane, slot] = heads[m], m
            arcs.scores[lane, slot] = scores[heads[m], m] - arcs.shifts[lane, m]
            arcs.mean[lane, slot] = 0.0
        trees.slots[lane, behind, m] = slot
        trees.heads[lane, behind, m] = heads[m]
    for m in range(length, trees.slots.shape[2]):
        trees.heads[lane, behind, m] = -1
    trees.weights[lane, behind] = weight


@lean
def copy(trees, lane, i, j, length):
    """Put the j-th tree in the place of the i-th."""
    trees.weights[lane, i] = trees.weights[lane, j]
    for m in range(length):
        trees.slots[lane, i, m] = trees.slots[lane, j, m]
        trees.heads[lane, i, m] = trees.heads[lane, j, m]


@lean
def mix(arcs, trees, lane, length):
    """The mean of the active trees."""
    for slot in range(arcs.counts[lane]):
        arcs.mean[lane, slot] = 0.0
    for i in range(trees.sizes[lane]):
        weight = trees.weights[lane, i]
        for m in range(length):
            arcs.mean[lane, np.uint64(trees.slots[lane, i, m])] += weight


@lean
def write(arcs, trees, lane, length, b, result):
    """Hand out the active set and its mean as sentence b's."""
    size = trees.sizes[lane]
    result.sizes[b] = size
    for i in range(size):
        result.weights[b, i] = trees.weights[lane, i]
        for m in range(length):
            result.heads[b, i, m] = trees.heads[lane, i, m]
        for m in range(length, result.heads.shape[2]):
            result.heads[b, i, m] = -1
    for slot in range(arcs.counts[lane]):
        result.mu[b, arcs.head_of[lane, slot], arcs.word_of[lane, slot]] = arcs.mean[lane, slot]
