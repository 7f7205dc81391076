"""Compiling kernels with Numba: lazily, once per machine. `_numba/` is the cache; docs/first-call.md is about it.

Where Numba does not work (`usable`), the backend of the CPU is the reference, and the few kernels that it needs, which have
nothing but loops over NumPy's arrays, run as the Python that they are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pullback.inference._numba import usable

INNER: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}  # Python calls kernels only
if usable.works():
    import numba
    from llvmlite import ir
    from numba.core import cgutils, sigutils, types
    from numba.core.ccallback import CFunc
    from numba.extending import intrinsic

    from pullback.inference._numba import cache, linked

    INNER |= linked.options()


def kernel(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    """An entry point: compiled at its first call, cached, run without the GIL."""
    dispatcher: Any = _njit(nogil=True, no_cfunc_wrapper=True, **options)(function)
    if usable.works() and cache.works():
        cache.attach(dispatcher, function)
    return dispatcher


def no_alloc_kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """An entry point that makes no arrays: without reference counting, which takes long to compile and to run."""
    return kernel(function, _nrt=False)


def inner(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that kernels call, compiled with each of them. Python cannot call it: there is no code for that."""
    return _njit(**INNER)(function)


def subroutine(function: Callable[..., Any]) -> Callable[..., Any]:
    """An inner function that makes no arrays: inlined, without reference counting, both of which short loops feel."""
    return _njit(forceinline=True, _nrt=False, **INNER)(function)


def called(function: Callable[..., Any]) -> Callable[..., Any]:
    """An inner function that makes no arrays, without reference counting; LLVM decides where it is inlined."""
    return _njit(_nrt=False, **INNER)(function)


def inline(function: Callable[..., Any]) -> Callable[..., Any]:
    """A small function of a kernel's innermost loops: always inlined, so that its vectors stay in registers."""
    return _njit(forceinline=True, **INNER)(function)


def _njit(**options: Any) -> Callable[..., Any]:
    if not usable.works():
        return lambda function: function
    njit: Any = numba.njit  # its types do not know all options
    return njit(error_model="numpy", boundscheck=False, **options)


def callback(signature: Any, function: Callable[..., Any]) -> Any:
    """A function that kernels call by its address, with `calling(signature)`: compiled now, cached, and apart from them.

    It may call inner functions, and must not raise. Keep the result as long as its `address` is in use.
    """
    options = {"error_model": "numpy", "boundscheck": False}
    compiled: Any = CFunc(function, sigutils.normalize_signature(signature), {}, options)
    if cache.works():
        cache.attach(compiled, function)
    compiled.compile()
    return compiled


def calling(signature: Any) -> Callable[..., Any]:
    """How kernels call a function by its address: `call(address, (argument, ...))`."""

    @intrinsic
    def call(typingctx, address, arguments):  # type: ignore[no-untyped-def]
        def generate(context, builder, own, values):  # type: ignore[no-untyped-def]
            wanted = [context.get_value_type(kind) for kind in signature.args]
            function = ir.FunctionType(context.get_value_type(signature.return_type), wanted).as_pointer()
            pointer = builder.inttoptr(values[0], function)
            given = cgutils.unpack_tuple(builder, values[1])
            casts = zip(given, own.args[1], signature.args, strict=True)
            return builder.call(pointer, [context.cast(builder, *each) for each in casts])

        return signature.return_type(types.int64, arguments), generate

    return call
