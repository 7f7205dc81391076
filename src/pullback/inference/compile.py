"""Compiling kernels with Numba: lazily, once per machine. `_numba/` is the cache; docs/first-call.md is about it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba

from pullback.inference._numba import cache


def kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """An entry point: compiled at its first call, cached, run without the GIL."""
    dispatcher: Any = numba.njit(nogil=True, error_model="numpy", boundscheck=False)(function)
    if cache.works():
        cache.attach(dispatcher, function)
    return dispatcher


def inner(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that kernels call: compiled with each of them."""
    return numba.njit(error_model="numpy", boundscheck=False)(function)


def lean(function: Callable[..., Any]) -> Callable[..., Any]:
    """An inner function that makes no arrays: inlined, without reference counting, both of which short loops feel."""
    njit: Any = numba.njit  # its types do not know _nrt
    return njit(error_model="numpy", boundscheck=False, forceinline=True, _nrt=False)(function)


def inline(function: Callable[..., Any]) -> Callable[..., Any]:
    """A small function of a kernel's innermost loops: always inlined, so that its vectors stay in registers."""
    return numba.njit(error_model="numpy", boundscheck=False, forceinline=True)(function)
