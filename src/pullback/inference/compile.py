"""Compiling kernels with Numba: lazily, once per machine. `_numba/` is the cache; docs/first-call.md is about it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba

from pullback.inference._numba import cache

_UNWRAPPED = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}  # only kernels are called from Python


def kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """An entry point: compiled at its first call, cached, run without the GIL."""
    dispatcher: Any = _njit(nogil=True, no_cfunc_wrapper=True)(function)
    if cache.works():
        cache.attach(dispatcher, function)
    return dispatcher


def inner(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that kernels call, compiled with each of them. Python cannot call it: there is no code for that."""
    return _njit(**_UNWRAPPED)(function)


def lean(function: Callable[..., Any]) -> Callable[..., Any]:
    """An inner function that makes no arrays: inlined, without reference counting, both of which short loops feel."""
    return _njit(forceinline=True, _nrt=False, **_UNWRAPPED)(function)


def inline(function: Callable[..., Any]) -> Callable[..., Any]:
    """A small function of a kernel's innermost loops: always inlined, so that its vectors stay in registers."""
    return _njit(forceinline=True, **_UNWRAPPED)(function)


def _njit(**options: Any) -> Callable[..., Any]:
    njit: Any = numba.njit  # its types do not know all options
    return njit(error_model="numpy", boundscheck=False, **options)
