"""The weights of an active set on a GPU, in Triton: the mean that they make of its trees, and their move to a better one."""

from __future__ import annotations

from pullback.inference.sparsemap.cuda_active_set import mix, move_last, remove, without
from pullback.inference.triton_support import jit, tl


@jit()
def mean(
    shifted, residual, roughly, mu, heads, weights, size, length, n,
    ROUGH: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """Write the mean of the active trees, and the scores less it: what the oracle sees, a rough one in float32.

    Returns:
        <s - mu, mu>, and the sum of its terms' sizes.
    """
    word = tl.arange(0, COLUMNS)
    own = tl.zeros([COLUMNS], tl.float64)
    scale = own
    for start in range(0, length, ROWS):
        head = (start + tl.arange(0, ROWS))[:, None]
        mu_here = mix(heads, weights, size, head, length, n, ROWS, COLUMNS)
        real = (head < length) & (word < length)[None, :]
        at = head * n + word[None, :]
        slack = tl.load(shifted + at, mask=real, other=0.0) - mu_here
        terms = tl.where(mu_here > 0.0, slack * mu_here, 0.0)
        own += tl.sum(terms, 0)
        scale += tl.sum(tl.abs(terms), 0)
        tl.store(residual + at, slack, mask=real)
        if ROUGH:
            tl.store(roughly + at, slack.to(tl.float32), mask=real)
        tl.store(mu + at, mu_here.to(mu.dtype.element_ty), mask=real)
    return tl.sum(own, 0), tl.sum(scale, 0)


@jit()
def settle(
    inverse, line, heads, size, share, sums, drive, n,
    TREES: tl.constexpr, COLUMNS: tl.constexpr, CAPACITY: tl.constexpr,
):  # fmt: skip
    """Step to the minimum on the affine hull, dropping the trees whose weight vanishes on the way.

    Returns:
        The size, weights and sums of what is left.
    """
    tree = tl.arange(0, CAPACITY)
    moving = 1
    while moving > 0:
        step = tl.where(tree < size, drive - tl.sum(drive, 0) / tl.sum(sums, 0) * sums, 0.0)
        vanishing = (tree < size) & (share + step <= 0.0) & (step < 0.0)
        far, index = tl.min(tl.where(vanishing, share / tl.where(vanishing, -step, 1.0), 2.0), 0, return_indices=True)
        moving = tl.where(far < 2.0, 1, 0)
        far = tl.minimum(far, 1.0)
        share += far * step
        drive *= 1.0 - far
        if moving > 0:
            row = remove(inverse, line, heads, index, size, n, TREES, COLUMNS, CAPACITY)
            sums = without(sums, row, index, size - 1, CAPACITY)
            drive = without(drive, row, index, size - 1, CAPACITY)
            share = move_last(share, index, size - 1, CAPACITY)
            size -= 1
    return size, share, sums
