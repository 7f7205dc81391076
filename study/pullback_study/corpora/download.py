"""Data from its publishers: fetched by pooch, checked, unpacked.

pooch writes to a temporary file with a new random name, compares the SHA-256 and renames. Files appear under their
names only when they are complete and checked, so nothing that a server sends is ever taken for data by a later run. An
archive with an entry that would be written outside its folder is refused as a whole.
"""

from __future__ import annotations

import contextlib
import fcntl
import gzip
import os
import re
import shutil
import stat
import tempfile
import time
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from http.client import HTTPException
from pathlib import Path

from pullback_study.corpora.files import content_sha256, sha256
from pullback_study.corpora.sources import DATASETS, Dataset, Source

__all__ = ["DATASETS", "Dataset", "DownloadError", "Source", "download"]

CHUNK = 1 << 18
TIMEOUT = 30.0  # seconds without a byte
TRIES = 5  # in a row that make no progress
Progress = Callable[[str, int, int | None], None]  # name, bytes so far, bytes in all if known


class DownloadError(ValueError):
    """A download that cannot be finished, and why."""


def download(sources: Sequence[Source], data: Path, *, progress: Progress, pause: float = 1.0) -> list[Path]:
    """Fetch the files that are missing; returns the new files.

    Downloads wait in `data/.download`, which is removed when everything is in place. A file that exists already is
    checked, and never overwritten.

    Args:
        sources: what to fetch.
        data: the data folder; made if it does not exist.
        progress: called with name, bytes so far, and bytes in all if known.
        pause: seconds before a broken transfer is tried again; doubled for each further try.
    """
    try:
        with _work_folder(data) as work:
            return [path for source in sources for path in _fetch(source, data, work, progress, pause)]
    except OSError as error:
        raise DownloadError(f"cannot write to {data}: {error}") from None


def _fetch(source: Source, data: Path, work: Path, progress: Progress, pause: float) -> list[Path]:
    import pooch

    missing = {member: data / path for member, path in source.files.items()
               if not _is_there(data / path, source.checksums.get(path))}  # fmt: skip
    if not missing:
        return []
    pooch.get_logger().setLevel("WARNING")
    name = source.url.rpartition("/")[2]
    try:
        downloader = _downloader(source.limit, progress, pause)
        arrived = Path(pooch.retrieve(source.url, f"sha256:{source.sha256}", fname=name, path=work, downloader=downloader))
    except DownloadError:
        raise
    except ValueError as error:  # of the checksum
        raise DownloadError(f"{source.url}: {error} Try again; if it persists, the publisher has changed the file") from None
    if "" in missing:
        missing[""].parent.mkdir(parents=True, exist_ok=True)
        os.replace(arrived, missing[""])
    else:
        _unpack(arrived, missing, {data / path: known for path, known in source.checksums.items()}, source.limit, progress)
    arrived.unlink(missing_ok=True)
    return list(missing.values())


def _downloader(limit: int, progress: Progress, pause: float) -> Callable[[str, str, object], None]:
    """A downloader for pooch that goes on where a connection broke, within the call, and stops at `limit` bytes."""
    from requests import RequestException
    from urllib3.exceptions import HTTPError

    def run(url: str, output: str, _: object) -> None:
        failures, most, reason = 0, 0, ""
        while True:
            try:
                return _receive(url, Path(output), limit, progress)
            except (RequestException, HTTPError, HTTPException) as error:  # of the server; other errors are the disk's
                status = getattr(getattr(error, "response", None), "status_code", 503)
                size = os.path.getsize(output)
                reason = reason if reason and status == 416 else str(error) or type(error).__name__
                failures, most = (0, size) if size > most else (failures + 1, most)
                if failures >= TRIES or (400 <= status < 500 and status not in (408, 416, 425, 429)):
                    raise DownloadError(f"{url}: {reason}") from None
                if status == 416:  # the server has no bytes from here on: begin again
                    os.truncate(output, 0)
            time.sleep(pause * 2**failures)

    return run


