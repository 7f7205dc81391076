"""SIMD lanes for Numba: vectors of one cache line that stay in registers.

A chart that holds several sentences side by side keeps the value of each sentence in a lane of a vector, so that
every step of a dynamic programme is a few vector instructions, whatever the index arithmetic. `LANES[dtype]` lanes
fill 64 bytes: 16 of float32, 8 of float64. Arrays are addressed by the flat index of a vector's first lane.
"""

from __future__ import annotations

import math
import operator

import numba
import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic, lower_builtin, models, register_model, type_callable

BYTES = 64


class Lanes(types.Type):
    """The type of a vector; hashable by its name, so that cached kernels find it again."""

    def __init__(self, dtype, count):
        self.dtype, self.count = dtype, count
        super().__init__(name=f"Lanes({dtype}, {count})")


@register_model(Lanes)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, dmm, fe_type):
        super().__init__(dmm, fe_type, vector_of(fe_type))


def vector_of(kind):
    """The LLVM type of a vector."""
    elements = {
        types.float32: ir.FloatType(),
        types.float64: ir.DoubleType(),
        types.int32: ir.IntType(32),
        types.int64: ir.IntType(64),
    }
    return ir.VectorType(elements[kind.dtype], kind.count)


def floats(dtype, size=BYTES):
    """The type of a vector of `size` bytes."""
    return Lanes(dtype, size * 8 // dtype.bitwidth)


def _integers(kind):
    return Lanes(types.int32 if kind.dtype.bitwidth == 32 else types.int64, kind.count)


@intrinsic
def lanes_in(typingctx, array):
    """How many numbers of an array fill a vector: a constant for the compiler, which `BYTES // array.itemsize` is not."""
    count = floats(array.dtype).count
    return types.intp(array), lambda context, builder, signature, args: context.get_constant(types.intp, count)


@numba.njit
def aligned(size, like):
    """An uninitialised array of `size` elements, the dtype of `like`, that starts at a cache line."""
    raw = np.empty(size + BYTES // like.itemsize, like.dtype)
    skip = (-raw.ctypes.data % BYTES) // like.itemsize
    return raw[skip : skip + size]


def address_of(context, builder, array_type, array, index, vector):
    """Where the vector at a flat index begins."""
    data = context.make_array(array_type)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [index]), vector.as_pointer())


def load_from(context, builder, array_type, array, index, kind):
    """Generate the code that reads a vector."""
    value = builder.load(address_of(context, builder, array_type, array, index, vector_of(kind)))
    value.align = array_type.dtype.bitwidth // 8
    return value


def store_to(context, builder, array_type, array, index, kind, vector):
    """Generate the code that writes a vector."""
    pointer = address_of(context, builder, array_type, array, index, vector_of(kind))
    builder.store(vector, pointer).align = array_type.dtype.bitwidth // 8


def _load(size):
    @intrinsic
    def read(typingctx, array, index):
        kind = floats(array.dtype, size)

        def generate(context, builder, signature, args):
            return load_from(context, builder, signature.args[0], args[0], args[1], kind)

        return kind(array, types.intp), generate

    return read


