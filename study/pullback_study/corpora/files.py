"""Lines of text files, plain or gzipped, and the error that names file, line and reason."""

from __future__ import annotations

import codecs
import gzip
import io
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path


class CorpusError(ValueError):
    """A file does not follow its format.

    >>> raise CorpusError("sst/train.txt", 7, "the label 9 is not one of 0 to 4")
    Traceback (most recent call last):
    ...
    pullback_study.corpora.files.CorpusError: sst/train.txt, line 7: the label 9 is not one of 0 to 4
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
    """`read_lines` before decoding, without the byte order mark that some editors write."""
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


def is_one_tree(pieces: Sequence[str]) -> bool:
    """Whether the first bracket is closed by the last piece, and by none before it.

    >>> is_one_tree("( a ( b c ) )".split()), is_one_tree("( a ) ( b )".split())
    (True, False)
    """
    depth = 0
    for number, piece in enumerate(pieces, 1):
        depth += (piece == "(") - (piece == ")")
        if depth <= 0 and number < len(pieces):
            return False
    return depth == 0