def _receive(url: str, output: Path, limit: int, progress: Progress) -> None:
    """Append the missing bytes to a file; a server that cannot send a part of it sends all of it."""
    import requests

    have = output.stat().st_size
    headers = {"Accept-Encoding": "identity", "User-Agent": "pullback"} | ({"Range": f"bytes={have}-"} if have else {})
    with requests.get(url, headers=headers, stream=True, timeout=TIMEOUT) as response, open(output, "r+b") as file:
        response.raise_for_status()
        have = have if response.headers.get("Content-Range", "").startswith(f"bytes {have}-") else 0
        file.truncate(have)
        file.seek(have)
        length = response.headers.get("Content-Length", "")
        total = have + int(length) if re.fullmatch("[0-9]{1,18}", length) else None  # a malformed one says nothing
        free = shutil.disk_usage(output.parent).free
        if total is not None and total - have > free:
            raise DownloadError(f"{url}: {(total - have) / 1e9:.1f} GB to come, {free / 1e9:.1f} GB free in {output.parent}")
        for chunk in response.raw.stream(CHUNK, decode_content=False):
            have += len(chunk)
            if have > limit:
                raise DownloadError(f"{url}: more than the {limit:,} bytes that it should have at most")
            file.write(chunk)
            progress(url.rpartition("/")[2], have, total)
    if total is not None and have < total:
        raise requests.ConnectionError(f"the connection broke after {have:,} of {total:,} bytes")


def _unpack(archive: Path, files: dict[str, Path], checksums: dict[Path, str], limit: int, progress: Progress) -> None:
    """Unpack some members, `{member: path}`; each file appears complete and checked, or not at all."""
    try:
        with zipfile.ZipFile(archive) as opened, tempfile.TemporaryDirectory(dir=archive.parent) as folder:
            members = {member.filename: member for member in opened.infolist()}
            for member in members.values():
                _refuse_outsider(archive, member)
            if absent := files.keys() - members.keys():
                raise DownloadError(f"{archive.name}: there is no {min(absent)} in it; the publisher has changed the archive")
            size, free = sum(members[name].file_size for name in files), shutil.disk_usage(archive.parent).free
            if size > limit:
                raise DownloadError(f"{archive.name}: {size:,} bytes unpacked, more than the {limit:,} expected")
            if size > free:
                raise DownloadError(f"{archive.name}: {size / 1e9:.1f} GB unpacked, but {free / 1e9:.1f} GB free")
            for name, path in files.items():
                temporary = Path(folder) / "file"
                with opened.open(name) as source, open(temporary, "wb") as target:
                    while chunk := source.read(CHUNK):  # ends at the member's stated size, and checks its CRC
                        target.write(chunk)
                        progress(path.name, target.tell(), members[name].file_size)
                if path in checksums and (found := sha256(temporary)) != checksums[path]:
                    raise DownloadError(f"{path}: the file in the archive has the SHA-256 {found}, not {checksums[path]}")
                path.parent.mkdir(parents=True, exist_ok=True)
                temporary.replace(path)
    except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, NotImplementedError) as error:
        raise DownloadError(f"{archive.name}: not a sound zip archive: {error}") from None


def _refuse_outsider(archive: Path, member: zipfile.ZipInfo) -> None:
    name = member.orig_filename
    parts = re.split(r"[/\\]", name)
    if parts[0] == "" or ".." in parts or re.match(r"[A-Za-z]:", name) or "\0" in name:
        raise DownloadError(f"{archive.name}: the member {name!r} would be written outside its folder; refused")
    if stat.S_IFMT(member.external_attr >> 16) not in (0, stat.S_IFREG, stat.S_IFDIR):
        raise DownloadError(f"{archive.name}: the member {name!r} is a link or a special file; refused")


def _is_there(path: Path, checksum: str | None) -> bool:
    """Whether a file exists, plain or gzipped; an error if its content is not the publisher's."""
    there = next((each for each in (path, path.with_name(f"{path.name}.gz")) if each.exists()), None)
    if there is None or checksum is None:
        return there is not None
    try:
        found = sha256(there) if there == path else content_sha256(there)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DownloadError(f"{there} exists, but cannot be unzipped ({error}); move it away and try again") from None
    if found != checksum:
        wrong = f"the SHA-256 of its content is {found}, not {checksum}"
        raise DownloadError(f"{there} exists, but {wrong}; move it away and try again")
    return True


@contextlib.contextmanager
def _work_folder(data: Path) -> Iterator[Path]:
    """The folder of unfinished downloads, for one process at a time; temporary files of killed processes are removed."""
    work = data / ".download"
    work.mkdir(parents=True, exist_ok=True)
    folder = os.open(work, os.O_RDONLY)
    try:
        try:
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise DownloadError(f"another process is downloading to {data}; wait for it, then try again") from None
        for leftover in work.glob("tmp*"):
            shutil.rmtree(leftover) if leftover.is_dir() and not leftover.is_symlink() else leftover.unlink()
        yield work
    finally:
        os.close(folder)
        with contextlib.suppress(OSError):
            work.rmdir()
