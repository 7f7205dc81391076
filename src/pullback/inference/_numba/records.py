"""Records for compiled code: many arrays behind one pointer.

A tuple of twenty arrays is two hundred numbers, which compiled code copies wherever the tuple goes: that takes long to compile
and to call. A record is a row of int64 in a table: of each array its address and its shape, of a number the number.
"""

from __future__ import annotations

import itertools
import math
import operator
import threading
from collections.abc import Callable, Mapping
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
_KEPT = 1 << 26  # bytes of memory that a thread keeps, of which only what was used is real
_own = threading.local()

_shape, _dtype = operator.attrgetter("shape"), operator.attrgetter("dtype")
_address, _is_dense = Tensor.data_ptr, Tensor.is_contiguous

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
        self._kinds = {
            field: (torch.from_numpy(np.empty(0, kind[0])).dtype, kind[1])
            for field, kind in fields.items()
            if isinstance(kind, tuple)
        }
        self._dtypes, self._dims = [dtype for dtype, _ in self._kinds.values()], [dims for _, dims in self._kinds.values()]
        self._others = [field for field in fields if field not in self._kinds]
        words = [places[field][0] for field in self._kinds]
        words += [places[field][0] + 1 + axis for field, (_, dims) in self._kinds.items() for axis in range(dims)]
        words += [places[field][0] + i for field in self._others for i in range(getattr(fields[field], "words", 1))]
        self._order = np.argsort(words)
        self.type = _Type(name, places)
        self.reader = _reader(self.type, self.words)
        """In compiled code `reader(table, i)` is the i-th record of a table."""

    def table(self, values: Mapping[str, Any]) -> np.ndarray:
        """One record, of tensors on the CPU, numbers and other tables; whoever makes it keeps the tensors alive."""
        arrays = list(map(values.__getitem__, self._kinds))  # loops in C, as there are many
        shapes = list(map(_shape, arrays))
        if list(map(_dtype, arrays)) != self._dtypes or list(map(len, shapes)) != self._dims or not all(map(_is_dense, arrays)):
            for (field, kind), x in zip(self._kinds.items(), arrays, strict=True):
                self._described(field, x, *kind)
        words: list[int] = [*map(_address, arrays), *itertools.chain.from_iterable(shapes)]
        for field in self._others:
            value = values[field]
            words += value if type(value) is list else [int(value)]
        return np.array(words, np.int64)[self._order]

    def put(self, table: np.ndarray, field: str, value: Tensor) -> None:
        """Another array in a table of one record."""
        at, row = self.type.places[field][0], self._described(field, value, *self._kinds[field])
        table[at : at + len(row)] = row

    @staticmethod
    def _described(field: str, x: Tensor, dtype: torch.dtype, dims: int) -> tuple[int, ...]:
        """An array's address and shape, or an error where compiled code would read something else."""
        if x.dtype is not dtype or x.dim() != dims or not x.is_contiguous():
            wanted = f"a contiguous {dtype} of {dims} dimensions"
            raise TypeError(f"{field} is {x.dtype} {list(x.shape)}; compiled code needs {wanted}")
        return x.data_ptr(), *x.shape

    def leaves(self, inside: str = "") -> list[tuple[str, np.dtype, int]]:
        """The arrays in order: their names, dtypes and numbers of dimensions."""
        found: list[tuple[str, np.dtype, int]] = []
        for field, kind in self.fields.items():
            here = [(inside + field, np.dtype(kind[0]), kind[1])] if isinstance(kind, tuple) else []
            found += kind.leaves(f"{inside}{field}.") if isinstance(kind, Record) else here
        return found


class Arrangement:
    """Where the arrays of a record lie in its memory.

    Args:
        record: of which kind: of arrays only.
        shapes: of each array, by name, `inverse.base` for a field of the record `inverse`.
        zeros: how many of the first arrays begin as zeros.
    """

    def __init__(self, record: Record, shapes: Shapes, zeros: int = 0) -> None:
        self.arrays: dict[str, tuple[np.dtype, tuple[int, ...], int]] = {}
        self.size = self.cleared = 0
        row: list[int] = []
        is_address: list[int] = []
        for name, dtype, dims in record.leaves():
            shape = shapes[name]
            assert len(shape) == dims, name
            self.arrays[name] = dtype, shape, self.size
            row += [self.size, *shape]
            is_address += [1, *[0] * dims]
            self.size += -(-dtype.itemsize * math.prod(shape) // _LINE) * _LINE
            if len(self.arrays) <= zeros:
                self.cleared = self.size
        self.row, self.is_address = np.array(row, np.int64), np.array(is_address, np.int64)


class Memory:
    """Several records with arrays of their own, all in one piece of memory.

    Args:
        plan: of each.
        count: how many.

    Attributes:
        table: `[count, words]`.
    """

    def __init__(self, plan: Arrangement, count: int) -> None:
        self._plan, self._count = plan, count
        # PyTorch's, which begins at a cache line; NumPy asks for huge pages, each of which is cleared as a whole
        memory = torch.empty((count, plan.size), dtype=torch.uint8, device="cpu")
        self._memory = memory.numpy()
        self._memory[:, : plan.cleared] = 0
        self.table = plan.row + (memory.data_ptr() + plan.size * np.arange(count))[:, None] * plan.is_address

    @staticmethod
    def kept(plan: Arrangement, count: int) -> Memory:
        """Returns the memory that this thread kept for the same plan, unchanged and perhaps with more records, or a new one."""
        kept: dict[Arrangement, Memory] = _own.__dict__.setdefault("memory", {})
        found = kept.pop(plan, None)  # a user's argmax may need such memory too
        return Memory(plan, count) if found is None or found._count < count else found

    def keep(self) -> None:
        """Keep it for the next call of this thread, which spares the page faults of fresh memory.

        A search and its backward pass have a plan each, so that some are kept: the last ones.
        """
        kept: dict[Arrangement, Memory] = _own.__dict__.setdefault("memory", {})
        kept[self._plan], size = self, 0
        for memory in kept.values():
            size += memory._memory.nbytes
        while size > _KEPT:
            size -= kept.pop(next(iter(kept)))._memory.nbytes

    def array(self, name: str) -> np.ndarray:
        """An array of all records, `[count, *shape]`."""
        dtype, shape, offset = self._plan.arrays[name]
        flat = self._memory[:, offset : offset + dtype.itemsize * math.prod(shape)]
        return flat.view(dtype).reshape(self._count, *shape)

    def enlarged(self, plan: Arrangement, used: Mapping[str, int]) -> Memory:
        """The same in larger arrays; `used` is the number of first entries in use, for arrays that are not full."""
        new = Memory(plan, self._count)
        for name in plan.arrays:
            old = self.array(name)[:, : used.get(name)]
            new.array(name)[tuple(map(slice, old.shape))] = old
        return new


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

    def generic_resolve(self, value: Any, attr: str) -> Any:  # type: ignore[override]
        return value.places[attr][1] if attr in value.places else None


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
