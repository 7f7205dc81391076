"""A data folder against the official files: counts, checksums, and coverage by word vectors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from pullback_study.corpora import layout
from pullback_study.corpora.download import DATASETS
from pullback_study.corpora.files import CorpusError, content_sha256
from pullback_study.corpora.loading import READERS
from pullback_study.corpora.vectors import read_vectors

FILE_COLUMNS = ["file", "rows", "official", "used", "left out", "checksum"]
VECTOR_COLUMNS = ["vectors", "words", "width", *(name.upper() for name in READERS)]
Watch = Callable[[str], None]  # called with the name of the file that is being read


@dataclass
class DataCheck:
    """The outcome: rows under `FILE_COLUMNS` and `VECTOR_COLUMNS`, notes on the vectors, and what is wrong."""

    files: list[list[str]] = field(default_factory=list)
    vectors: list[list[str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    empty: bool = False


def check(data: Path, watch: Watch = lambda name: None) -> DataCheck:
    """Read everything in a data folder, `watch`ing each file's name. Missing and broken files are reported, not raised."""
    found = DataCheck()
    tokens: dict[str, Counter[str]] = {corpus: Counter() for corpus in READERS}
    for corpus in READERS:
        for split in layout.SPLITS:
            _check_file(data, corpus, split, tokens[corpus], watch, found)
    for name in layout.vector_names(data):
        _check_vectors(data, name, tokens, watch, found)
    found.empty = not found.vectors and all(row[1] == "missing" for row in found.files)
    return found


def _check_file(data: Path, corpus: str, split: str, tokens: Counter[str], watch: Watch, found: DataCheck) -> None:
    official = layout.ROWS[corpus][split]
    try:
        path = layout.corpus_file(corpus, data, split)
    except ValueError:
        found.files.append([f"{corpus.upper()} {split}", "missing", f"{official:,}", "", "", ""])
        return
    name = path.relative_to(data).as_posix()
    watch(name)
    dropped: Counter[str] = Counter()
    used = 0
    try:
        for example in READERS[corpus](path, dropped, 100):
            used += 1
            for sentence in example.sentences:
                tokens.update(sentence)
    except CorpusError as error:
        found.files.append([name, "broken", f"{official:,}", "", "", ""])
        found.problems.append(str(error))
        return
    rows, expected = used + dropped.total(), layout.SNLI_PART if ".first100k." in name else official
    if rows != expected:
        found.problems.append(f"{path}: {rows:,} rows where {expected:,} should be")
    known = next((sums[name.removesuffix(".gz")] for sums in _published() if name.removesuffix(".gz") in sums), None)
    compared = "not known" if known is None else "as published" if content_sha256(path) == known else "≠ published"
    share = "" if rows == official else f" ({rows / official:.1%})"
    left_out = ", ".join(f"{count:,} {rule}" for rule, count in dropped.items())
    found.files.append([name, f"{rows:,}{share}", f"{official:,}", f"{used:,}", left_out, compared])


def _published() -> list[dict[str, str]]:
    return [source.checksums for dataset in DATASETS.values() for source in dataset.sources]


def _check_vectors(data: Path, name: str, tokens: dict[str, Counter[str]], watch: Watch, found: DataCheck) -> None:
    watch(f"vectors/{name}")
    try:
        vectors = read_vectors(layout.vector_file(data, name), set().union(*tokens.values()))
    except ValueError as error:
        found.vectors.append([name, "broken", "", *("" for _ in tokens)])
        found.problems.append(str(error))
        return
    known = [sum(count for token, count in each.items() if vectors.lookup(token) is not None) for each in tokens.values()]
    shares = [f"{part / each.total():.1%}" if each else "" for part, each in zip(known, tokens.values(), strict=True)]
    found.vectors.append([name, f"{vectors.total:,}", str(vectors.matrix.shape[1]), *shares])
    found.notes += [f"{name}: {count:,} {reason} are skipped" for reason, count in vectors.skipped.items()]
