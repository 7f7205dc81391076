"""Vectors along a row of numbers, for Numba: the last one of a row has fewer lanes (`lanes.py` has the vectors)."""

from __future__ import annotations

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from pullback.inference._numba.lanes import Lanes, address_of, lanewise, load_from, splat_of, vector_of


def _first_lanes(builder, vector, count):
    """The mask of the lanes below a count."""
    wide = ir.VectorType(ir.IntType(64), vector.count)
    return builder.icmp_signed("<", ir.Constant(wide, list(range(vector.count))), splat_of(builder, count, wide))


def masked(builder, name, result, vector, *operands):
    """Call one of LLVM's masked instructions."""
    name = f"llvm.masked.{name}.v{vector.count}f{32 if isinstance(vector.element, ir.FloatType) else 64}.p0"
    kind = ir.FunctionType(result, [operand.type for operand in operands])
    return builder.call(cgutils.get_or_insert_function(builder.module, kind, name), operands)


@intrinsic
def load_first(typingctx, array, index, count, fill):
    """The first `count` numbers from `array.flat[index]` on; `fill` in the other lanes, whose memory is not read."""
    kind = fill

    def generate(context, builder, signature, args):
        vector, align = vector_of(kind), ir.Constant(ir.IntType(32), array.dtype.bitwidth // 8)
        pointer = address_of(context, builder, signature.args[0], args[0], args[1], vector)
        return masked(builder, "load", vector, vector, pointer, align, _first_lanes(builder, vector, args[2]), args[3])

    return kind(array, types.intp, types.intp, kind), generate


@intrinsic
def splat_four(typingctx, array, value):
    """Four lanes of `array`'s dtype with `value` in each."""
    kind = Lanes(array.dtype, 4)

    def generate(context, builder, signature, args):
        return splat_of(builder, context.cast(builder, args[1], signature.args[1], kind.dtype), vector_of(kind))

    return kind(array, value), generate


@intrinsic
def load_like(typingctx, array, index, like):
    """The vector at `array.flat[index]`, as wide as another one."""

    def generate(context, builder, signature, args):
        return load_from(context, builder, signature.args[0], args[0], args[1], like)

    return like(array, types.intp, like), generate


@intrinsic
def splat_like(typingctx, array, index, like):
    """A vector as wide as another one, with `array.flat[index]` in every lane."""

    def generate(context, builder, signature, args):
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        return splat_of(builder, builder.load(builder.gep(data, [args[1]])), vector_of(like))

    return like(array, types.intp, like), generate


@intrinsic
def lanes_of(typingctx, vector):
    """How many lanes a vector has, a constant."""
    count = vector.count
    return types.intp(vector), lambda context, builder, signature, args: context.get_constant(types.intp, count)


@intrinsic
def store_first(typingctx, array, index, count, vector):
    """Write the first `count` lanes to `array.flat[index]` and behind it."""

    def generate(context, builder, signature, args):
        kind, align = vector_of(vector), ir.Constant(ir.IntType(32), array.dtype.bitwidth // 8)
        pointer = address_of(context, builder, signature.args[0], args[0], args[1], kind)
        masked(builder, "store", ir.VoidType(), kind, args[3], pointer, align, _first_lanes(builder, kind, args[2]))
        return context.get_dummy_value()

    return types.void(array, types.intp, types.intp, vector), generate


def _prefetching(write, near=3):
    @intrinsic
    def ask(typingctx, array, index):
        def generate(context, builder, signature, args):
            pointer = address_of(context, builder, signature.args[0], args[0], args[1], ir.IntType(8))
            word = ir.IntType(32)
            kind = ir.FunctionType(ir.VoidType(), [pointer.type, word, word, word])
            function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
            builder.call(function, [pointer, *(ir.Constant(word, value) for value in (write, near, 1))])
            return context.get_dummy_value()

        return types.void(array, types.intp), generate

    return ask


prefetch = _prefetching(0)
"""`prefetch(array, index)`: ask for the cache line of `array.flat[index]`, which may be out of bounds, to be read later.

Processors do so themselves where memory is read in order, but not beyond a page of 4 kB.
"""
prefetch_to_write = _prefetching(1)
"""The same for a line that is going to be written."""
prefetch_beside = _prefetching(0, 2)
"""The same for a line that is read after others: into the second level of the cache."""
AHEAD = 1200
"""How many numbers ahead of their use long rows are asked for."""


@intrinsic
def keep_first(typingctx, vector, count, otherwise):
    """The first `count` lanes of a vector, and the other lanes of `otherwise`."""

    def generate(context, builder, signature, args):
        return builder.select(_first_lanes(builder, vector_of(vector), args[1]), args[0], args[2])

    return vector(vector, types.intp, vector), generate


def _folding(combine):
    """An intrinsic that folds the lanes of a vector into one number, halves first."""

    @intrinsic
    def fold(typingctx, vector):
        def generate(context, builder, signature, args):
            value, size = args[0], vector.count // 2
            while size >= 1:
                lanes = [(lane + size) % vector.count for lane in range(vector.count)]
                mask = ir.Constant(ir.VectorType(ir.IntType(32), vector.count), lanes)
                value = combine(builder, value, builder.shuffle_vector(value, value, mask))
                size //= 2
            return builder.extract_element(value, ir.Constant(ir.IntType(32), 0))

        return vector.dtype(vector), generate

    return fold


largest_of = _folding(lambda builder, a, b: builder.select(builder.fcmp_ordered(">", a, b), a, b))
"""`largest_of(vector)`: the largest of its lanes, none of which may be NaN."""

sum_of = _folding(lambda builder, a, b: builder.fadd(a, b))
"""`sum_of(vector)`: the sum of its lanes."""


@intrinsic
def store_sums(typingctx, array, index, a, b, c, d):
    """Write the sums of the lanes of four vectors to `array.flat[index]` and the numbers behind it."""

    def generate(context, builder, signature, args):
        kind = vector_of(a)
        count, rows = kind.count, list(args[2:])

        def pick(x, y, lanes):
            return builder.shuffle_vector(x, y, ir.Constant(ir.VectorType(ir.IntType(32), len(lanes)), lanes))

        def halves(x, y, size):  # of blocks of 2 size lanes: first those of x, then those of y, each folded once
            low = [lane + start for lane in (0, count) for start in range(count) if start % (2 * size) < size]
            return builder.fadd(pick(x, y, low), pick(x, y, [lane + size for lane in low]))

        size = count // 2
        while len(rows) > 1:
            rows = [halves(rows[i], rows[i + 1], size) for i in range(0, len(rows), 2)]
            size //= 2
        total = rows[0]
        while size >= 1:
            total = builder.fadd(total, pick(total, total, [(lane + size) % count for lane in range(count)]))
            size //= 2
        four = ir.VectorType(kind.element, 4)
        pointer = address_of(context, builder, signature.args[0], args[0], args[1], four)
        found, align = pick(total, total, [i * count // 4 for i in range(4)]), array.dtype.bitwidth // 8
        builder.store(found, pointer).align = align
        return context.get_dummy_value()

    return types.void(array, types.intp, a, b, c, d), generate


def _count_nan(builder, x, so_far):
    one = ir.Constant(x.type, [1.0] * x.type.count)
    return builder.select(builder.fcmp_unordered("uno", x, x), one, so_far)


count_nan = lanewise(_count_nan, 2)
"""`count_nan(x, so_far)`: `so_far`, with 1 in the lanes where x is NaN."""


def _either(builder, a, b):
    bits = ir.VectorType(ir.IntType(32 if isinstance(a.type.element, ir.FloatType) else 64), a.type.count)
    return builder.bitcast(builder.or_(builder.bitcast(a, bits), builder.bitcast(b, bits)), a.type)


either = lanewise(_either, 2)
"""`either(a, b)`: zero in the lanes where both are, else not zero."""


def _differ(builder, x):
    """Which lanes are not zero, as an integer of as many bits."""
    differs = builder.fcmp_unordered("!=", x, ir.Constant(x.type, [0.0] * x.type.count))
    return builder.bitcast(differs, ir.IntType(x.type.count))


@intrinsic
def any_nonzero(typingctx, x):
    """Whether a lane is not zero."""

    def generate(context, builder, signature, args):
        bits = _differ(builder, args[0])
        return builder.icmp_unsigned("!=", bits, ir.Constant(bits.type, 0))

    return types.boolean(x), generate


@intrinsic
def nonzero(typingctx, x):
    """The lanes that are not zero, as bits of a number."""
    return types.int64(x), lambda context, builder, signature, args: builder.zext(_differ(builder, args[0]), ir.IntType(64))


@intrinsic
def lowest_bit(typingctx, bits):
    """The place of the lowest bit that is set, if there is one."""
    return types.int64(types.int64), lambda context, builder, signature, args: builder.cttz(
        args[0], ir.Constant(ir.IntType(1), 1)
    )


def _shifting(to_higher):
    """An intrinsic that moves the lanes of a vector by one, and puts a number into the lane that becomes free."""

    @intrinsic
    def shift(typingctx, vector, entering):
        count = vector.count
        lanes = [count, *range(count - 1)] if to_higher else [*range(1, count), count]

        def generate(context, builder, signature, args):
            kind = vector_of(vector)
            element = context.cast(builder, args[1], signature.args[1], vector.dtype)
            free = builder.insert_element(ir.Constant(kind, ir.Undefined), element, ir.Constant(ir.IntType(32), 0))
            mask = ir.Constant(ir.VectorType(ir.IntType(32), count), lanes)
            return builder.shuffle_vector(args[0], free, mask)

        return vector(vector, entering), generate

    return shift


shift_up = _shifting(True)
"""`shift_up(vector, number)`: each lane gets that of the lane below, lane 0 the number."""
shift_down = _shifting(False)
"""`shift_down(vector, number)`: each lane gets that of the lane above, the last one the number."""


@intrinsic
def first_half(typingctx, vector):
    """The first half of the lanes of a vector."""
    kind = Lanes(vector.dtype, vector.count // 2)

    def generate(context, builder, signature, args):
        mask = ir.Constant(ir.VectorType(ir.IntType(32), kind.count), list(range(kind.count)))
        return builder.shuffle_vector(args[0], args[0], mask)

    return kind(vector), generate


@intrinsic
def with_zeros(typingctx, vector):
    """A vector twice as long, with zeros behind."""
    kind = Lanes(vector.dtype, 2 * vector.count)

    def generate(context, builder, signature, args):
        mask = ir.Constant(ir.VectorType(ir.IntType(32), kind.count), list(range(kind.count)))
        return builder.shuffle_vector(args[0], ir.Constant(args[0].type, [0.0] * vector.count), mask)

    return kind(vector), generate
