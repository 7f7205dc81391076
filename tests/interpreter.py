"""Triton's interpreter as the tests need it: faster, and with a GPU's results where it has others."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch

ran: set[str] = set()
"""The kernels, and the functions that they call, that have run since `record`, with their modules in `pullback.inference`."""


def poison(on: bool) -> None:
    """Fill memory that nobody has written with NaN, or the largest integer."""
    torch.use_deterministic_algorithms(on, warn_only=True)
    torch.utils.deterministic.fill_uninitialized_memory = True


def patch() -> None:
    """Without what makes it many times slower: checks of every integer operation for overflow, conversions of operands that
    need none, and patching all of `triton.language` anew at every launch, and at every call of one kernel by another (in a
    process that interprets kernels it stays patched).

    Before Triton 3.7 it made numbers of arrays of one element by `int`, which NumPy 2.4 refuses. Before 3.9 the larger of NaN
    and a number was NaN, which on a GPU is the number. From 3.9 on it wants masks of bool, which it does not always make.
    """
    from triton.runtime import interpreter

    builder = interpreter.interpreter_builder
    builder.options = dataclasses.replace(builder.options, sanitize_overflow=False)
    patch_tensor, patch_language, type_of = interpreter._patch_lang_tensor, interpreter._patch_lang, interpreter._get_np_dtype
    patched: set[str] = set()
    unchanged = SimpleNamespace(restore=lambda: None)
    known: dict[str, np.dtype] = {}

    def patch_tensor_for_numpy(tensor, scope):
        patch_tensor(tensor, scope)
        scope.set_attr(tensor, "__index__", lambda self: self.handle.data.item())

    def patch_once(function):
        module = function.__module__
        if module not in patched:
            patch_language(function)
            patched.add(module)
        return unchanged

    def call(self, *args, **kwargs):
        if self.fn.__module__.startswith("triton."):
            patch_once(self.fn)
        return self.rewrite()(*args, **kwargs)

    def known_type(kind):
        name = kind.scalar.name
        if name not in known:
            known[name] = type_of(kind)
        return known[name]

    def with_mask_of_bool(access, place):
        def masked(self, *args):
            mask = interpreter.TensorHandle(args[place].data.astype(bool, copy=False), args[place].dtype)
            return access(self, *args[:place], mask, *args[place + 1 :])

        return masked

    def without_nan(self, values, val_reduce_op, idx_reduce_op=None):
        return min_max(self, values, *(skipping.get(reduce, reduce) for reduce in (val_reduce_op, idx_reduce_op)))

    min_max, interpreter.ReduceOps.min_max = interpreter.ReduceOps.min_max, without_nan
    skipping = {np.max: np.nanmax, np.min: np.nanmin, np.argmax: np.nanargmax, np.argmin: np.nanargmin}
    kind = type(builder)
    kind.create_maxnumf = lambda self, a, b: self.binary_op(a, b, np.fmax)
    kind.create_minnumf = lambda self, a, b: self.binary_op(a, b, np.fmin)
    kind.create_masked_load = with_mask_of_bool(kind.create_masked_load, 1)
    kind.create_masked_store = with_mask_of_bool(kind.create_masked_store, 2)
    interpreter._patch_lang_tensor, interpreter._patch_lang = patch_tensor_for_numpy, patch_once
    interpreter._get_np_dtype = known_type
    interpreter.InterpretedFunction.__call__ = call
    interpreter.ReduceOps.generic_reduce = _reduce_in_pairs
    _convert_less(interpreter)


def _reduce_in_pairs(self: Any, input: Any) -> list[Any]:
    """By a function of Triton's: neighbours at once, as on a GPU, instead of one element after the other."""
    whole = self.axis is None
    tensors, axis = self.unravel(input, self.axis)
    shape, found = input[0].handle.data.shape, [tensor.handle.data for tensor in tensors]
    while found[0].shape[axis] > 1:
        halves = [np.split(x.reshape(*x.shape[:axis], -1, 2, *x.shape[axis + 1 :]), 2, axis + 1) for x in found]
        sides = [
            [self.to_tensor(half[side].squeeze(axis + 1), tensor.dtype) for half, tensor in zip(halves, tensors, strict=True)]
            for side in (0, 1)
        ]
        combined = self.combine_fn.fn(*sides[0], *sides[1])
        combined = combined if isinstance(combined, tuple) else (combined,)
        found = [x.handle.data.astype(old.dtype, copy=False) for x, old in zip(combined, found, strict=True)]
    if whole:
        found = [x.reshape([1] * len(shape)) if self.keep_dims else x.item() for x in found]
    elif not self.keep_dims:
        found = [x.squeeze(axis) for x in found]
    return [self.to_tensor(x, tensor.dtype) for x, tensor in zip(found, tensors, strict=True)]


