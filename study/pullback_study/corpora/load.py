"""SST, SNLI and EWT, preprocessed; from the cache if they were read before."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pullback_study.corpora import layout, snli, sst
from pullback_study.corpora.cache import cached, default_folder
from pullback_study.corpora.checksums import remembered_sha256
from pullback_study.corpora.conllu import read_conllu
from pullback_study.corpora.corpus import Corpus
from pullback_study.corpora.preprocess import Example, Reader, preprocess


def load_sst(data: Path, vectors: str | None = None, cache: Path | None = None) -> Corpus:
    """SST with binary labels: 0 negative, 1 positive. Neutral sentences are left out and counted.

    Args:
        data: the data folder, with `sst/` and `vectors/`.
        vectors: the name of a file in `vectors/`, or a file's path; `choose_vectors` by default.
        cache: the folder of preprocessed corpora; the user's cache folder by default.
    """

    def read(path: Path, dropped: Counter[str]) -> Iterator[Example]:
        sentences, left_out = sst.binary(sst.read_sst(path))
        dropped.update(left_out)
        for sentence in sentences:
            yield Example((sentence.tokens,), sentence.label)

    files = {split: layout.sst_file(data, split) for split in layout.SPLITS}
    return _load("sst", files, layout.SST_TREES, read, _vectors(data, vectors), cache)


def load_snli(data: Path, vectors: str | None = None, max_tokens: int = 100, cache: Path | None = None) -> Corpus:
    """SNLI: entailment, neutral and contradiction are 0, 1 and 2. See `load_sst`.

    Pairs without a gold label, and those with a side of more than `max_tokens`, are left out and counted.
    """

    def read(path: Path, dropped: Counter[str]) -> Iterator[Example]:
        for pair in snli.usable(snli.read_snli(path), dropped, max_tokens=max_tokens):
            yield Example((pair.premise, pair.hypothesis), snli.LABELS.index(pair.label))

    files = {split: layout.snli_file(data, split) for split in layout.SPLITS}
    return _load("snli", files, layout.SNLI_PAIRS, read, _vectors(data, vectors), cache, max_tokens=max_tokens)


def load_ewt(data: Path, vectors: str | None = None, max_tokens: int = 100, cache: Path | None = None) -> Corpus:
    """UD English EWT with its gold heads in `Split.gold`; all labels are 0. See `load_sst`.

    Sentences of more than `max_tokens` words are left out and counted.
    """

    def read(path: Path, dropped: Counter[str]) -> Iterator[Example]:
        for parse in read_conllu(path):
            if len(parse.tokens) > max_tokens:
                dropped[f"more than {max_tokens} tokens"] += 1
            else:
                yield Example((parse.tokens,), 0, parse.heads)

    files = {split: layout.ewt_file(data, split) for split in layout.SPLITS}
    return _load("ewt", files, layout.EWT_SENTENCES, read, _vectors(data, vectors), cache, max_tokens=max_tokens)


def _vectors(data: Path, name: str | None) -> Path:
    return layout.vector_file(data, layout.choose_vectors(data, name))


def _load(
    task: str, files: dict[str, Path], official: dict[str, int], read: Reader, vectors: Path, cache: Path | None, **options: Any
) -> Corpus:
    folder = cache or default_folder()
    sources = {**files, "vectors": vectors}
    checksums = {name: remembered_sha256(path, folder / "checksums") for name, path in sources.items()}

    def build() -> Corpus:
        corpus = preprocess(files, read, vectors=vectors)
        rows = {name: len(split) + sum(split.dropped.values()) for name, split in corpus.splits.items()}
        share = {name: rows[name] / official[name] for name in rows}
        about = {"task": task, "rows": rows, "share": share, "checksums": checksums, **options}
        return dataclasses.replace(corpus, description={**about, **corpus.description})

    names = {name: path.name for name, path in sources.items()}
    return cached(folder, task, {"checksums": checksums, "names": names, "options": options}, build)
