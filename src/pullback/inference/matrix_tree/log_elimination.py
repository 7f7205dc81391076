"""State elimination of one sentence in logs. README.md has the maths, logs.py says what is kept of a weight."""

from __future__ import annotations

import numpy as np

from pullback.inference._numba.compile import inner
from pullback.inference.matrix_tree.wide import LOWEST, gap, minus, narrow, nothing, plus, wide

_CUTOFF = -1e12  # arcs this far below the best are left out, if no tree that counts uses one


@inner
def at(chart, h, m):
    """The wide number of an arc."""
    return chart[h, m, 0], chart[h, m, 1], chart[h, m, 2]


@inner
def put(chart, h, m, x):
    """Write the wide number of an arc."""
    chart[h, m, 0], chart[h, m, 1], chart[h, m, 2] = x[0], x[1], x[2]


@inner
def eliminate(scores, direction, entropic, multiroot, words, logs, tangents, sums, means):
    """Fill in the logs of weights and their tangents, and eliminate the words from the last to the first.

    First without the arcs far below the best (a large finite mask, say). Every tree with one of these weighs at most as
    much as the arc, since no shifted score is above zero, and there are at most (n + 1)^n trees: where the others weigh far
    more than that, nothing is lost. Otherwise once more, with all arcs.

    Writes the order of the `words`, what a word's row and column of `logs` `[length + 1, length, 3]` and `tangents` held
    when its turn came, and log S_k and its tangent to `sums` `[length, 3]` and `means`. Returns the cutoff for `read`,
    the sum of the shifts of scaling.py, and whether there is a tree.
    """
    length = len(words)
    cutoff, shifts, stuck = _CUTOFF, nothing(), 0
    for attempt in range(2):
        cutoff = _CUTOFF if attempt == 0 else -np.inf
        words[:] = np.arange(length)
        shifts, dropped = read(scores, direction, multiroot, words, cutoff, logs, tangents)
        stuck = _eliminate(logs, tangents, entropic, multiroot, sums, means)
        if stuck > 0 and not multiroot:
            # none of the words left leads to this one: a single root has to be above it, so it must be the last
            words[0], words[stuck] = stuck, 0
            shifts, dropped = read(scores, direction, multiroot, words, cutoff, logs, tangents)
            stuck = _eliminate(logs, tangents, entropic, multiroot, sums, means)
        if dropped == -np.inf:
            break
        if stuck < 0 and sums[:, 0].sum() > 0.5 * dropped:
            break
    return cutoff, shifts, stuck < 0


@inner
def read(scores, direction, multiroot, words, cutoff, logs, tangents):
    """Fill in the logs of weights and the direction, shifted as in scaling.py; arcs below the cutoff are forbidden.

    Returns:
        The sum of the shifts, and the largest log that was cut off; -inf if none was.
    """
    length = len(words)
    total, dropped = wide(0.0), -np.inf
    for m in range(length):
        best, level = -np.inf, 0.0
        for h in range(length):
            row = length if h == m else h
            x = scores[words[h], words[m]]
            x = max(x, LOWEST) if x > -np.inf else x
            put(logs, row, m, wide(x))
            tangents[row, m] = direction[words[h], words[m]] if x > -np.inf else 0.0
            if x > best and (h != m or multiroot):
                best, level = x, tangents[row, m]
        if best > -np.inf:
            total = plus(total, wide(best))
            for h in range(length + 1):
                if h != m:
                    put(logs, h, m, minus(at(logs, h, m), wide(best)))
                    tangents[h, m] -= level
    best_root, level = nothing(), 0.0
    for m in range(length):
        if not multiroot and gap(at(logs, length, m), best_root) > 0.0:
            best_root, level = at(logs, length, m), tangents[length, m]
    if best_root[0] > -np.inf:
        total = plus(total, best_root)
    for h in range(length + 1):
        for m in range(length):
            if h == m:
                continue
            if h == length and best_root[0] > -np.inf:
                put(logs, h, m, minus(at(logs, h, m), best_root))
                tangents[h, m] -= level
            if logs[h, m, 0] < cutoff and logs[h, m, 0] > -np.inf:
                dropped = max(dropped, narrow(at(logs, h, m)))
                put(logs, h, m, nothing())
    return total, dropped


@inner
def _eliminate(logs, tangents, entropic, multiroot, sums, means):
    """Eliminate in place; returns the first word with S_k = 0, or -1."""
    length = logs.shape[1]
    for k in range(length - 1, -1, -1):
        rows = k + 1 if multiroot or k == 0 else k
        most = nothing()
        for row in range(rows):
            x = at(logs, length if row == k else row, k)
            most = x if gap(x, most) > 0.0 else most
        if most[0] == -np.inf:
            return k
        total = 0.0
        for row in range(rows):
            total += np.exp(gap(at(logs, length if row == k else row, k), most))
        whole = plus(most, wide(np.log(total)))
        sums[k, 0], sums[k, 1], sums[k, 2] = whole
        means[k] = 0.0
        for row in range(rows):
            h = length if row == k else row
            share = gap(at(logs, h, k), whole)
            if np.exp(share) > 0.0:
                means[k] += np.exp(share) * (tangents[h, k] - entropic * share)
        for h in range(k):
            _add_paths(logs, tangents, entropic, h, k, whole, means[k])
        _add_paths(logs, tangents, entropic, length, k, whole, means[k])
    return -1


@inner
def _add_paths(logs, tangents, entropic, h, k, whole, mean):
    if logs[h, k, 0] == -np.inf:
        return
    share, tilt = minus(at(logs, h, k), whole), tangents[h, k] - mean
    for m in range(k):
        if m == h or logs[k, m, 0] == -np.inf:
            continue
        path, arc = plus(share, at(logs, k, m)), at(logs, h, m)
        apart = gap(path, arc)
        more = np.log1p(np.exp(-abs(apart)))
        log_path, log_arc = min(apart, 0.0) - more, min(-apart, 0.0) - more  # of their shares of the sum
        put(logs, h, m, plus(path if apart > 0.0 else arc, wide(more)))
        part = np.exp(log_path)
        if part == 1.0:
            tangents[h, m] = tilt + tangents[k, m]
        elif part > 0.0:
            tangents[h, m] += part * (tilt + tangents[k, m] - tangents[h, m])
            tangents[h, m] -= entropic * (part * log_path + np.exp(log_arc) * log_arc)
