"""Completing the active set on a GPU, in Triton: a direction in which trees of mu's face differ that no active tree shows.

The twin of face.py, which says why the Jacobian needs it.
"""

from __future__ import annotations

from pullback.inference.sparsemap.cuda_active_set import mix, multiply, step_of
from pullback.inference.triton_support import jit, tl


@jit()
def tilt(
    residual, mu, tilted, heads, inverse, pending, columns, sums, size, attempt, step_size, length, n,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, CAPACITY: tl.constexpr,
):  # fmt: skip
    """Write s - mu plus a small step along a direction that is constant on the active trees; forbid what mu does not use.

    Args:
        residual: s - mu, `[n, n]`, float64.
        mu: `[n, n]`.
        tilted: `[n, n]`, float64, to write.
        heads: the active trees, `[size, n]`.
        inverse: of their Gram matrix.
        pending: how many of its changes are.
        columns: the active trees, `[n, CAPACITY]`.
        sums: of the inverse's rows, `[CAPACITY]`.
        size: how many they are.
        attempt: each pair of numbers has a direction of its own, the second of the pair its opposite.
        step_size: the length of the step, up to a constant.
        length: the number of words.
        n: the pitch of the matrices and of the heads.
        ROWS: heads looked at together.
        COLUMNS: words looked at together, a power of two, at least n.
        CAPACITY: the pitch of the inverse, a power of two.
    """
    word, tree = tl.arange(0, COLUMNS)[None, :], tl.arange(0, CAPACITY)
    line = inverse + CAPACITY * CAPACITY
    seed = attempt // 2 + 1
    slope = tl.zeros([CAPACITY], tl.float64)
    for m in range(0, length):
        head = tl.load(columns + m * CAPACITY + tree, mask=tree < size, other=0).to(tl.int32)
        slope += _noise(head * n + m, seed)
    tl.store(line + tree, slope, mask=tree < size)
    tl.debug_barrier()
    step = step_of(multiply(inverse, pending, size, CAPACITY), sums)
    tl.debug_barrier()
    tl.store(line + tree, step, mask=tree < size)
    tl.debug_barrier()
    sign = tl.where(attempt % 2 == 0, step_size, -step_size)
    for start in range(0, length, ROWS):
        head = (start + tl.arange(0, ROWS))[:, None]
        at = head * n + word
        real = (head < length) & (word < length)
        direction = _noise(at, seed) - mix(heads, line, size, head, length, n, ROWS, COLUMNS)
        slack = tl.load(residual + at, mask=real, other=0.0) + sign * direction
        used = tl.load(mu + at, mask=real, other=0.0) > 0.0
        tl.store(tilted + at, tl.where(used, slack, float("-inf")), mask=real)
    tl.debug_barrier()


@jit()
def _noise(arc, seed):
    """Numbers from -0.5 to 0.5 without a pattern."""
    x = ((arc + 1) * seed).to(tl.float64) * 0.6180339887498949
    return x - tl.floor(x) - 0.5
