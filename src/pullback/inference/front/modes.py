"""The results that a compiled kernel can compute, numbered once.

Kernels on the CPU take a mode as an integer, which Numba's dispatcher recognises faster than a member of an enumeration, and
compare it with these members. Triton's kernels number the modes of each kernel by themselves: their text stays as it has run
on a GPU, and a kernel without a mode leaves no gap in its numbers.
"""

import enum


class Mode(enum.IntEnum):
    """A kernel's results. From TANGENT on there are tangents, from ENTROPY on those of surprises."""

    LOG_PARTITION = 0
    MARGINALS = 1
    """And the log-partition."""
    LOG_PROB = 2
    """The log-probability of a structure z, and its gradient, z less the marginals."""
    SAMPLE = 3
    TANGENT = 4
    """The derivatives of log-partition and marginals along a direction of the scores."""
    ENTROPY = 5
    ENTROPY_TANGENT = 6
    """The gradient of the entropy: the derivative of the marginals along the surprise of each part."""
