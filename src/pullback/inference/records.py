"""Records for compiled code: many arrays behind one pointer.

A tuple of twenty arrays is two hundred numbers, which compiled code copies wherever the tuple goes: that takes long to compile
and to call. A record is a row of int64 in a table: of each array its address and its shape, of a number the number.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from llvmlite import ir
from numba.core import types
from numba.core.typing.templates import AttributeTemplate
from numba.extending import infer_getattr, intrinsic, lower_getattr_generic, models, register_model
from numba.np.arrayobj import make_array, populate_array
from numba.np.numpy_support import from_dtype
from torch import Tensor

_LINE = 64  # bytes: arrays begin at a cache line

Shapes = dict[str, tuple[int, ...]]


class Record:
    """A kind of record, in Python.

    Args:
        name: of its type.
        fields: an array is a NumPy dtype and a number of dimensions, C-contiguous; a number is `int`; and a `Record` may be
            a part of another.
    """

    def __init__(self, name: str, **fields: Any) -> None:
        self.fields, self.words, places = fields, 0, {}
        for field, kind in fields.items():
            places[field] = self.words, _numba_type(kind)
            self.words += kind.words if isinstance(kind, Record) else 1 if kind is int else 1 + kind[1]
        self.type = _Type(name, places)
        self.reader = _reader(self.type, self.words)
        """In compiled code `reader(table, i)` is the i-th record of a table."""

    def table(self, values: dict[str, Any]) -> np.ndarray:
        """One record, of arrays or tensors and numbers; whoever makes it keeps the arrays alive."""
        row: list[int] = []
        for field, kind in self.fields.items():
            value = values[field]
            row += [int(value)] if kind is int else _described(field, value, *kind)
        return np.array(row, np.int64)

    def put(self, table: np.ndarray, field: str, value: np.ndarray | Tensor) -> None:
        """Another array in a table of one record."""
        at, (dtype, dims) = self.type.places[field][0], self.fields[field]
        table[at : at + 1 + dims] = _described(field, value, dtype, dims)

    def leaves(self, inside: str = "") -> list[tuple[str, np.dtype, int]]:
        """The arrays in order: their names, dtypes and numbers of dimensions."""
        found = []
        for field, kind in self.fields.items():
            here = [(inside + field, np.dtype(kind[0]), kind[1])] if isinstance(kind, tuple) else []
            found += kind.leaves(f"{inside}{field}.") if isinstance(kind, Record) else here
        return found


class Memory:
    """Several records with arrays of their own, all in one piece of memory.

    Args:
        record: of which kind: of arrays only.
        count: how many.
        shapes: of each array, by name, `inverse.base` for a field of the record `inverse`.

    Attributes:
        table: `[count, words]`.
    """

    def __init__(self, record: Record, count: int, shapes: Shapes) -> None:
        row, columns, offsets, size = _plan(record, tuple(shapes.items()))
        self.count, self._shapes, self._offsets, self._size = count, shapes, offsets, size
        memory = np.empty(count * size + _LINE, np.uint8)
        start = -memory.ctypes.data % _LINE
        self._memory = memory[start : start + count * size]
        self.table = row[None].repeat(count, 0)
        self.table[:, columns] += memory.ctypes.data + start + size * np.arange(count)[:, None]

    def array(self, name: str) -> np.ndarray:
        """An array of all records, `[count, *shape]`."""
        dtype, offset = self._offsets[name]
        shape = self._shapes[name]
        flat = self._memory.reshape(self.count, self._size)[:, offset : offset + dtype.itemsize * math.prod(shape)]
        return flat.view(dtype).reshape(self.count, *shape)

    def enlarged(self, record: Record, shapes: Shapes) -> Memory:
        """The same in arrays that are larger."""
        new = Memory(record, self.count, shapes)
        for name in self._shapes:
            old = self.array(name)
            new.array(name)[tuple(map(slice, old.shape))] = old
        return new


@functools.lru_cache(maxsize=64)
def _plan(record: Record, shapes: tuple[tuple[str, tuple[int, ...]], ...]) -> tuple[Any, ...]:
    """A row with offsets for addresses, the columns of those, the offset of each array, and the bytes of all."""
    row, columns, offsets, size = [], [], {}, 0
    named = dict(shapes)
    for name, dtype, dims in record.leaves():
        assert len(named[name]) == dims, name
        columns.append(len(row))
        row += [size, *named[name]]
        offsets[name] = dtype, size
        size += -(-dtype.itemsize * math.prod(named[name]) // _LINE) * _LINE
    return np.array(row, np.int64), columns, offsets, size


def _described(field: str, value: Any, dtype: Any, dims: int) -> list[int]:
    """An array's address and shape."""
    if isinstance(value, Tensor):
        fits = value.is_contiguous() and value.dtype == _torch_dtype(dtype) and value.dim() == dims
        address = value.data_ptr()
    else:
        fits = value.flags.c_contiguous and value.dtype == dtype and value.ndim == dims
        address = value.ctypes.data
    if not fits:  # compiled code would read something else
        raise TypeError(f"{field} is {value.dtype} {list(value.shape)}; a contiguous {np.dtype(dtype)} [{dims} axes] is needed")
    return [address, *value.shape]