def _convert_less(interpreter: Any) -> None:
    """What an operation makes of its operands follows from their types, and is found out once for each pair of types. There
    is one object for each type of a block, whose shape is made once. Numbers of a block's kind stay as they are.
    """
    semantic, tl = interpreter.TritonSemantic, interpreter.tl
    convert, spread, make = semantic.binary_op_type_checking_impl, semantic.broadcast_impl_value, tl.tensor.__init__
    kinds = {"int32": (int,), "int64": (int,), "fp32": (int, float), "fp64": (int, float)}
    converted: dict[Any, tuple[Any, Any]] = {}
    spread_out: dict[Any, tuple[Any, Any]] = {}

    def convert_others(self, a, b, *options, **names):
        if isinstance(a, tl.tensor):
            if isinstance(b, tl.tensor):
                if a.type is b.type and a.dtype.name in kinds:
                    return a, b
                key = a.type.name, b.type.name, options, *names.items()
                if key in converted:
                    return tuple(map(of_type, (self, self), (a, b), converted[key]))
                found = convert(self, a, b, *options, **names)
                converted[key] = found[0].type, found[1].type
                return found
            if is_number(b, a.dtype, options, names):
                return a, self.scalar_constant(b, a.dtype)
        elif isinstance(b, tl.tensor) and is_number(a, b.dtype, options, names):
            return of_type(self, self.scalar_constant(a, b.dtype), b.type), b
        return convert(self, a, b, *options, **names)

    def is_number(x, kind, options, names):
        return type(x) in kinds.get(kind.name, ()) and len(options) < 3 and not names and (type(x) is float or abs(x) < 2**31)

    def of_type(self, x, kind):
        """An operand whose elements NumPy spreads over the block."""
        x = x if x.dtype.name == kind.scalar.name else self.cast(x, kind.scalar)
        return x if x.type is kind else tl.tensor(x.handle, kind)

    def spread_others(self, a, b):
        if a.type is b.type:
            return a, b
        key = a.type.name, b.type.name
        if key not in spread_out:
            found = spread(self, a, b)
            spread_out[key] = found[0].type, found[1].type
            return found
        return tuple(map(in_block, (a, b), spread_out[key]))

    def in_block(x, kind):
        """A tensor with an element for each of a block."""
        if x.type is kind or not kind.is_block() or x.handle.data.shape == kind.shape:
            return x if x.type is kind else tl.tensor(x.handle, kind)
        whole = np.empty(kind.shape, x.handle.data.dtype)
        whole[...] = x.handle.data
        return tl.tensor(interpreter.TensorHandle(whole, x.handle.dtype), kind)

    def make_of_known_type(self, handle, type):
        known = vars(type).get("_shape_and_number")
        if known is None:
            make(self, handle, type)
            type._shape_and_number = self.shape, self.numel
        else:
            self.handle, self.type, self.dtype = handle, type, type.scalar
            self.shape, self.numel = known

    def with_elements(self, kind):
        known = vars(self).setdefault("_with_elements", {})
        if kind.name not in known:
            known[kind.name] = with_new_elements(self, kind)
        return known[kind.name]

    def type_of_block(kind, element, shape):
        sizes = tuple([getattr(size, "value", size) for size in shape])
        key = element.name, getattr(element, "address_space", None), sizes
        if key not in blocks:
            blocks[key] = object.__new__(kind)
            make_type(blocks[key], element, list(sizes))
        return blocks[key]

    blocks: dict[Any, Any] = {}
    make_type, tl.block_type.__init__ = tl.block_type.__init__, lambda self, *args: None
    tl.block_type.__new__ = type_of_block
    for kind in (tl.dtype, tl.block_type, tl.pointer_type):
        kind.__eq__ = lambda self, other, equal=kind.__eq__: self is other or equal(self, other)
    interpreter.TensorHandle.__post_init__ = lambda self: None  # which looks whether NumPy's elements are too large
    with_new_elements, tl.block_type.with_element_ty = tl.block_type.with_element_ty, with_elements
    unwrap, plain = (
        tl.core._unwrap_if_constexpr,
        {tl.tensor, tl.dtype, tl.block_type, tl.pointer_type, int, float, bool, str, type(None)},
    )

    def patch_function(owner, name, function, builder, scope):
        own = getattr(function, "__wrapped__", function)  # without a look whether it has what it is given here

        def with_semantic(*args, **options):
            options["_semantic"] = interpreter.interpreter_semantic
            return own(*args, **options)

        scope.set_attr(owner, name, with_semantic)

    semantic.binary_op_type_checking_impl, semantic.broadcast_impl_value = convert_others, spread_others
    tl.tensor.__init__ = make_of_known_type
    tl.core._unwrap_if_constexpr = lambda x: x if type(x) in plain else unwrap(x)
    interpreter._patch_attr = patch_function


def record() -> None:
    """Note in `ran` what runs from now on, after `patch`."""
    from triton.runtime import interpreter

    from pullback.inference._triton import launcher

    start, call = launcher.start, interpreter.InterpretedFunction.__call__

    def started(kernel: Any, *args: Any) -> None:
        _note(kernel)
        start(kernel, *args)

    def called(self: Any, *args: Any, **kwargs: Any) -> Any:
        _note(self)
        return call(self, *args, **kwargs)

    launcher.start, interpreter.InterpretedFunction.__call__ = started, called


def _note(kernel: Any) -> None:
    module = kernel.fn.__module__
    if module.startswith("pullback.inference."):
        ran.add(f"{module.removeprefix('pullback.inference.')}.{kernel.fn.__name__}")


def early() -> None:
    """Let kernels for large inputs serve for small ones, in several tiles; before anything has run."""
    from pullback.inference.chain import cuda as chain
    from pullback.inference.engine.hypergraph import cuda as hypergraph
    from pullback.inference.sparsemap import cuda as sparsemap

    chain.ONE_TILE, chain._tiles = 2, lambda width: {"ROWS": 2, "num_warps": 1}
    hypergraph.ONE_TILE, hypergraph._chunk = 0, lambda edges, name: {"NODES": 4, name: 4}
    sparsemap._SHORT = sparsemap._MEDIUM = 0
