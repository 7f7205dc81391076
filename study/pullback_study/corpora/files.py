"""Files of corpora, plain or gzipped: where they lie, lines, checksums, and the error that names file, line and reason."""

from __future__ import annotations

import contextlib
import functools
import gzip
import hashlib
import io
import os
import re
import zlib
from collections.abc import Iterator
from pathlib import Path

from pullback_study.runs import content_hash, write_atomically

SPLITS = ("train", "dev", "test")
FILES = {  # by corpus, relative to the data folder, best first; each may be gzipped
    "sst": ("sst/{}.txt",),
    "snli": ("snli/snli_1.0_{}.jsonl", "snli/snli_1.0_{}.first100k.jsonl"),
    "ewt": ("ud-ewt/en_ewt-ud-{}.conllu",),
}
ROWS = {
    "sst": {"train": 8544, "dev": 1101, "test": 2210},
    "snli": {"train": 550_152, "dev": 10_000, "test": 10_000},
}
VECTOR_ENDINGS = (".npz", ".txt", ".txt.gz")
PREFERRED_VECTORS = ("glove.840B.300d", "googlenews_mapped.300d")
LARGE = 1 << 26  # bytes; the checksums of smaller files take less than a tenth of a second
BROKEN = (EOFError, gzip.BadGzipFile, zlib.error)
"""What reading a damaged gzip file raises."""


class CorpusError(ValueError):
    """A file does not follow its format."""

    def __init__(self, path: Path | str, line: int | None, reason: str) -> None:
        super().__init__(f"{path}{'' if line is None else f', line {line}'}: {reason}")


def read_lines(path: Path) -> Iterator[tuple[int, str]]:
    """The lines of a UTF-8 file with their numbers, from 1. Only a line feed ends a line: words may hold other breaks."""
    number = 0
    try:
        with open_plain(path) as file:
            for number, line in enumerate(file, 1):
                yield number, line.rstrip(b"\r\n").decode("utf-8" if number > 1 else "utf-8-sig")
    except UnicodeDecodeError as error:
        raise CorpusError(path, number, f"not UTF-8: {error.reason} at byte {error.start + 1} of the line") from None
    except BROKEN as error:
        raise CorpusError(path, number + 1, f"the gzip stream is truncated or corrupt: {error}") from None
    except OSError as error:
        raise CorpusError(path, None, error.strerror or str(error)) from None


def open_plain(path: Path) -> io.BufferedIOBase:
    """The content of a file, unzipped if it starts like a gzip file, whatever its name."""
    with open(path, "rb") as file:
        zipped = file.read(2) == b"\x1f\x8b"
    return gzip.GzipFile(path) if zipped else open(path, "rb")


def sha256(path: Path, *, content: bool = False) -> str:
    """The checksum of a file, or of its content, unzipped if it is gzipped."""
    with open_plain(path) if content else open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]


def remembered_sha256(path: Path, memory: Path) -> str:
    """`sha256`; remembered by this process, and for a large file in a folder, under what changes whenever the file does.

    Users can set a file's time of modification, but not its inode's time of change.
    """
    status = path.stat()
    return remembered(path.resolve(), memory, status.st_size, status.st_ino, status.st_mtime_ns, status.st_ctime_ns)


@functools.lru_cache(maxsize=64)
def remembered(path: Path, memory: Path, size: int, *stamp: int) -> str:
    if size < LARGE:
        return sha256(path)
    note = memory / content_hash([str(path), size, *stamp])
    with contextlib.suppress(OSError):
        return note.read_text()
    checksum = sha256(path)
    with contextlib.suppress(OSError):
        write_atomically(note, checksum)
    return checksum


def cache_folder() -> Path:
    """Of preprocessed corpora and remembered checksums: in `$PULLBACK_CACHE`, else in the user's cache folder."""
    base = os.environ.get("PULLBACK_CACHE") or os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return Path(base) / "pullback" / "corpora"


def find_data(data: Path | None = None) -> Path:
    """The data folder: the one given, else `$PULLBACK_DATA`."""
    given = data or os.environ.get("PULLBACK_DATA")
    if not given:
        raise ValueError(
            "no data folder is given: pass --data DIR or set PULLBACK_DATA; `pullback data download DIR` fetches the data"
        )
    folder = Path(given).expanduser()
    if not folder.is_dir():
        source = "" if data else " (from PULLBACK_DATA)"
        raise ValueError(f"{given}{source} is not a folder; `pullback data download DIR` fetches the data")
    return folder


def corpus_file(corpus: str, data: Path, split: str) -> Path:
    """The file of a split of `sst`, `snli` or `ewt`; for SNLI's training data the whole goes before its first 100,000 pairs."""
    patterns = FILES[corpus] if split == "train" else FILES[corpus][:1]
    names = [f"{pattern.format(split)}{ending}" for pattern in patterns for ending in ("", ".gz")]
    for name in names:
        if (data / name).is_file():
            return data / name
    wanted = " or ".join(name.rpartition("/")[2] for name in names)
    raise ValueError(f"no {wanted} in {(data / names[0]).parent}; `pullback data check` shows what is missing")


def choose_vectors(data: Path) -> str:
    """The name of the best word vectors in `data/vectors`.

    The order is GloVe 840B, the vectors of the recorded results, then the widest (the number in `NAME.300d`), then by name.
    """
    names = vector_names(data)
    if not names:
        raise ValueError(f"no word vectors in {data / 'vectors'}; `pullback data download {data} --only glove` fetches some")

    def rank(name: str) -> tuple[int, int, str]:
        width = re.search(r"\.(\d+)d$", name)
        return [*PREFERRED_VECTORS, name].index(name), -int(width[1]) if width else 0, name

    return min(names, key=rank)


def vector_file(data: Path, name: str) -> Path:
    """The file of word vectors of that name in `data/vectors`; or `name` itself if it is the path of a file."""
    for path in (*(data / "vectors" / f"{name}{ending}" for ending in ("", *VECTOR_ENDINGS)), Path(name)):
        if path.is_file():
            return path
    there = ", ".join(vector_names(data)) or "none"
    raise ValueError(f"no vectors {name!r} in {data / 'vectors'}; there are: {there}. Pass one of these, or a file's path")


def vector_names(data: Path) -> list[str]:
    """The names of the vector files in `data/vectors`."""
    files = [path.name for path in (data / "vectors").glob("*") if path.is_file()]
    return sorted({file.removesuffix(ending) for file in files for ending in VECTOR_ENDINGS if file.endswith(ending)})
