"""Numbers of any size for sums over trees on a GPU: a mantissa and an exponent of its own, in Triton.

A number is m * 2^(unit * e), with m in the scores' precision and e an int32:

    0 < value:  1 <= m < 2^unit,  |e| <= 2^26;        0:  m = 0,  e = -2^28.

A unit is 16 binary digits for float32 and 128 for float64, so that the product of three mantissas is far from overflow, and
terms that are eight units below the largest are lost in rounding. There are neither exponentials nor logarithms in a sum,
only products, shifts and the largest exponent. Values are right up to a factor of exp(7e8), which the trees of scores up to
1e6 and 300 words do not reach; what is smaller counts as that small.

In a chart of int64, a number of float32 is one element, exponent above mantissa; one of float64 is two.
"""

from __future__ import annotations

from pullback.inference._triton.support import jit, tl


@jit()
def load(charts, a, b, mask, SOFT: tl.constexpr):
    """The numbers at a + b: mantissas and exponents; anything where the mask is false."""
    if SOFT == tl.float32:
        both = tl.load(charts + a + b, mask=mask)
        return both.to(tl.int32).to(tl.float32, bitcast=True), (both >> 32).to(tl.int32)
    else:
        pointer = charts + 2 * a + 2 * b
        m, e = tl.load(pointer, mask=mask), tl.load(pointer + 1, mask=mask)
        return m.to(tl.float64, bitcast=True), e.to(tl.int32)


@jit()
def store(charts, at, m, e, mask, SOFT: tl.constexpr):
    """Write numbers."""
    if SOFT == tl.float32:
        low = m.to(tl.int32, bitcast=True).to(tl.int64) & 0xFFFFFFFF
        tl.store(charts + at, (e.to(tl.int64) << 32) | low, mask=mask)
    else:
        tl.store(charts + 2 * at, m.to(tl.int64, bitcast=True), mask=mask)
        tl.store(charts + 2 * at + 1, e.to(tl.int64), mask=mask)


@jit()
def zeros(SIZE: tl.constexpr, SOFT: tl.constexpr):
    """Zeros: mantissas and exponents."""
    return tl.zeros([SIZE], SOFT), tl.full([SIZE], -(2**28), tl.int32)


@jit()
def power(e, SOFT: tl.constexpr):
    """2^(unit * e) for e <= 0, at least 2^(-7 * unit)."""
    e = tl.maximum(e, -7)
    if SOFT == tl.float32:
        return ((e << 27) + 0x3F800000).to(tl.float32, bitcast=True)
    else:
        return ((e.to(tl.int64) << 59) + 0x3FF0000000000000).to(tl.float64, bitcast=True)


@jit()
def normal(x, e, SOFT: tl.constexpr):
    """The number x * 2^(unit * e), for x >= 0."""
    if SOFT == tl.float32:
        bits = x.to(tl.int32, bitcast=True)
        units = (bits - 0x3F800000) >> 27
        m = (bits - (units << 27)).to(tl.float32, bitcast=True)
    else:
        bits = x.to(tl.int64, bitcast=True)
        units = (bits - 0x3FF0000000000000) >> 59
        m = (bits - (units << 59)).to(tl.float64, bitcast=True)
    positive = x > 0.0
    return tl.where(positive, m, 0.0), tl.where(positive, tl.maximum(e + units.to(tl.int32), -(2**26)), -(2**28))


@jit()
def from_log2(log, SOFT: tl.constexpr):
    """The number whose base-2 log this is, in float64."""
    unit: tl.constexpr = 16 if SOFT == tl.float32 else 128
    log = tl.maximum(log, -(2.0**26) * unit)
    e = tl.floor(log * (1 / unit))
    return tl.exp2((log - e * unit).to(SOFT)), e.to(tl.int32)


@jit()
def log2(x, SOFT: tl.constexpr):
    """The base-2 log of x > 0 in float64, to the precision of x."""
    if SOFT == tl.float32:
        # the exponent apart, so that the log of a large number has as many digits as that of one near 1
        bits = x.to(tl.int32, bitcast=True)
        mantissa = ((bits & 0x7FFFFF) | 0x3F800000).to(tl.float32, bitcast=True)
        return tl.log2(mantissa).to(tl.float64) + ((bits >> 23) - 127).to(tl.float64)
    else:
        return tl.log2(x)


@jit()
def log2_of(m, e, SOFT: tl.constexpr):
    """The base-2 log of a number, in float64; -inf for 0."""
    unit: tl.constexpr = 16 if SOFT == tl.float32 else 128
    return tl.log2(m.to(tl.float64)) + (e * unit).to(tl.float64)
