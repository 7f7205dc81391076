"""What the active-set method keeps of a sentence: the arcs that its trees have used, and the active trees.

An arc that a tree has used has a slot. Scores and mean are kept for slots only, so that they cost as much as the arcs in
use, not n^2. Sizes that change are arrays of one element.
"""

from __future__ import annotations

from collections import namedtuple

import numpy as np

from pullback.inference.checks import INFINITE, NAN, OK
from pullback.inference.compile import inner, lean
from pullback.inference.sparsemap.active_set import copy_inverse, make_inverse
from pullback.inference.sparsemap.overlap import padded

NEVER_BUILT = 1 << 30  # so many changes that the inverse is built before it is used

Arcs = namedtuple(
    "Arcs",
    [
        "slot_of",  # [n, n] int32: the slot of an arc, or -1
        "head_of",  # [n * n] int16: the arc of a slot
        "word_of",
        "scores",  # [n * n]: of each slot, less the word's shift
        "mean",  # [n * n]: mu at each slot
        "count",  # [1] int64: how many slots there are
        "shifts",  # [n]: the largest s - mu of each word at the start; less it, the projection is the same
    ],
)
Trees = namedtuple(
    "Trees",
    [
        "slots",  # [capacity, n] int32: of the arcs of each active tree
        "heads",  # [capacity, padded n] int16: of each active tree
        "weights",  # [capacity]
        "inverse",  # of the Gram matrix, the number of arcs two trees share: see active_set.py
        "size",  # [1] int64: how many trees are active
        "changes",  # [1] int64: how often the inverse was updated since it was built
        "stalls",  # [1] int64: how often the gap was tiny and did not shrink
        "gram",  # [capacity]: scratch, as the next two
        "step",
        "slopes",
    ],
)


@inner
def make_arcs(n):
    return Arcs(
        np.empty((n, n), np.int32),
        np.empty(n * n, np.int16),
        np.empty(n * n, np.int16),
        np.empty(n * n, np.float64),
        np.empty(n * n, np.float64),
        np.zeros(1, np.int64),
        np.empty(n, np.float64),
    )


@inner
def make_trees(n, capacity):
    return Trees(
        np.empty((capacity, n), np.int32),
        np.full((capacity, padded(n)), -1, np.int16),
        np.empty(capacity, np.float64),
        make_inverse(capacity),
        np.zeros(1, np.int64),
        np.zeros(1, np.int64),
        np.zeros(1, np.int64),
        np.empty(capacity, np.float64),
        np.empty(capacity, np.float64),
        np.empty(capacity, np.float64),
    )


@inner
def roomy(trees):
    """The trees with room for one more: as they are, or, if they are full, with room for about twice as many."""
    capacity, n = trees.slots.shape
    if trees.size[0] < capacity:
        return trees
    new = make_trees(n, 2 * capacity + 8)  # rows of an odd number of cache lines spread over its sets
    new.size[0], new.changes[0], new.stalls[0] = trees.size[0], trees.changes[0], trees.stalls[0]
    new.slots[:capacity], new.heads[:capacity], new.weights[:capacity] = trees.slots, trees.heads, trees.weights
    copy_inverse(trees.inverse, new.inverse, trees.size[0])
    return new


@lean
def enter(arcs, trees, scores, length):
    """Begin with a sentence: no tree is active, no arc has a slot. Returns its status."""
    trees.size[0] = trees.changes[0] = trees.stalls[0] = arcs.count[0] = 0
    trouble = 0
    for h in range(length):
        for m in range(length):
            trouble += not scores[h, m] < np.inf
            arcs.slot_of[h, m] = -1
    if trouble == 0:
        return OK
    for h in range(length):
        for m in range(length):
            if scores[h, m] != scores[h, m]:
                return NAN
    return INFINITE


@lean
def shift(arcs, scores, length):
    """Shift the scores so that s - mu has a largest entry of zero for each word: near a solution it is small then.

    After a small step from a structure it differs by as much as the step is long, which a rough oracle has to see.
    """
    for m in range(length):
        top = -np.inf
        for h in range(length):
            slot = arcs.slot_of[h, m]
            slack = scores[h, m] - (arcs.mean[slot] if slot >= 0 else 0.0)
            top = slack if slack > top else top
        arcs.shifts[m] = top if top > -np.inf else 0.0  # a word without a head is infeasible, not NaN
    for slot in range(arcs.count[0]):
        h, m = arcs.head_of[slot], arcs.word_of[slot]
        arcs.scores[slot] = scores[h, m] - arcs.shifts[m]


@lean
def place(arcs, trees, scores, length, heads, weight):
    """Put a tree behind the active ones, in the room there is for it, and give slots to its new arcs."""
    behind = trees.size[0]
    for m in range(length):
        slot = arcs.slot_of[heads[m], m]
        if slot < 0:
            slot = arcs.count[0]
            arcs.count[0] += 1
            arcs.slot_of[heads[m], m] = slot
            arcs.head_of[slot], arcs.word_of[slot] = heads[m], m
            arcs.scores[slot] = scores[heads[m], m] - arcs.shifts[m]
            arcs.mean[slot] = 0.0
        trees.slots[behind, m] = slot
        trees.heads[behind, m] = heads[m]
    for m in range(length, trees.slots.shape[1]):
        trees.heads[behind, m] = -1
    trees.weights[behind] = weight


@lean
def copy(trees, i, j, length):
    """Put the j-th tree in the place of the i-th."""
    trees.weights[i] = trees.weights[j]
    for m in range(length):
        trees.slots[i, m] = trees.slots[j, m]
        trees.heads[i, m] = trees.heads[j, m]


@lean
def mix(arcs, trees, length):
    """The mean of the active trees."""
    for slot in range(arcs.count[0]):
        arcs.mean[slot] = 0.0
    for i in range(trees.size[0]):
        weight = trees.weights[i]
        for m in range(length):
            arcs.mean[np.uint64(trees.slots[i, m])] += weight


@lean
def write(arcs, trees, length, b, result):
    """Hand out the active set and its mean as sentence b's."""
    size = trees.size[0]
    result.sizes[b] = size
    for i in range(size):
        result.weights[b, i] = trees.weights[i]
        for m in range(length):
            result.heads[b, i, m] = trees.heads[i, m]
        for m in range(length, result.heads.shape[2]):
            result.heads[b, i, m] = -1
    for slot in range(arcs.count[0]):
        result.mu[b, arcs.head_of[slot], arcs.word_of[slot]] = arcs.mean[slot]
