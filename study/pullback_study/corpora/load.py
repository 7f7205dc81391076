"""The two corpora of the paper, preprocessed: from the cache if they were read before."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pullback_study.corpora import layout, snli, sst
from pullback_study.corpora.cache import cached, default_folder
from pullback_study.corpora.checksums import remembered_sha256
from pullback_study.corpora.corpus import Corpus
from pullback_study.corpora.preprocess import Reader, Sentences, preprocess

DEFAULT_VECTORS = "googlenews_mapped.300d"


def load_sst(data: Path, vectors: str = DEFAULT_VECTORS, cache: Path | None = None) -> Corpus:
    """SST with binary labels: 0 negative, 1 positive. Neutral sentences are left out and counted.

    Args:
        data: the folder of the data, with `sst/` and `vectors/`.
        vectors: the name of a file in `vectors/`, or a file's path.
        cache: where preprocessed corpora are kept; the user's cache folder by default.
    """

    def read(path: Path, dropped: Counter[str]) -> Iterator[tuple[Sentences, int]]:
        sentences, left_out = sst.binary(sst.read_sst(path))
        dropped.update(left_out)
        for sentence in sentences:
            yield (sentence.tokens,), sentence.label

    files = {split: layout.sst_file(data, split) for split in layout.SPLITS}
    return _load("sst", files, layout.SST_TREES, read, 1, layout.vector_file(data, vectors), cache)


def load_snli(data: Path, vectors: str = DEFAULT_VECTORS, max_tokens: int = 100, cache: Path | None = None) -> Corpus:
    """SNLI: entailment, neutral and contradiction are 0, 1 and 2. See `load_sst`.

    Pairs without a gold label, and those with a side of more than `max_tokens`, are left out and counted.
    """

    def read(path: Path, dropped: Counter[str]) -> Iterator[tuple[Sentences, int]]:
        for pair in snli.usable(snli.read_snli(path), dropped, max_tokens=max_tokens):
            yield (pair.premise, pair.hypothesis), snli.LABELS.index(pair.label)

    files = {split: layout.snli_file(data, split) for split in layout.SPLITS}
    vector_file = layout.vector_file(data, vectors)
    return _load("snli", files, layout.SNLI_PAIRS, read, 2, vector_file, cache, max_tokens=max_tokens)


def _load(
    task: str,
    files: dict[str, Path],
    official: dict[str, int],
    read: Reader,
    sides: int,
    vectors: Path,
    cache: Path | None,
    **options: Any,
) -> Corpus:
    folder = cache or default_folder()
    checksums = {
        name: remembered_sha256(path, folder / "checksums") for name, path in {**files, "vectors": vectors}.items()
    }

    def build() -> Corpus:
        corpus = preprocess(files, read, sides=sides, vectors=vectors)
        rows = {name: len(split) + sum(split.dropped.values()) for name, split in corpus.splits.items()}
        about = {
            "task": task,
            "rows": rows,
            "share": {name: rows[name] / official[name] for name in rows},
            "checksums": checksums,
            **options,
        }
        return dataclasses.replace(corpus, description={**about, **corpus.description})

    names = {name: path.name for name, path in {**files, "vectors": vectors}.items()}
    return cached(folder, task, {"checksums": checksums, "names": names, "options": options}, build)
