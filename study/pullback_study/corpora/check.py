"""What a data folder holds, against what it should hold: counts, checksums, and coverage by word vectors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from pullback_study.corpora import layout, snli, sst
from pullback_study.corpora.checksums import content_sha256
from pullback_study.corpora.conllu import read_conllu
from pullback_study.corpora.download import DATASETS
from pullback_study.corpora.files import CorpusError
from pullback_study.corpora.vectors import read_vectors

Watch = Callable[[str], None]  # told the name of what is being read


@dataclass(frozen=True)
class FileCheck:
    """One file of a corpus.

    Args:
        name: its path in the data folder, or what was looked for.
        official: how many rows the publisher's file has.
        rows: how many this one has.
        used: rows that the task keeps.
        dropped: rows that it leaves out, by rule.
        published: whether the content's SHA-256 is the publisher's; None where that is not known.
        problem: what is wrong with it, if something is.
        missing: it is not there.
    """

    name: str
    official: int
    rows: int = 0
    used: int = 0
    dropped: dict[str, int] = field(default_factory=dict)
    published: bool | None = None
    problem: str = ""
    missing: bool = False


@dataclass(frozen=True)
class VectorCheck:
    """One file of word vectors: its size, and the share of each corpus's tokens that it knows."""

    name: str
    words: int = 0
    width: int = 0
    coverage: dict[str, float] = field(default_factory=dict)
    skipped: dict[str, int] = field(default_factory=dict)
    problem: str = ""


@dataclass(frozen=True)
class DataCheck:
    """Everything that `pullback data check` knows about a folder."""

    files: dict[str, list[FileCheck]]
    vectors: list[VectorCheck]

    @property
    def problems(self) -> list[str]:
        corpora = [each.problem for files in self.files.values() for each in files]
        return [problem for problem in (*corpora, *(each.problem for each in self.vectors)) if problem]

    @property
    def empty(self) -> bool:
        return not self.vectors and all(each.missing for files in self.files.values() for each in files)


def check(data: Path, watch: Watch = lambda name: None) -> DataCheck:
    """Read everything in a data folder. Files that are missing or broken are reported, not raised."""
    tokens: dict[str, Counter[str]] = {corpus.title: Counter() for corpus in _CORPORA}
    files = {
        corpus.title: [_check_file(data, corpus, split, tokens[corpus.title], watch) for split in layout.SPLITS]
        for corpus in _CORPORA
    }
    return DataCheck(files, [_check_vectors(data, name, tokens, watch) for name in layout.vector_names(data)])


Counts = tuple[int, dict[str, int]]  # rows that are used, and those that are not, by rule


def _count_sst(path: Path, tokens: Counter[str]) -> Counts:
    sentences, dropped = sst.binary(sst.read_sst(path))
    for sentence in sentences:
        tokens.update(sentence.tokens)
    return len(sentences), dropped


def _count_snli(path: Path, tokens: Counter[str]) -> Counts:
    dropped: Counter[str] = Counter()
    used = 0
    for pair in snli.usable(snli.read_snli(path), dropped):
        tokens.update(pair.premise)
        tokens.update(pair.hypothesis)
        used += 1
    return used, dict(dropped)


def _count_conllu(path: Path, tokens: Counter[str]) -> Counts:
    sentences = read_conllu(path)
    for sentence in sentences:
        tokens.update(sentence.tokens)
    return len(sentences), {}


@dataclass(frozen=True)
class _Corpus:
    title: str
    file: Callable[[Path, str], Path]
    official: dict[str, int]
    count: Callable[[Path, Counter[str]], Counts]


_CORPORA = (
    _Corpus("SST", layout.sst_file, layout.SST_TREES, _count_sst),
    _Corpus("SNLI", layout.snli_file, layout.SNLI_PAIRS, _count_snli),
    _Corpus("EWT", layout.ewt_file, layout.EWT_SENTENCES, _count_conllu),
)
_CHECKSUMS = {
    path: checksum
    for dataset in DATASETS.values()
    for source in dataset.sources
    for path, checksum in source.checksums.items()
}


def _check_file(data: Path, corpus: _Corpus, split: str, tokens: Counter[str], watch: Watch) -> FileCheck:
    official = corpus.official[split]
    try:
        path = corpus.file(data, split)
    except ValueError:
        return FileCheck(f"{corpus.title} {split}", official, missing=True)
    name = path.relative_to(data).as_posix()
    watch(name)
    try:
        used, dropped = corpus.count(path, tokens)
    except CorpusError as error:
        return FileCheck(name, official, problem=str(error))
    rows = used + sum(dropped.values())
    expected = layout.SNLI_PART if ".first100k." in name else official
    problem = "" if rows == expected else f"{path}: {rows:,} rows where {expected:,} should be"
    known = _CHECKSUMS.get(name.removesuffix(".gz"))
    return FileCheck(name, official, rows, used, dropped, content_sha256(path) == known if known else None, problem)


def _check_vectors(data: Path, name: str, tokens: dict[str, Counter[str]], watch: Watch) -> VectorCheck:
    watch(f"vectors/{name}")
    try:
        vectors = read_vectors(layout.vector_file(data, name), set().union(*tokens.values()))
    except ValueError as error:
        return VectorCheck(name, problem=str(error))
    coverage = {}
    for title, counts in tokens.items():
        if counts:
            known = sum(count for token, count in counts.items() if vectors.lookup(token) is not None)
            coverage[title] = known / counts.total()
    return VectorCheck(name, vectors.total, vectors.matrix.shape[1], coverage, vectors.skipped)
