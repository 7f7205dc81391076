"""Entropies of tag sequences with transitions apart, and derivatives of marginals, on the CPU: as `chain/tangents.py`.

The tangent of a tag is the mean over the tags before of their tangent and the transition's, plus that of its emission. The
weights of a position are copied, as the way back writes the derivatives of pairs over them; those of transitions are the sums
of these.
"""

from __future__ import annotations

import numpy as np

from pullback.inference._numba.compile import kernel, subroutine
from pullback.inference._numba.lanes import aligned, lanes_in
from pullback.inference._numba.packing import clear
from pullback.inference.chain.tangents import back, end, tangents_of
from pullback.inference.factored.kernels import add, are_bad, forward, weigh, weigh_again, worst_of
from pullback.inference.front.modes import Mode


@subroutine
def _copy(scores, base, tags, weights, careful, values, logs, row, out):
    """The weights of a position."""
    if careful:
        weigh_again(scores, base, tags, values, logs, row, out)
        return
    for p in range(tags * tags):
        out[p] = weights[p]


@kernel
def tangents(worker, workers, tags, scores, lengths, mode, direction, out, value, codes):
    """Write entropies, or tangents of log-partitions, and derivatives of marginals; `codes` as of `kernels.sums`."""
    cells, lanes, rows, surprise = tags * tags, lanes_in(scores), scores.shape[1], mode != Mode.TANGENT
    n, room, wide = rows - 2 - tags, -(-tags // lanes) * lanes, np.empty(0)
    flat, flat_direction, flat_out = scores.reshape(-1), direction.reshape(-1), out.reshape(-1)
    held, state, most = aligned(2 * room, wide), np.empty(3), aligned(room, wide)
    values, logs, careful = aligned((n + 1) * room, wide), aligned((n + 1) * room, wide), np.zeros(n + 1, np.bool_)
    alpha, total = aligned((n + 2) * room + 4 * lanes, scores), aligned((n + 2) * room + 4 * lanes, scores)
    weights, turned = aligned(cells + 4 * lanes, scores), aligned(cells + 4 * lanes, scores)
    here, tag_tangents = aligned(cells + 4 * lanes, scores), aligned((n + 1) * room, wide)
    means, wholes = aligned((n + 1) * room, wide), aligned((n + 1) * room, wide)
    q, q_tangent, next_q, next_q_tangent = aligned(room, wide), aligned(room, wide), aligned(room, wide), aligned(room, wide)
    alpha[:], total[:], total[:room] = 0.0, 0.0, 1.0
    known = -1
    for b in range(worker, len(scores), workers):
        length, begin = min(max(lengths[b], 0), n), b * rows * tags
        base, stop = begin + (n + 2) * tags, begin + rows * tags
        first, final = begin + n * tags, begin + (n + 1) * tags
        codes[b], value[b] = lengths[b] != length, 0.0
        clear(flat_out, begin, stop)
        if length > 1 and known != base:
            known = -1 if worst_of(flat, base, stop) == np.inf else base
            if known >= 0:
                weigh(flat, base, tags, most, weights, turned)
        codes[b] |= length > 0 and (are_bad(flat, begin, n, length, tags) or (length > 1 and known < 0))
        if length == 0 or codes[b]:
            continue
        forward(
            flat, begin, n, length, tags, room, most, weights, state, held, alpha, total, careful, values, logs, n
        )  # fmt: skip
        feasible = False
        for tag in range(tags):
            feasible |= alpha[length * room + tag] > 0.0
            means[tag] = 0.0 if surprise else flat_direction[first + tag]
        codes[b] |= not feasible
        if codes[b]:
            value[b] = -np.inf
            continue
        for i in range(length):
            row, before = i * room, tag_tangents[(i - 1) * room :] if i > 0 else tag_tangents
            if i > 0:
                _copy(flat, base, tags, weights, careful[i], values, logs, row, here)
                tangents_of(tags, here, 0, flat_direction, base, surprise, alpha, row, before, means[row:], wholes[row:])
            for tag in range(tags):
                tag_tangents[row + tag] = means[row + tag]
                if not surprise:
                    tag_tangents[row + tag] += flat_direction[begin + i * tags + tag]
                    tag_tangents[row + tag] += flat_direction[final + tag] if i == length - 1 else 0.0
        value[b] = end(tags, alpha, length * room, tag_tangents[(length - 1) * room :], surprise, q, q_tangent)
        if mode == Mode.ENTROPY:
            continue
        for tag in range(tags):
            flat_out[final + tag] = q_tangent[tag]
        for i in range(length - 1, -1, -1):
            row = i * room
            for tag in range(tags):
                flat_out[begin + i * tags + tag] = q_tangent[tag]
            if i > 0:
                _copy(flat, base, tags, weights, careful[i], values, logs, row, here)
                back(
                    tags, here, 0, flat_direction, base, surprise, alpha, row, tag_tangents[row - room :], means[row:],
                    wholes[row:], q, q_tangent, next_q, next_q_tangent,
                )  # fmt: skip
                add(here, flat_out, base, cells)
        for tag in range(tags):
            flat_out[first + tag] = q_tangent[tag]
