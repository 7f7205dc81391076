"""Messages about compilation on the logger `pullback`: one when it starts, and one per slow kernel.

`PULLBACK_QUIET=1` silences it, and so does `logging.getLogger("pullback").setLevel(logging.ERROR)`.
"""

from __future__ import annotations

import logging
import os

from pullback.inference._numba.folder import cache_folder

_log = logging.getLogger("pullback")
_WORTH_A_LINE = 1.0  # seconds
_said: set[str] = set()


def started(name: str) -> None:
    """A kernel is about to be compiled."""
    if _first("compiling"):
        where = cache_folder()
        cached = "in every process" if where is None else f"once per machine; the cache is {where}"
        _warn("compiling %s: the first call of each operation takes a few seconds, %s (PULLBACK_QUIET=1 silences this)",
              name, cached)  # fmt: skip
        if where is None:
            _warn("there is no home folder to cache compiled kernels in: set PULLBACK_CACHE to a writable folder")


def finished(name: str, seconds: float) -> None:
    """A kernel has been compiled."""
    if seconds >= _WORTH_A_LINE:
        _warn("compiled %s in %.1f s", name, seconds)


def not_kept(error: Exception) -> None:
    """A compiled kernel could not be written to the cache."""
    if _first("not kept"):
        _warn("compiled kernels cannot be cached in %s (%s), so every process compiles them: set PULLBACK_CACHE to a "
              "writable folder", cache_folder(), getattr(error, "strerror", None) or repr(error))  # fmt: skip


def _first(what: str) -> bool:
    if what in _said:
        return False
    _said.add(what)
    return True


def _warn(message: str, *args: object) -> None:
    if not os.environ.get("PULLBACK_QUIET"):
        _log.warning(message, *args)
