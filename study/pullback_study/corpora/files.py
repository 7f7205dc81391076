"""Lines of text files, plain or gzipped, and the error that names file, line and reason."""

from __future__ import annotations

import codecs
import gzip
import lzma
import tokenize
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, cast

# What NumPy raises for an `.npz` file that is damaged: in the archive, in what it compresses, in an array's header,
# which is Python's syntax, or in a string, whose characters may be beyond Unicode (SystemError).
DAMAGED_NPZ = (
    OSError, EOFError, ValueError, TypeError, RuntimeError, IndexError, OverflowError, MemoryError, SyntaxError,
    SystemError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, tokenize.TokenError,
)  # fmt: skip


class CorpusError(ValueError):
    """A file that is not what its format promises.

    >>> raise CorpusError("sst/train.txt", 7, "the label 9 is not one of 0 to 4")
    Traceback (most recent call last):
    ...
    pullback_study.corpora.files.CorpusError: sst/train.txt, line 7: the label 9 is not one of 0 to 4
    """

    def __init__(self, path: Path | str, line: int | None, reason: str) -> None:
        super().__init__(f"{path}{'' if line is None else f', line {line}'}: {reason}")


def read_lines(path: Path) -> Iterator[tuple[int, str]]:
    """The lines of a UTF-8 file with their numbers, from 1, without the line's end.

    Lines end at a line feed alone: words may hold other characters that Unicode counts as white space or line ends.
    """
    for number, line in read_raw_lines(path):
        try:
            yield number, line.decode("utf-8")
        except UnicodeDecodeError as error:
            raise CorpusError(
                path, number, f"not UTF-8: {error.reason} at byte {error.start + 1} of the line"
            ) from None


def read_raw_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """`read_lines` before decoding. A byte order mark, with which some editors begin a file, is no part of it."""
    number = 0
    try:
        with open_plain(path) as file:
            for number, line in enumerate(file, 1):
                yield number, (line.removeprefix(codecs.BOM_UTF8) if number == 1 else line).rstrip(b"\r\n")
    except EOFError:
        raise CorpusError(path, number + 1, "the gzip stream ends early: the file is truncated") from None
    except (gzip.BadGzipFile, zlib.error) as error:
        raise CorpusError(path, number + 1, f"the gzip stream is corrupt: {error}") from None
    except OSError as error:
        raise CorpusError(path, None, error.strerror or str(error)) from None


def open_plain(path: Path) -> BinaryIO:
    """The file's content, unzipped if it starts as a gzip file does, whatever its name."""
    file = open(path, "rb")  # noqa: SIM115
    if file.read(2) == b"\x1f\x8b":
        file.close()
        return cast(BinaryIO, gzip.open(path, "rb"))
    file.seek(0)
    return file
