"""Data from its publishers, with checksums; an interrupted download goes on where it broke off."""

from __future__ import annotations

import contextlib
import fcntl
import gzip
import os
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from pullback_study.corpora.checksums import content_sha256, sha256
from pullback_study.corpora.download.archives import remove_unfinished, unpack
from pullback_study.corpora.download.sources import DATASETS, Dataset, Source
from pullback_study.corpora.download.transfer import DownloadError, Progress, fetch

__all__ = ["DATASETS", "Dataset", "DownloadError", "Source", "download"]


def download(sources: Sequence[Source], data: Path, *, progress: Progress, pause: float = 1.0) -> list[Path]:
    """Fetch what is not there yet; returns the new files.

    What is under way lies in `data/.download`, which is gone when all is done. A file that is there already is
    checked, and never overwritten.

    Args:
        sources: what to fetch.
        data: the data folder; made if it is not there.
        progress: told about the bytes as they come.
        pause: seconds before a broken transfer is tried again.
    """
    try:
        with _work_folder(data) as work:
            return [path for source in sources for path in _fetch(source, data, work, progress, pause)]
    except OSError as error:
        raise DownloadError(f"cannot write to {data}: {error}") from None


def _fetch(source: Source, data: Path, work: Path, progress: Progress, pause: float) -> list[Path]:
    files = {member: data / path for member, path in source.files.items()}
    for path in files.values():
        remove_unfinished(path)
    checksums = {data / path: known for path, known in source.checksums.items()}
    missing = {member: path for member, path in files.items() if not _is_there(path, checksums.get(path))}
    if missing:
        arrived = work / source.url.rpartition("/")[2]
        if not (source.sha256 and arrived.exists() and sha256(arrived) == source.sha256):
            fetch(source.url, arrived, checksum=source.sha256, progress=progress, pause=pause)
        _install(source, arrived, missing, checksums, progress)
    return list(missing.values())


def _install(
    source: Source, arrived: Path, missing: dict[str, Path], checksums: dict[Path, str], progress: Progress
) -> None:
    if not source.is_archive:
        missing[""].parent.mkdir(parents=True, exist_ok=True)
        arrived.replace(missing[""])
        return
    try:
        unpack(arrived, missing, checksums=checksums, limit=source.limit, progress=progress)
    except DownloadError:
        if source.sha256 is None:  # nothing vouches for it; what is the publisher's own is kept for another try
            arrived.unlink()
        raise
    arrived.unlink()


def _is_there(path: Path, checksum: str | None) -> bool:
    """Whether a file is there, plain or gzipped; an error if it is another one."""
    zipped = path.with_name(f"{path.name}.gz")
    there = next((each for each in (path, zipped) if each.exists()), None)
    if there is None or checksum is None:
        return there is not None
    try:
        found = sha256(there) if there == path else content_sha256(there)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DownloadError(f"{there} is there, but cannot be unzipped ({error}); move it away and try again") from None
    if found != checksum:
        content = "its" if there == path else "its content's"
        raise DownloadError(
            f"{there} is there, but {content} SHA-256 is {found}, not {checksum}; move it away and try again"
        )
    return True


@contextlib.contextmanager
def _work_folder(data: Path) -> Iterator[Path]:
    """The folder for what is under way, for one process at a time; removed if nothing is left in it."""
    work = data / ".download"
    work.mkdir(parents=True, exist_ok=True)
    folder = os.open(work, os.O_RDONLY)
    try:
        try:
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise DownloadError(f"another process is downloading to {data}; wait for it, then try again") from None
        yield work
    finally:
        os.close(folder)
        with contextlib.suppress(OSError):
            work.rmdir()
