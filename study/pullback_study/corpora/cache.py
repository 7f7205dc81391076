"""Corpora that were preprocessed once: an uncompressed `.npz` file each, named by what went into it.

A file is there complete or not at all. Of several processes that need the same corpus one makes it and the
others wait. A folder that cannot be written costs time, not the run; a damaged file is made again.
"""

from __future__ import annotations

import contextlib
import fcntl
import io
import json
import os
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

from pullback_study.corpora.corpus import Corpus, Split
from pullback_study.corpora.files import DAMAGED_NPZ
from pullback_study.runs import content_hash, write_atomically

FORMAT = 3  # goes up when preprocessing or the layout below changes, so that old files are not used


def default_folder() -> Path:
    """`$PULLBACK_CACHE`, else the user's cache folder."""
    base = os.environ.get("PULLBACK_CACHE") or os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return Path(base) / "pullback" / "corpora"


def cached(folder: Path, task: str, key: dict[str, Any], build: Callable[[], Corpus]) -> Corpus:
    """The corpus of this key from the folder, or built and kept there.

    Args:
        folder: where files are kept.
        task: begins the file's name.
        key: all that the corpus depends on: checksums of its sources and options, in JSON's types.
        build: makes the corpus.
    """
    path = folder / f"{task}-{content_hash({**key, 'task': task, 'format': FORMAT})}.npz"
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
    """Wait for other processes; where locks cannot be had, go on without: each then does the work itself."""
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            fcntl.flock(stack.enter_context(open(path, "w")), fcntl.LOCK_EX)
        yield


def _to_bytes(corpus: Corpus) -> bytes:
    splits = corpus.splits
    about = {
        "vocabulary": corpus.vocabulary,
        "description": corpus.description,
        "splits": {name: {"sides": split.sides, "dropped": split.dropped} for name, split in splits.items()},
    }
    arrays = {
        f"{name}_{part}": getattr(split, part).numpy()
        for name, split in splits.items()
        for part in ("words", "offsets", "labels")
    }
    file = io.BytesIO()
    text = np.frombuffer(json.dumps(about).encode(), np.uint8)
    np.savez(file, about=text, vectors=corpus.vectors.numpy(), **arrays)
    return file.getvalue()


def _read(path: Path) -> Corpus | None:
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        about = json.loads(arrays["about"].tobytes())
        tensors = {name: torch.from_numpy(arrays[name]) for name in arrays if name != "about"}
        splits = {
            name: Split(tensors[f"{name}_words"], tensors[f"{name}_offsets"], tensors[f"{name}_labels"], **rest)
            for name, rest in about["splits"].items()
        }
        return Corpus(
            **splits, vectors=tensors["vectors"], vocabulary=about["vocabulary"], description=about["description"]
        )
    except (*DAMAGED_NPZ, KeyError):
        return None
