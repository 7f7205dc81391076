"""The weights of an active set on a GPU, in Triton: the mean that they make of its trees, and their move to a better one."""

from __future__ import annotations

from pullback.inference.sparsemap.cuda_active_set import add_both, mix, remove, step_of
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
        own_here, scale_here = tl.reduce((terms, tl.abs(terms)), 0, add_both)
        own += own_here
        scale += scale_here
        tl.store(residual + at, slack, mask=real)
        if ROUGH:
            tl.store(roughly + at, slack.to(tl.float32), mask=real)
        tl.store(mu + at, mu_here.to(mu.dtype.element_ty), mask=real)
    return tl.reduce((own, scale), 0, add_both)


@jit()
def settle(
    inverse, pending, heads, columns, size, share, sums, drive, n,
    COLUMNS: tl.constexpr, CAPACITY: tl.constexpr, PENDING: tl.constexpr,
):  # fmt: skip
    """Step to the minimum on the affine hull, dropping the trees whose weight vanishes on the way.

    Returns:
        How many changes of M are pending then, and the size, weights and sums of what is left.
    """
    tree = tl.arange(0, CAPACITY)
    moving = 1
    while moving > 0:
        step = tl.where(tree < size, step_of(drive, sums), 0.0)
        vanishing = (tree < size) & (share + step <= 0.0) & (step < 0.0)
        far, index = tl.min(tl.where(vanishing, share / tl.where(vanishing, -step, 1.0), 2.0), 0, return_indices=True)
        moving = tl.where(far < 2.0, 1, 0)
        far = tl.minimum(far, 1.0)
        share += far * step
        drive *= 1.0 - far
        if moving > 0:
            pending, share, sums, drive = remove(
                inverse, pending, heads, columns, index, size, share, sums, drive, n, COLUMNS, CAPACITY, PENDING
            )  # fmt: skip
            size -= 1
    return pending, size, share, sums
