"""From structures of zeros and ones to lists of their parts, compiled."""

from __future__ import annotations

from pullback.inference.compile import lean_kernel


@lean_kernel
def list_parts(z, columns, lists):
    """Write the parts of structures `[R, K]` to `[R, most]`, padded with -1; what is no structure has no parts.

    They are listed column by column of a matrix with so many columns: in their own order for one column.
    """
    most, height = lists.shape[1], z.shape[1] // max(columns, 1)
    for r in range(len(z)):
        count, right = 0, True
        for column in range(columns):
            for row in range(height):
                part = row * columns + column
                if z[r, part] != 0.0:
                    right = right and z[r, part] == 1.0 and count < most
                    if right:
                        lists[r, count] = part
                        count += 1
        for at in range(count if right else 0, most):
            lists[r, at] = -1
