"""A data folder against the official files: counts, checksums, and coverage by word vectors.

The outcome is remembered as long as no file changes: reading everything takes seconds, and for GloVe 840B minutes.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from pullback_study.corpora import layout, snli, sst
from pullback_study.corpora.checksums import content_sha256, is_settled, stamp
from pullback_study.corpora.conllu import read_conllu
from pullback_study.corpora.files import CorpusError
from pullback_study.corpora.sources import DATASETS
from pullback_study.corpora.vectors import read_vectors
from pullback_study.runs import content_hash, write_atomically

FORMAT = 1  # increase it when the checks or their outcome change
Watch = Callable[[str], None]  # called with the name of the file that is being read
_CORPORA: dict[str, tuple[Callable[[Path, str], Path], dict[str, int]]] = {
    "SST": (layout.sst_file, layout.SST_TREES),
    "SNLI": (layout.snli_file, layout.SNLI_PAIRS),
    "EWT": (layout.ewt_file, layout.EWT_SENTENCES),
}
FILE_COLUMNS = ["file", "rows", "official", "used", "left out", "checksum"]
VECTOR_COLUMNS = ["vectors", "words", "width", *_CORPORA]


@dataclass
class DataCheck:
    """The outcome: rows under `FILE_COLUMNS` and `VECTOR_COLUMNS`, notes on the vectors, and what is wrong."""

    files: list[list[str]] = field(default_factory=list)
    vectors: list[list[str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    empty: bool = False


def check(data: Path, watch: Watch = lambda name: None, memory: Path | None = None) -> DataCheck:
    """Read everything in a data folder. Missing and broken files are reported, not raised.

    Args:
        data: the folder.
        watch: called with the name of each file before it is read.
        memory: a folder that remembers the outcome until a file changes; None to read everything.
    """
    there = list(_files(data))
    stamps = [stamp(path) for path in there]
    note = memory and memory / f"check-{content_hash([FORMAT, str(data.resolve()), stamps])}.json"
    if note is not None:
        with contextlib.suppress(OSError, ValueError, TypeError):
            return DataCheck(**json.loads(note.read_text()))
    found = DataCheck(empty=not there)
    tokens: dict[str, Counter[str]] = {title: Counter() for title in _CORPORA}
    for title in _CORPORA:
        for split in layout.SPLITS:
            _check_file(data, title, split, tokens[title], watch, found)
    for name in layout.vector_names(data):
        _check_vectors(data, name, tokens, watch, found)
    with contextlib.suppress(OSError):
        if note is not None and all(map(is_settled, there)):
            write_atomically(note, json.dumps(dataclasses.asdict(found)))
    return found


def _files(data: Path) -> Iterator[Path]:
    finds = [(find, split) for find, _ in _CORPORA.values() for split in layout.SPLITS]
    for find, name in finds + [(layout.vector_file, name) for name in layout.vector_names(data)]:
        with contextlib.suppress(ValueError):
            yield find(data, name)


def _check_file(data: Path, title: str, split: str, tokens: Counter[str], watch: Watch, found: DataCheck) -> None:
    find, counts = _CORPORA[title]
    official = f"{counts[split]:,}"
    try:
        path = find(data, split)
    except ValueError:
        found.files.append([f"{title} {split}", "missing", official, "", "", ""])
        return
    name = path.relative_to(data).as_posix()
    watch(name)
    dropped: Counter[str] = Counter()
    used = 0
    try:
        for example in _examples(title, path, dropped):
            tokens.update(example)
            used += 1
    except CorpusError as error:
        found.files.append([name, "broken", official, "", "", ""])
        found.problems.append(str(error))
        return
    rows = used + dropped.total()
    expected = layout.SNLI_PART if ".first100k." in name else counts[split]
    if rows != expected:
        found.problems.append(f"{path}: {rows:,} rows where {expected:,} should be")
    share = "" if rows == counts[split] else f" ({rows / counts[split]:.1%})"
    left_out = ", ".join(f"{count:,} {rule}" for rule, count in dropped.items())
    found.files.append([name, f"{rows:,}{share}", official, f"{used:,}", left_out, _compared(path, name)])


def _examples(title: str, path: Path, dropped: Counter[str]) -> Iterator[tuple[str, ...]]:
    """The tokens of each example that the task uses."""
    if title == "SST":
        sentences, left_out = sst.binary(sst.read_sst(path))
        dropped.update(left_out)
        yield from (each.tokens for each in sentences)
    elif title == "SNLI":
        yield from (each.premise + each.hypothesis for each in snli.usable(snli.read_snli(path), dropped))
    else:
        yield from (each.tokens for each in read_conllu(path))


def _compared(path: Path, name: str) -> str:
    sources = [source for dataset in DATASETS.values() for source in dataset.sources]
    known = next((each.checksums[key] for each in sources if (key := name.removesuffix(".gz")) in each.checksums), None)
    return "not known" if known is None else "as published" if content_sha256(path) == known else "≠ published"


def _check_vectors(data: Path, name: str, tokens: dict[str, Counter[str]], watch: Watch, found: DataCheck) -> None:
    watch(f"vectors/{name}")
    try:
        vectors = read_vectors(layout.vector_file(data, name), set().union(*tokens.values()))
    except ValueError as error:
        found.vectors.append([name, "broken", "", *("" for _ in tokens)])
        found.problems.append(str(error))
        return
    known = [sum(count for token, count in each.items() if vectors.lookup(token) is not None) for each in tokens.values()]
    totals = [each.total() for each in tokens.values()]
    shares = [f"{part / total:.1%}" if total else "" for part, total in zip(known, totals, strict=True)]
    found.vectors.append([name, f"{vectors.total:,}", str(vectors.matrix.shape[1]), *shares])
    found.notes += [f"{name}: {count:,} {reason} are skipped" for reason, count in vectors.skipped.items()]
