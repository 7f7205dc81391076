"""How the generated loops draw one term of a sum, for one example: numbers of one lane of the charts."""

from __future__ import annotations

from pullback.inference._numba.compile import inline
from pullback.inference._numba.random_kernels import uniform

__all__ = ["choose", "choose_scaled", "uniform"]


@inline
def choose(a, ia, a_step, b, ib, b_step, count, u):
    """Draw t < count with a probability proportional to a[ia + t a_step] b[ib + t b_step]."""
    total = 0.0
    for t in range(count):
        total += a[ia + t * a_step] * b[ib + t * b_step]
    below, last = 0.0, 0
    for t in range(count):
        p = a[ia + t * a_step] * b[ib + t * b_step]
        below += p
        if p > 0.0:
            last = t
            if below > u * total:
                break
    return last


@inline
def choose_scaled(a, ia, a_step, b, ib, b_step, count, u):
    """The same for numbers with exponents."""
    top, some = _exponents(a, ia, b, ib), False
    for t in range(count):
        at, by = ia + t * a_step, ib + t * b_step
        if a[0][at] > 0.0 and b[0][by] > 0.0:
            found = _exponents(a, at, b, by)
            top, some = found if not some or _gap(found, top) > 0 else top, True
    total = 0.0
    for t in range(count):
        total += _over(a, ia + t * a_step, b, ib + t * b_step, top)
    below, last = 0.0, 0
    for t in range(count):
        p = _over(a, ia + t * a_step, b, ib + t * b_step, top)
        below += p
        if p > 0.0:
            last = t
            if below > u * total:
                break
    return last


@inline
def _exponents(a, at, b, by):
    """The exponents k, h and g of a product: the last two are 0 where numbers have none."""
    far = len(a) > 2
    return a[1][at] + b[1][by], (a[-2][at] + b[-2][by] if far else 0.0), (a[-1][at] + b[-1][by] if far else 0.0)


@inline
def _gap(x, y):
    """The difference of exponents, or as much of it as is of use."""
    far = x[1] - y[1] + 2.0**40 * (x[2] - y[2])
    return x[0] - y[0] + (int(min(max(far, -65536.0), 65536.0)) << 44)


@inline
def _over(a, at, b, by, top):
    """The product of two numbers over 2^top."""
    below = max(_gap(_exponents(a, at, b, by), top), -1000)
    return 0.0 if below == -1000 else a[0][at] * b[0][by] * 2.0**below
