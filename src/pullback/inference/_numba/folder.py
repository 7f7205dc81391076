"""Where compiled kernels are kept, and what they depend on."""

from __future__ import annotations

import ast
import functools
import hashlib
import os
from pathlib import Path

_sources = Path(__file__).parent.parent


def cache_folder() -> Path | None:
    """`$PULLBACK_CACHE/pullback`, else that of the user's cache folder; None if there is no such folder to think of.

    Nothing is created: a warm cache may be read-only, and a cold one is made when there is something to keep.
    """
    base = _base()
    install = hashlib.sha256(str(_sources).encode()).hexdigest()[:12]
    return None if base is None else base / "pullback" / install


def _base() -> Path | None:
    chosen = os.environ.get("PULLBACK_CACHE")
    if chosen:
        return Path(os.path.abspath(os.path.expanduser(chosen)))
    xdg = Path(os.environ.get("XDG_CACHE_HOME") or "")
    if xdg.is_absolute():
        return xdg
    home = Path(os.path.expanduser("~")) if os.environ.get("HOME", "~") else Path()
    # without a home, or with one that is the root of the file system, there is no place that is ours
    return home / ".cache" if home.is_absolute() and home != Path(home.anchor) else None


@functools.cache
def stamp(path: Path) -> bytes:
    """A digest of a file and of what it imports from this package, directly or not."""
    todo, seen = [path], set[Path]()
    while todo:
        source = todo.pop()
        if source not in seen:
            seen.add(source)
            todo += _imported(source)
    return hashlib.sha256(b"".join(source.read_bytes() for source in sorted(seen))).digest()


@functools.cache
def _imported(path: Path) -> list[Path]:
    found = []
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("pullback.inference"):
            module = _sources.joinpath(*(node.module or "").split(".")[2:])
            found += [module.with_suffix(".py"), *(module / f"{name.name}.py" for name in node.names)]
    return [file for file in found if file.is_file()]