load = _load(BYTES)
"""`load(array, index)`: the vector at `array.flat[index]`."""
load_half = _load(BYTES // 2)
"""The same for half a vector, which is faster where it does not start at a cache line."""


@intrinsic
def store(typingctx, array, index, vector):
    """Write the vector to `array.flat[index]`."""

    def generate(context, builder, signature, args):
        store_to(context, builder, signature.args[0], args[0], args[1], vector, args[2])
        return context.get_dummy_value()

    return types.void(array, types.intp, vector), generate


@intrinsic
def gather(typingctx, array, bases, offset):
    """The vector of `array.flat[bases[lane] + offset]`, one load a lane."""
    kind = floats(array.dtype)

    def generate(context, builder, signature, args):
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        starts = context.make_array(signature.args[1])(context, builder, args[1]).data
        vector = ir.Constant(vector_of(kind), ir.Undefined)
        for lane in range(kind.count):
            start = builder.load(builder.gep(starts, [ir.Constant(ir.IntType(64), lane)]))
            element = builder.load(builder.gep(data, [builder.add(start, args[2])]))
            vector = builder.insert_element(vector, element, ir.Constant(ir.IntType(32), lane))
        return vector

    return kind(array, bases, types.intp), generate


def splat_of(builder, element, vector):
    """Generate a vector with one value in every lane."""
    first = builder.insert_element(ir.Constant(vector, ir.Undefined), element, ir.Constant(ir.IntType(32), 0))
    zeros = ir.Constant(ir.VectorType(ir.IntType(32), vector.count), None)
    return builder.shuffle_vector(first, ir.Constant(vector, ir.Undefined), zeros)


def _splatting(size):
    @intrinsic
    def fill(typingctx, array, value):
        kind = floats(array.dtype, size)

        def generate(context, builder, signature, args):
            element = context.cast(builder, args[1], signature.args[1], kind.dtype)
            return splat_of(builder, element, vector_of(kind))

        return kind(array, value), generate

    return fill


splat = _splatting(BYTES)
"""`splat(array, value)`: a vector for `array`'s dtype with `value` in every lane."""
splat_half = _splatting(BYTES // 2)
"""The same for half a vector."""


@intrinsic
def splat_index(typingctx, like, value):
    """An integer vector as wide as `like` with `value` in every lane."""
    kind = _integers(like)

    def generate(context, builder, signature, args):
        return splat_of(builder, context.cast(builder, args[1], signature.args[1], kind.dtype), vector_of(kind))

    return kind(like, value), generate


def _operator(python_operator, name):
    """Python's operator between vectors, straight to LLVM: an `overload` would have to be compiled wherever it is used."""

    @type_callable(python_operator)
    def kind(context):
        return lambda a, b: a if isinstance(a, Lanes) and isinstance(b, Lanes) else None

    @lower_builtin(python_operator, Lanes, Lanes)
    def generate(context, builder, signature, args):
        return getattr(builder, name)(*args)


_operator(operator.add, "fadd")
_operator(operator.sub, "fsub")
_operator(operator.mul, "fmul")
_operator(operator.truediv, "fdiv")


def call(builder, name, vector, *operands):
    """Call an intrinsic function of LLVM on vectors."""
    bits = 32 if isinstance(vector.element, ir.FloatType) else 64
    kind = ir.FunctionType(vector, [vector] * len(operands))
    function = cgutils.get_or_insert_function(builder.module, kind, f"llvm.{name}.v{vector.count}f{bits}")
    return builder.call(function, operands)


def lanewise(make, count):
    """A function of `count` vectors, from the instructions that `make` emits; its result is like the last one."""

    def define(*kinds):
        return kinds[-1](*kinds), lambda context, builder, signature, args: make(builder, *args)

    by_count = (
        lambda context, a: define(a),
        lambda context, a, b: define(a, b),
        lambda context, a, b, c: define(a, b, c),
        lambda context, a, b, c, d: define(a, b, c, d),
    )
    return intrinsic(by_count[count - 1])


def _bad_score(builder, x):
    def constant(value):
        return ir.Constant(x.type, [value] * x.type.count)

    infinite, nan = builder.fcmp_ordered("==", x, constant(math.inf)), builder.fcmp_unordered("uno", x, x)
    return builder.select(nan, constant(2.0), builder.select(infinite, constant(1.0), constant(0.0)))


fma = lanewise(lambda builder, a, b, c: call(builder, "fma", c.type, a, b, c), 3)
"""The sum a * b + c."""
larger = lanewise(lambda builder, a, b: builder.select(builder.fcmp_ordered(">", a, b), a, b), 2)
"""The larger of each pair; b where they are equal or one is NaN."""
where_larger = lanewise(lambda builder, a, b, c, d: builder.select(builder.fcmp_ordered(">", a, b), c, d), 4)
"""`where_larger(a, b, then, otherwise)`: `then` in the lanes where a > b, else `otherwise`."""
bad_score = lanewise(_bad_score, 1)
"""1 in the lanes that are +inf, 2 in those that are NaN, else 0."""


@intrinsic
def store_index(typingctx, array, index, vector):
    """Write an integer vector to the int16 array at `array.flat[index]`."""

    def generate(context, builder, signature, args):
        narrow = ir.VectorType(ir.IntType(16), vector.count)
        pointer = address_of(context, builder, signature.args[0], args[0], args[1], narrow)
        builder.store(builder.trunc(args[2], narrow), pointer).align = 2
        return context.get_dummy_value()

    return types.void(array, types.intp, vector), generate


_EXP = (1.0, 1.00000003634, 0.499999920751, 0.166664200724, 0.0416682261885, 0.00837482403066, 0.00138368357448)
"""The polynomial of degree 6 with the least relative error for exp between -log(2) / 2 and log(2) / 2: 2e-9."""


def _exponential(series=False):
    @intrinsic
    def power(typingctx, x):
        def generate(context, builder, signature, args):
            vector, bits = vector_of(x), x.dtype.bitwidth
            integer = ir.VectorType(ir.IntType(bits), vector.count)
            mantissa, lowest = (23, -87.0) if bits == 32 else (52, -708.0)
            coefficients = [1 / math.factorial(k) for k in range(8 if bits == 32 else 14)]
            coefficients = _EXP if bits == 32 and not series else coefficients

            def constant(value, kind=vector):
                return ir.Constant(kind, [value] * kind.count)

            def apply(name, *operands):
                return call(builder, name, vector, *operands)

            # so large that the sum is rounded to a whole number k, which stands in its last bits
            large = constant(1.5 * 2.0**mantissa)
            factor = constant(1 / math.log(2))
            if series:
                k = apply("rint", builder.fmul(args[0], factor))
                shifted = builder.fadd(k, large)
            else:
                shifted = apply("fma", args[0], factor, large)
                k = builder.fsub(shifted, large)
            # log(2) in two pieces: the first has few bits, so that k times it is exact
            coarse = 0.693359375 if bits == 32 else 0.6931471803691238
            fine = -2.12194440054690583e-4 if bits == 32 else 1.9082149292705877e-10
            r = apply("fma", k, constant(-coarse), args[0])
            r = apply("fma", k, constant(-fine), r)
            value = constant(coefficients[-1])
            for coefficient in reversed(coefficients[:-1]):
                value = apply("fma", value, r, constant(coefficient))
            power = builder.shl(builder.bitcast(shifted, integer), constant(mantissa, integer))
            value = builder.bitcast(builder.add(builder.bitcast(value, integer), power), vector)
            return builder.select(builder.fcmp_ordered(">=", args[0], constant(lowest)), value, constant(0.0))

        return x(x), generate

    return power


exp = _exponential()
"""`exp(x)`: the exponential of each lane for x <= 80; exactly 0 where it would be subnormal, at -inf, and where x is NaN."""
exp_by_series = _exponential(series=True)
"""`exp` by Taylor's series, a little slower: marginals of trees are the same to the last bit from version to version."""
