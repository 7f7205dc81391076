"""The files of a data folder against those of the publishers."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path

from pullback_study.corpora.files import content_sha256
from pullback_study.corpora.layout import FILES, SPLITS, corpus_file
from pullback_study.corpora.sources import DATASETS

COLUMNS = ["file", "MB", "checksum"]
WRONG = "not the published file"


def check(data: Path) -> list[list[str]]:
    """For each split of each corpus its file, its size, and what its checksum says, under `COLUMNS`."""
    sources = [source for dataset in DATASETS.values() for source in dataset.sources]
    known = {path: checksum for source in sources for path, checksum in source.checksums.items()}
    rows = []
    for corpus, split in ((corpus, split) for corpus in FILES for split in SPLITS):
        try:
            path = corpus_file(corpus, data, split)
        except ValueError:
            rows.append([f"{corpus.upper()} {split}", "missing", ""])
            continue
        name = path.relative_to(data).as_posix()
        expected = known.get(name.removesuffix(".gz"))
        try:
            found = content_sha256(path)
        except (OSError, EOFError, zlib.error, gzip.BadGzipFile):
            found = "cannot be read"
        state = "not known" if expected is None else "as published" if found == expected else WRONG
        rows.append([name, f"{path.stat().st_size / 1e6:.1f}", state])
    return rows
