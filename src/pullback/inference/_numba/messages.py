"""What a user hears about compilation, on the logger `pullback`: once that it happens, and how long each kernel took.

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
        kept = "in every process" if where is None else f"once per machine, and are kept in {where}"
        _warn("compiling %s: the first calls of each operation take some seconds, %s (PULLBACK_QUIET=1: no messages)",
              name, kept)  # fmt: skip
        if where is None:
            _warn("there is no home folder for compiled kernels: set PULLBACK_CACHE to a folder that can be written")


def finished(name: str, seconds: float) -> None:
    """A kernel has been compiled."""
    if seconds >= _WORTH_A_LINE:
        _warn("compiled %s in %.1f s", name, seconds)


def not_kept(error: Exception) -> None:
    """A compiled kernel could not be written to the cache."""
    if _first("not kept"):
        _warn("compiled kernels cannot be kept in %s (%s), and are compiled in every process: set PULLBACK_CACHE to a "
              "folder that can be written", cache_folder(), getattr(error, "strerror", None) or repr(error))  # fmt: skip


def _first(what: str) -> bool:
    if what in _said:
        return False
    _said.add(what)
    return True


def _warn(message: str, *args: object) -> None:
    if not os.environ.get("PULLBACK_QUIET"):
        _log.warning(message, *args)
