"""Files of corpora, plain or gzipped: lines, checksums, and the error that names file, line and reason."""

from __future__ import annotations

import codecs
import contextlib
import gzip
import hashlib
import io
import zlib
from collections.abc import Iterator
from pathlib import Path

from pullback_study.runs import content_hash, write_atomically

LARGE = 1 << 26  # bytes; the checksums of smaller files take less than a tenth of a second


class CorpusError(ValueError):
    """A file does not follow its format.

    >>> str(CorpusError("sst/train.txt", 7, "not a tree"))
    'sst/train.txt, line 7: not a tree'
    """

    def __init__(self, path: Path | str, line: int | None, reason: str) -> None:
        super().__init__(f"{path}{'' if line is None else f', line {line}'}: {reason}")


def read_lines(path: Path) -> Iterator[tuple[int, str]]:
    """The lines of a UTF-8 file with their numbers, from 1. Only a line feed ends a line: words may hold other breaks."""
    for number, line in read_raw_lines(path):
        try:
            yield number, line.decode("utf-8")
        except UnicodeDecodeError as error:
            raise CorpusError(path, number, f"not UTF-8: {error.reason} at byte {error.start + 1} of the line") from None


def read_raw_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """`read_lines` before decoding, without a byte order mark."""
    number = 0
    try:
        with open_plain(path) as file:
            for number, line in enumerate(file, 1):
                yield number, (line.removeprefix(codecs.BOM_UTF8) if number == 1 else line).rstrip(b"\r\n")
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise CorpusError(path, number + 1, f"the gzip stream is truncated or corrupt: {error}") from None
    except OSError as error:
        raise CorpusError(path, None, error.strerror or str(error)) from None


def open_plain(path: Path) -> io.BufferedIOBase:
    """The content of a file, unzipped if it starts like a gzip file, whatever its name."""
    file = open(path, "rb")  # noqa: SIM115
    if file.read(2) == b"\x1f\x8b":
        file.close()
        return gzip.GzipFile(path)
    file.seek(0)
    return file


def sha256(path: Path) -> str:
    """The checksum of a file."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def content_sha256(path: Path) -> str:
    """The checksum of a file's content, unzipped if it is gzipped."""
    with open_plain(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def remembered_sha256(path: Path, memory: Path) -> str:
    """`sha256`; that of a large file is remembered in a folder, under what changes whenever the file does.

    Users can set a file's time of modification, but not its inode's time of change.
    """
    status = path.stat()
    if status.st_size < LARGE:
        return sha256(path)
    note = memory / content_hash([str(path.resolve()), status.st_size, status.st_ino, status.st_mtime_ns, status.st_ctime_ns])
    with contextlib.suppress(OSError):
        return note.read_text()
    checksum = sha256(path)
    with contextlib.suppress(OSError):
        write_atomically(note, checksum)
    return checksum
