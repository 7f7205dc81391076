"""Compiling kernels with Numba: lazily, once for each machine, with a cache that sees every edit.

Numba's own cache knows the file of a kernel but not the files of the functions it calls, and fails where
neither the source folder nor the home folder can be written. Here the stamp of a cached kernel is the content of its
file and of all it imports from `pullback.inference`, the cache lives in the user's cache folder, and without one
kernels are compiled anew in each process.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import logging
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
from numba.core import caching

_log = logging.getLogger("pullback")
_sources = Path(__file__).parent


@functools.cache
def _stamp(path: Path) -> str:
    """A digest of a file and of what it imports from this package, directly or not."""
    todo, seen = [path], set[Path]()
    while todo:
        source = todo.pop()
        if source not in seen:
            seen.add(source)
            todo += _imported(source)
    return hashlib.sha256(b"".join(source.read_bytes() for source in sorted(seen))).hexdigest()


def _imported(path: Path) -> list[Path]:
    found = []
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("pullback.inference"):
            module = _sources.joinpath(*(node.module or "").split(".")[2:])
            found += [module.with_suffix(".py"), *(module / f"{name.name}.py" for name in node.names)]
    return [file for file in found if file.is_file()]


@functools.cache
def cache_folder() -> Path | None:
    """Where compiled kernels are kept: `$PULLBACK_CACHE`, else the user's cache folder; None if not writable."""
    base = os.environ.get("PULLBACK_CACHE") or os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    install = hashlib.sha256(str(_sources).encode()).hexdigest()[:12]
    folder = Path(base) / "pullback" / install
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / f".write-{os.getpid()}"
        probe.touch()
        probe.unlink()
    except OSError:
        return None
    return folder


class _Locator(caching._CacheLocator):
    def __init__(self, py_func: Callable[..., Any], py_file: str) -> None:
        self._file = Path(py_file)

    def get_cache_path(self) -> str:
        return str(cache_folder())

    def get_source_stamp(self) -> str:
        return _stamp(self._file)

    def get_disambiguator(self) -> str:
        return f"{self._file.parent.name}-{self._file.stem}"

    @classmethod
    def from_function(cls, py_func: Callable[..., Any], py_file: str) -> _Locator:
        return cls(py_func, py_file)


class _CacheImpl(caching.CompileResultCacheImpl):
    _locator_classes = [_Locator]  # type: ignore[list-item]  # noqa: RUF012


class _Cache(caching.FunctionCache):
    """Says so when a kernel has to be compiled: it takes seconds, once."""

    _impl_class = _CacheImpl

    def __init__(self, py_func: Callable[..., Any]) -> None:
        super().__init__(py_func)
        self._name = f"{py_func.__module__}.{py_func.__qualname__}"

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        found = super().load_overload(sig, target_context)
        self._started = time.perf_counter()
        if found is None:
            _log.warning("compiling %s; this takes some seconds, once on this machine", self._name)
        return found

    def save_overload(self, sig: Any, data: Any) -> None:
        _log.info("compiled %s in %.1f s", self._name, time.perf_counter() - self._started)
        super().save_overload(sig, data)


class _NoCache(caching.NullCache):
    """Says so when a kernel has to be compiled where it cannot be kept."""

    def __init__(self, py_func: Callable[..., Any]) -> None:
        self._name = f"{py_func.__module__}.{py_func.__qualname__}"

    def load_overload(self, sig: Any, target_context: Any) -> None:
        _log.warning(
            "compiling %s; this takes some seconds in every process, because the cache folder cannot be written: "
            "set PULLBACK_CACHE to one that can",
            self._name,
        )


def kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """An entry point: compiled at its first call, cached, run without the GIL."""
    dispatcher: Any = numba.njit(nogil=True, error_model="numpy", boundscheck=False)(function)
    dispatcher._cache = _NoCache(function) if cache_folder() is None else _Cache(function)
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
