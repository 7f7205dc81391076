"""Wilson's algorithm: a random tree from loop-erased random walks.

From each word that is not yet in the tree, walk from word to head, the head h of m with a probability proportional to
w_hm, until the tree or the root is reached; then every word on the way gets the head it was last left for. With a
single root, draw its child first, from the marginals, and walk towards that.

The number of steps says nothing about the tree that comes out (Propp and Wilson, 1998), so that when it exceeds a
budget another exact sampler can take over without bias. It does depend on a single root's child, which is kept.
"""

from __future__ import annotations

import numpy as np

from pullback.inference._numba.compile import inner, kernel
from pullback.inference._numba.lanes import BYTES, exp_by_series, load, splat, store
from pullback.inference._numba.random_kernels import uniform
from pullback.inference.front.checks import INFINITE, NAN, OK

UNFINISHED = -1
STEPS_PER_WORD = 100  # many times what ordinary scores need
_LANES = BYTES // 8


@kernel
def sample(worker, workers, scores, lengths, roots, steps, children, seeds, drawn, z, status):
    """Draw a tree for every sentence of `[B, n, n]` scores, or leave it UNFINISHED after `steps` steps per word.

    With a single root, `roots` `[B, n]` are the marginals of root arcs, and `children` `[B]` of -1 get its child; otherwise
    `roots` is empty. `seeds` and `drawn` `[B]` are the streams of random numbers and how much of each is used up; `z` is
    zeros to write.
    """
    n = scores.shape[-1]
    width = (n + _LANES - 1) // _LANES * _LANES
    cumulative, shifts = np.empty((n, width)), np.empty(width)
    heads, reached = np.empty(n, np.int64), np.empty(n, np.bool_)
    for b in range(worker, len(lengths), workers):
        length = lengths[b]
        status[b] = _read(scores[b], length, roots.size == 0, cumulative, shifts)
        if status[b] != OK or length == 0:
            continue
        if roots.size > 0:
            u, drawn[b] = uniform(seeds[b], drawn[b])
            children[b] = _draw_child(roots[b], length, u)
        done, drawn[b] = _walk(cumulative, length, children[b], seeds[b], drawn[b], steps * length, heads, reached)
        if done:
            for m in range(length):
                z[b, heads[m], m] = 1.0
        else:
            status[b] = UNFINISHED


@inner
def _read(scores, length, with_roots, cumulative, shifts):
    """The sums over the heads 0..h of the weights into each word m, at [h, m]; a column's largest weight is one."""
    nan, infinite = False, False
    for m in range(len(shifts)):
        shifts[m] = -np.inf
    for h in range(length):
        row = cumulative[h]
        for m in range(length, len(shifts)):
            row[m] = -np.inf
        for m in range(length):
            x = scores[h, m] if h != m or with_roots else -np.inf
            nan |= x != x
            infinite |= x == np.inf
            row[m] = x
            shifts[m] = max(shifts[m], x)
    if nan or infinite:
        return NAN if nan else INFINITE
    for m in range(len(shifts)):
        if shifts[m] == -np.inf:
            shifts[m] = 0.0
    for m in range(0, length, _LANES):
        shift, total = load(shifts, m), splat(shifts, 0.0)
        for h in range(length):
            at = h * len(shifts) + m
            total = total + exp_by_series(load(cumulative, at) - shift)
            store(cumulative, at, total)
    return OK


@inner
def _draw_child(roots, length, u):
    total = 0.0
    for m in range(length):
        total += roots[m]
    cumulative, child = 0.0, 0
    for m in range(length):
        if roots[m] > 0.0:
            child = m
            cumulative += roots[m]
            if cumulative > u * total:
                break
    return child


@inner
def _walk(cumulative, length, child, seed, drawn, budget, heads, reached):
    """Wilson's algorithm within a budget; returns whether it came to an end, and how many random numbers it used."""
    for m in range(length):
        reached[m] = False
    if child >= 0:
        heads[child], reached[child] = child, True
    last = drawn + budget
    for start in range(length):
        m = start
        while not reached[m]:
            if drawn == last or cumulative[length - 1, m] == 0.0:
                return False, drawn
            u, drawn = uniform(seed, drawn)
            heads[m] = _draw_head(cumulative, length, m, u)
            if heads[m] == m:
                break
            m = heads[m]
        m = start
        while not reached[m]:
            reached[m] = True
            m = heads[m]
    return True, drawn


@inner
def _draw_head(cumulative, length, m, u):
    """The first head h with cumulative[h, m] above u times the total, by bisection."""
    target = u * cumulative[length - 1, m]
    low, high = 0, length - 1
    while low < high:
        middle = (low + high) // 2
        if cumulative[middle, m] > target:
            high = middle
        else:
            low = middle + 1
    return low
