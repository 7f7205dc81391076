"""Preprocessed corpora: one file each, named by a hash of its sources and options.

Files are written atomically. If several processes need the same corpus, one makes it and the others wait. If the
folder cannot be written, the corpus is read again each time; a damaged file is made again.
"""

from __future__ import annotations

import contextlib
import fcntl
import io
import os
import warnings
from collections.abc import Callable, Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import torch

from pullback_study.corpora.corpus import Corpus, Split
from pullback_study.corpora.layout import SPLITS
from pullback_study.runs import content_hash, write_atomically

FORMAT = 4  # increase it when preprocessing or the layout below changes, so that old files are not used


def default_folder() -> Path:
    """`$PULLBACK_CACHE`, else the user's cache folder."""
    base = os.environ.get("PULLBACK_CACHE") or os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return Path(base) / "pullback" / "corpora"


def cached(folder: Path, task: str, key: dict[str, Any], build: Callable[[], Corpus]) -> Corpus:
    """The corpus of this key from the folder, or built and kept there.

    Args:
        folder: where files are kept.
        task: begins the file's name.
        key: everything that the corpus depends on: checksums of its sources and options, in JSON's types.
        build: makes the corpus.
    """
    path = folder / f"{task}-{content_hash({**key, 'task': task, 'format': FORMAT})}.pt"
    corpus = _read(path)
    if corpus is not None:
        return corpus
    with _lock(path.with_suffix(".lock")):
        corpus = _read(path)
        if corpus is None:
            corpus = build()
            try:
                write_atomically(path, _to_bytes(corpus))
            except OSError as error:
                warnings.warn(f"the {task} corpus is not cached, and is read again each time: {error}", stacklevel=2)
    return corpus


@contextlib.contextmanager
def _lock(path: Path) -> Iterator[None]:
    """Wait for other processes; without a lock if there can be none: each process then does the work itself."""
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            fcntl.flock(stack.enter_context(open(path, "w")), fcntl.LOCK_EX)
        yield


def _to_bytes(corpus: Corpus) -> bytes:
    file = io.BytesIO()
    torch.save({**_fields(corpus), **{name: _fields(split) for name, split in corpus.splits.items()}}, file)
    return file.getvalue()


def _fields(value: Corpus | Split) -> dict[str, Any]:
    return {field.name: getattr(value, field.name) for field in fields(value)}


def _read(path: Path) -> Corpus | None:
    try:
        content = torch.load(path, weights_only=True)
        return Corpus(**{**content, **{name: Split(**content[name]) for name in SPLITS}})
    except Exception:  # missing, or damaged in one of many ways
        return None