@functools.cache
def _torch_dtype(dtype: Any) -> torch.dtype:
    return torch.from_numpy(np.empty(0, dtype)).dtype


class _Type(types.Type):
    """A record, in compiled code: a pointer to its row."""

    def __init__(self, name: str, places: dict[str, tuple[int, Any]]) -> None:
        self.places = places
        super().__init__(f"pullback.{name}({', '.join(f'{field}: {kind}' for field, (_, kind) in places.items())})")


def _numba_type(kind: Any) -> Any:
    if isinstance(kind, Record):
        return kind.type
    return types.int64 if kind is int else types.Array(from_dtype(np.dtype(kind[0])), kind[1], "C")


@register_model(_Type)
class _Model(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, ir.IntType(64).as_pointer())


@infer_getattr
class _Fields(AttributeTemplate):
    key = _Type

    def generic_resolve(self, record: Any, field: str) -> Any:
        return record.places[field][1] if field in record.places else None


@lower_getattr_generic(_Type)
def _field(context: Any, builder: Any, record: Any, row: Any, field: str) -> Any:
    at, kind = record.places[field]

    def word(i: int) -> Any:
        found = builder.load(builder.gep(row, [ir.Constant(ir.IntType(64), at + i)]))
        found.set_metadata("invariant.load", builder.module.add_metadata([]))  # a kernel does not change its tables
        return found

    if isinstance(kind, _Type):
        return builder.gep(row, [ir.Constant(ir.IntType(64), at)])
    if not isinstance(kind, types.Array):
        return word(0)
    element = context.get_data_type(kind.dtype)
    size = context.get_constant(types.intp, context.get_abi_sizeof(element))
    shape = [word(1 + axis) for axis in range(kind.ndim)]
    strides = [size]
    for length in reversed(shape[1:]):
        strides.insert(0, builder.mul(strides[0], length))
    array = make_array(kind)(context, builder)
    populate_array(
        array, data=builder.inttoptr(word(0), element.as_pointer()), shape=shape, strides=strides, itemsize=size, meminfo=None
    )
    return array._getvalue()


def _reader(record: _Type, words: int) -> Callable[..., Any]:
    @intrinsic
    def read(typingctx, table, i):  # type: ignore[no-untyped-def]
        def generate(context, builder, signature, args):  # type: ignore[no-untyped-def]
            data = make_array(signature.args[0])(context, builder, args[0]).data
            return builder.gep(data, [builder.mul(args[1], ir.Constant(ir.IntType(64), words))])

        return record(table, types.int64), generate

    return read
