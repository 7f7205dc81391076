"""Bands of 32 rows of a matrix, for Numba: vectors of a number for each row, each row some columns behind the one above it.

In step t, row r of a band is at column t - r lag. Memory is read and written by vectors along the rows, a block of steps at a
time, and what is outside of the matrix is left out. Neighbouring rows are in different groups of 8 lanes, as rows 0, 4, 8, ...
are the first group: so moving all numbers by a row exchanges lanes in one group only.
"""

from __future__ import annotations

import math

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from pullback.inference._numba.compile import subroutine
from pullback.inference._numba.lanes import Lanes, address_of, lanes_in, splat_of, vector_of
from pullback.inference._numba.rows import masked
from pullback.inference._numba.vectors import transposed

ROWS, GROUP = 32, 8
_WORD = ir.IntType(64)


@subroutine
def lane_of(row):
    """The lane of a row of a band."""
    return row // (ROWS // GROUP) + row % (ROWS // GROUP) * GROUP


def _row_of(lane):
    return lane % GROUP * (ROWS // GROUP) + lane // GROUP


@intrinsic
def splat_band(typingctx, array, value):
    """A vector for a band, of an array's dtype, with `value` for each row."""
    kind = Lanes(array.dtype, ROWS)

    def generate(context, builder, signature, args):
        return splat_of(builder, context.cast(builder, args[1], signature.args[1], kind.dtype), vector_of(kind))

    return kind(array, value), generate


@intrinsic
def load_widened(typingctx, array, index):
    """The vector for a band at `array.flat[index]`, in float64."""
    kind, part = Lanes(types.float64, ROWS), Lanes(array.dtype, GROUP)

    def generate(context, builder, signature, args):
        parts = []
        for start in range(0, ROWS, GROUP):  # apart, as processors widen half a vector that they read
            place = builder.add(args[1], _WORD(start))
            value = builder.load(address_of(context, builder, signature.args[0], args[0], place, vector_of(part)))
            value.align = array.dtype.bitwidth // 8
            wide = vector_of(Lanes(types.float64, GROUP))
            parts.append(value if value.type == wide else builder.fpext(value, wide))
        while len(parts) > 1:
            both = ir.Constant(ir.VectorType(ir.IntType(32), 2 * parts[0].type.count), list(range(2 * parts[0].type.count)))
            parts = [builder.shuffle_vector(parts[i], parts[i + 1], both) for i in range(0, len(parts), 2)]
        return parts[0]

    return kind(array, types.intp), generate


@intrinsic
def from_above(typingctx, vector, entering):
    """Each row gets the number of the one above, the first row the number that enters."""
    lanes = [ROWS, *range(ROWS - GROUP, ROWS - 1), *range(ROWS - GROUP)]

    def generate(context, builder, signature, args):
        kind = vector_of(vector)
        element = context.cast(builder, args[1], signature.args[1], vector.dtype)
        free = builder.insert_element(ir.Constant(kind, ir.Undefined), element, ir.Constant(ir.IntType(32), 0))
        return builder.shuffle_vector(args[0], free, ir.Constant(ir.VectorType(ir.IntType(32), ROWS), lanes))

    return vector(vector, entering), generate


@intrinsic
def last_row(typingctx, vector):
    """The number of the last row."""

    def generate(context, builder, signature, args):
        return builder.extract_element(args[0], ir.Constant(ir.IntType(32), ROWS - 1))

    return vector.dtype(vector), generate


class _Part:
    """Some rows of a band at a step, as many as a vector has lanes, for the generation of code.

    A band is where its first row begins, how far its rows are apart, the lag, and how many rows and columns it has.
    """

    def __init__(self, builder, band, step, part, count):
        self._builder, self.count = builder, count
        self._begin, self._stride, self._lag, self._rows, self._columns = cgutils.unpack_tuple(builder, band)
        self._step, self._first = step, builder.mul(part, _WORD(count // GROUP))

    def whole(self):
        """Whether all lanes of the next steps, as many as there are rows, are in the matrix."""
        builder = self._builder
        every = builder.icmp_signed("==", self._rows, _WORD(ROWS))
        begun = builder.icmp_signed(">=", self._step, builder.mul(self._lag, _WORD(ROWS - 1)))
        goes_on = builder.icmp_signed("<=", builder.add(self._step, _WORD(self.count)), self._columns)
        return builder.and_(every, builder.and_(begun, goes_on))

    def places(self):
        """The flat index of each row's number."""
        builder = self._builder
        apart = builder.sub(self._stride, self._lag)
        first = builder.add(builder.add(self._begin, self._step), builder.mul(self._first, apart))
        return [builder.add(first, builder.mul(apart, _WORD(_row_of(lane)))) for lane in range(self.count)]

    def masks(self):
        """The mask of each row's lanes that are in the matrix."""
        builder, word = self._builder, ir.IntType(32)
        integers, most = ir.VectorType(word, self.count), _WORD(2 * ROWS)  # columns further away are not told apart

        def at_most(x):
            return builder.select(builder.icmp_signed("<", x, most), x, most)

        before = at_most(self._step)
        limit = builder.trunc(builder.add(before, at_most(builder.sub(self._columns, self._step))), word)
        for lane in range(self.count):
            row = builder.add(self._first, _WORD(_row_of(lane)))
            start = builder.trunc(builder.sub(before, builder.mul(row, self._lag)), word)
            column = builder.add(splat_of(builder, start, integers), ir.Constant(integers, list(range(self.count))))
            columns = builder.select(builder.icmp_signed("<", row, self._rows), limit, word(0))
            yield builder.icmp_unsigned("<", column, splat_of(builder, columns, integers))


def _with_bad(builder, vectors, so_far):
    """`so_far`, with 1 in some lanes if NaN or +inf is among the numbers of some vectors.

    By their bits: as integers with a sign, positive NaN and +inf are above all others, and negative NaN without one. These
    maxima need not wait for each other, as LLVM makes comparisons of numbers do.
    """
    vector = so_far.type
    bits, infinity = (32, 0x7F800000) if isinstance(vector.element, ir.FloatType) else (64, 0x7FF0000000000000)
    integers = ir.VectorType(ir.IntType(bits), vector.count)

    def constant(value):
        return ir.Constant(integers, [value] * vector.count)

    def largest(compare):
        found = [builder.bitcast(x, integers) for x in vectors]
        while len(found) > 1:
            pairs = zip(found[::2], found[1::2], strict=True)
            found = [builder.select(compare(">", x, y), x, y) for x, y in pairs]
        return found[0]

    high = builder.icmp_signed(">=", largest(builder.icmp_signed), constant(infinity))
    low = builder.icmp_unsigned(">", largest(builder.icmp_unsigned), constant(infinity + (1 << bits - 1)))
    return builder.select(builder.or_(high, low), ir.Constant(vector, [1.0] * vector.count), so_far)


@intrinsic
def _read_part(typingctx, array, band, step, part, block, bad):
    kind = bad

    def generate(context, builder, signature, args):
        vector, count = vector_of(kind), kind.count
        array, band, step, part, block, bad = args
        align = signature.args[0].dtype.bitwidth // 8
        rows = _Part(builder, band, step, part, count)
        pointers = [address_of(context, builder, signature.args[0], array, place, vector) for place in rows.places()]
        nothing = ir.Constant(vector, [-math.inf] * count)
        plain, some = [], []
        with builder.if_else(rows.whole()) as (then, otherwise):
            with then:
                for pointer in pointers:
                    plain.append(builder.load(pointer))
                    plain[-1].align = align
                before = builder.block
            with otherwise:
                for pointer, mask in zip(pointers, rows.masks(), strict=True):
                    some.append(masked(builder, "load", vector, vector, pointer, ir.IntType(32)(align), mask, nothing))
                other = builder.block
        found = []
        for x, y in zip(plain, some, strict=True):
            found.append(builder.phi(vector))
            found[-1].add_incoming(x, before)
            found[-1].add_incoming(y, other)
        bad = _with_bad(builder, found, bad)
        for i, column in enumerate(transposed(builder, found)):
            place = builder.add(builder.mul(part, _WORD(count)), _WORD(i * ROWS))
            builder.store(column, address_of(context, builder, signature.args[4], block, place, vector)).align = align
        return bad

    return kind(array, band, types.intp, types.intp, block, kind), generate


@subroutine
def read_block(array, band, step, block, bad):
    """Read the next steps of a band, as many as a vector has lanes, -inf outside of the matrix.

    Returns `bad`, with 1 in some lanes if NaN or +inf is among them.
    """
    for part in range(ROWS // lanes_in(array)):
        bad = _read_part(array, band, step, part, block, bad)
    return bad
