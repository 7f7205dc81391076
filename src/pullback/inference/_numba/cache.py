"""A cache for Numba's dispatchers that sees every edit, survives damaged files, and never makes a call fail.

Numba's own cache knows the file of a kernel but not the files of the functions it calls, raises where a file is damaged or the
disk is full, and needs a folder that can be written. Here the stamp of an entry is the content of the kernel's file
and of all it imports from `pullback.inference`. What cannot be read is compiled anew; what cannot be written is not kept.
"""

from __future__ import annotations

import functools
import hashlib
import logging
import pickle
import platform
import sys
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
from numba.core import caching
from numba.core.serialize import dumps

from pullback.inference._numba import messages
from pullback.inference._numba.folder import cache_folder, stamp
from pullback.inference._numba.turns import Turn

_log = logging.getLogger("pullback")
_DIGEST = hashlib.sha256().digest_size


class _Anywhere(caching._CacheLocator):  # Numba asks for a locator, which nothing here uses
    def get_cache_path(self) -> str:
        return ""

    def get_source_stamp(self) -> str:
        return ""

    def get_disambiguator(self) -> str:
        return "pullback"

    @classmethod
    def from_function(cls, py_func: Callable[..., Any], py_file: str) -> _Anywhere:
        return cls()


class _Impl(caching.CompileResultCacheImpl):
    _locator_classes = [_Anywhere]  # type: ignore[list-item]  # noqa: RUF012


class Cache(caching.FunctionCache):
    """The cache of one kernel: a file for each of its signatures."""

    _impl_class = _Impl

    def __init__(self, py_func: Callable[..., Any]) -> None:
        super().__init__(py_func)
        self._kernel = f"{py_func.__module__}.{py_func.__qualname__}".removeprefix("pullback.inference.")
        self._source = Path(py_func.__code__.co_filename)
        self._started, self._turn = time.perf_counter(), Turn()

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The compiled kernel of a signature; None if it has to be compiled."""
        found = self._found(sig, target_context)
        if found is None:
            self._turn.take(self._path(sig, target_context.codegen()))
            found = self._found(sig, target_context)
        if found is not None:
            self._turn.end()
        else:
            self._started = time.perf_counter()
            messages.started(self._kernel)
        return found

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep a compiled kernel, if that is possible."""
        messages.finished(self._kernel, time.perf_counter() - self._started)
        try:
            self._save(sig, data)
        except Exception as error:
            messages.not_kept(error)
        finally:
            self._turn.end()

    def _found(self, sig: Any, target_context: Any) -> Any:
        try:
            return self._load(sig, target_context)
        except Exception as error:  # whatever a file of another machine, or another Numba, leads to
            _log.info("a cached %s cannot be used and is compiled anew: %r", self._kernel, error)
            return None

    def _load(self, sig: Any, target_context: Any) -> Any:
        target_context.refresh()
        path = self._path(sig, target_context.codegen())
        payload = None if path is None else _read(path, stamp(self._source))
        return None if payload is None else self._impl.rebuild(target_context, pickle.loads(payload))

    def _save(self, sig: Any, data: Any) -> None:
        path = self._path(sig, data.codegen)
        if path is not None and self._impl.check_cachable(data):
            _write(path, stamp(self._source), dumps(self._impl.reduce(data)))

    def _path(self, sig: Any, codegen: Any) -> Path | None:
        """The file of a signature on this kind of machine."""
        folder = cache_folder()
        if folder is None:
            return None
        versions = numba.__version__, sys.version, platform.platform()
        key = hashlib.sha256(repr((self._index_key(sig, codegen), versions)).encode()).hexdigest()[:24]
        return folder / f"{self._kernel}-{key}.kernel"


@functools.cache
def works() -> bool:
    """Whether this Numba has the private parts that `Cache` builds on; what they do with a kernel shows when there is one."""
    try:
        cache = Cache(works.__wrapped__)
        parts = cache._impl.rebuild, cache._impl.reduce, cache._impl.check_cachable, cache._index_key
        return all(map(callable, parts)) and hasattr(numba.njit(works.__wrapped__), "_cache")
    except Exception as error:
        _log.warning(
            "this Numba (%s) does not fit pullback's cache of kernels, which are compiled in every process: %r",
            numba.__version__,
            error,
        )
        return False


def attach(dispatcher: Any, function: Callable[..., Any]) -> None:
    """Give a dispatcher its cache."""
    dispatcher._cache = Cache(function)


def _read(path: Path, stamp: bytes) -> bytes | None:
    """Returns the bytes written with this stamp; None if there are none, or others, or they are damaged."""
    try:
        content = path.read_bytes()
    except OSError:
        return None
    digest, payload = content[:_DIGEST], content[_DIGEST:]
    return payload if digest == hashlib.sha256(stamp + payload).digest() else None


def _write(path: Path, stamp: bytes, payload: bytes) -> None:
    """Write an entry, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f"{path.name}.{uuid.uuid4().hex}.tmp")
    try:
        temporary.write_bytes(hashlib.sha256(stamp + payload).digest() + payload)
        temporary.replace(path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
