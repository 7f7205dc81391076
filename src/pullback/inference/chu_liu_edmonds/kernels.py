"""The maximum spanning arborescence of one sentence, compiled. See README.md for the algorithm."""

from __future__ import annotations

import numpy as np

from pullback.inference._numba.compile import called
from pullback.inference._numba.scratch import carve
from pullback.inference.front.checks import INFEASIBLE, OK

_NEW, _ON_PATH, _DONE = range(3)


@called
def workspace(work, n):
    """The arrays of `best_heads` for sentences of up to n words, from `bytes_for(n)` bytes, and where they end.

    Nodes are the words 0..n-1 and the cycles contracted so far, n, n+1, ...: at most n - 1 of them.
    """
    columns, at = carve(work, 0, n * (n + 1), np.float64)  # of each cycle: the gain of an arc from each word and from the root
    best, at = carve(work, at, 2 * n, np.float64)  # of each node: the gain of its best incoming arc
    source, at = carve(work, at, 2 * n, np.int64)  # of each node: where that arc comes from, a word or n for the root
    state, at = carve(work, at, 2 * n, np.int64)
    cycle_of, at = carve(work, at, 2 * n, np.int64)  # of each node: the cycle it was contracted into, or -1
    sibling, at = carve(work, at, 2 * n, np.int64)  # of each node: the next member of the same cycle, or -1
    member, at = carve(work, at, 2 * n, np.int64)  # of each cycle: its first member
    outermost, at = carve(work, at, n, np.int64)  # of each word: the node it is in that is not contracted
    path, at = carve(work, at, 2 * n, np.int64)
    return (columns.reshape(n, n + 1), best, source, state, cycle_of, sibling, member, outermost, path), at


def bytes_for(n: int) -> int:
    """Room for all of it, for scores and for the heads of n words."""
    return 8 * (2 * n * (n + 1) + 17 * n) + 11 * 64


@called
def best_heads(scores, length, multiroot, work, heads):
    """The heads of the tree of largest score, exactly, in O(length^2).

    `scores` are `[n, n]` float64, finite or `-inf`, of which only the words below `length` are read. A word's own index is
    the root. Returns OK, or INFEASIBLE, when no heads are written.
    """
    columns, best, source, state, cycle_of, _, _, outermost, path = work
    root = length
    _best_arcs_of_words(scores, length, multiroot, best, source)
    for v in range(length):
        state[v], cycle_of[v], outermost[v] = _NEW, -1, v
    count, root_arcs = length, 0
    for start in range(length):
        v = outermost[start]
        depth = 0
        while state[v] != _DONE:
            if state[v] == _ON_PATH:
                bottom = depth - 1
                while path[bottom] != v:
                    bottom -= 1
                _contract(scores, length, path[bottom:depth], count, work)
                _best_arc_of_cycle(columns[count - length], length, multiroot, best, source, count)
                v, depth, count = count, bottom, count + 1
            if best[v] == -np.inf:
                return INFEASIBLE
            state[v] = _ON_PATH
            path[depth] = v
            depth += 1
            if source[v] == root:
                root_arcs += 1
                break
            v = outermost[source[v]]
        for i in range(depth):
            state[path[i]] = _DONE
    if root_arcs > 1 and not multiroot:
        return INFEASIBLE
    _expand(scores, length, count, work)
    for v in range(length):
        heads[v] = v if source[v] == root else source[v]
    return OK


@called
def _best_arcs_of_words(scores, length, multiroot, best, source):
    for m in range(length):
        best[m], source[m] = -np.inf, 0
    for h in range(length):
        row = scores[h]
        for m in range(length):
            better = (row[m] > best[m]) & (h != m)
            best[m] = row[m] if better else best[m]
            source[m] = h if better else source[m]
    for m in range(length):
        _consider_root(scores[m, m], length, multiroot, best, source, m)


@called
def _best_arc_of_cycle(column, length, multiroot, best, source, cycle):
    most, where = -np.inf, 0
    for h in range(length):
        if column[h] > most:
            most, where = column[h], h
    best[cycle], source[cycle] = most, where
    _consider_root(column[length], length, multiroot, best, source, cycle)


@called
def _consider_root(gain, root, multiroot, best, source, v):
    """With a single root its arc is the last resort: only a node that no other word can reach takes it."""
    if best[v] == -np.inf or (multiroot and gain > best[v]):
        best[v], source[v] = gain, root


@called
def _contract(scores, length, members, cycle, work):
    """Make one node of a cycle's members: an arc into one of them replaces that member's arc of the cycle."""
    columns, best, _, state, cycle_of, sibling, member, outermost, _ = work
    column = columns[cycle - length]
    for h in range(length + 1):
        column[h] = -np.inf
    last = -1
    for v in members:
        cycle_of[v], sibling[v], last = cycle, last, v
        if v < length:
            for h in range(length):
                column[h] = max(column[h], scores[h, v] - best[v])
            column[length] = max(column[length], scores[v, v] - best[v])
        else:
            for h in range(length + 1):
                column[h] = max(column[h], columns[v - length, h] - best[v])
    member[cycle], state[cycle], cycle_of[cycle] = last, _NEW, -1
    for h in range(length):
        if cycle_of[outermost[h]] == cycle:
            outermost[h] = cycle
            column[h] = -np.inf


@called
def _expand(scores, length, count, work):
    """Give the arc into each cycle to the member it enters, the outermost cycle first; the rest keep theirs."""
    columns, best, source, _, _, sibling, member, _, _ = work
    for cycle in range(count - 1, length - 1, -1):
        h = source[cycle]
        v = member[cycle]
        entered, most = v, -np.inf
        while v != -1:
            gain = columns[v - length, h] if v >= length else scores[v if h == length else h, v]
            if gain - best[v] > most:
                entered, most = v, gain - best[v]
            v = sibling[v]
        source[entered] = h
