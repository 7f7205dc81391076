"""Data from its publishers: fetched and checked by pooch, unpacked here.

Files appear under their names only when they are complete and their SHA-256 is right, so nothing that a server sends is ever
taken for data by a later run. An archive with an entry that would be written outside its folder is refused as a whole.
"""

from __future__ import annotations

import gzip
import os
import shutil
import stat
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path, PureWindowsPath

from pullback_study.corpora.files import content_sha256, sha256
from pullback_study.corpora.sources import DATASETS, Dataset, Source

__all__ = ["DATASETS", "Dataset", "DownloadError", "Source", "download"]

TIMEOUT = 30.0  # seconds without a byte
RETRIES = 3


class DownloadError(ValueError):
    """A download that cannot be finished, and why."""


def download(sources: Sequence[Source], data: Path) -> list[Path]:
    """Fetch the files that are missing into the data folder, which is made if it does not exist; returns the new files.

    A file that exists already is checked, and never overwritten.
    """
    try:
        data.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".download-", dir=data) as work:
            return [path for source in sources for path in _fetch(source, data, Path(work))]
    except OSError as error:
        raise DownloadError(f"cannot write to {data}: {error}") from None


def _fetch(source: Source, data: Path, work: Path) -> list[Path]:
    import pooch
    import requests

    missing = {member: path for member, path in source.files.items() if not _is_there(data / path, source.checksums.get(path))}
    if not missing:
        return []
    pooch.get_logger().setLevel("WARNING")
    checksums = {source.url.rpartition("/")[2]: f"sha256:{source.sha256}"}
    bar = pooch.HTTPDownloader(progressbar=sys.stderr.isatty(), chunk_size=1 << 18, timeout=TIMEOUT)
    try:
        fetcher = pooch.create(work, "", registry=checksums, urls=dict.fromkeys(checksums, source.url), retry_if_failed=RETRIES)
        arrived = Path(fetcher.fetch(*checksums, downloader=bar))
    except requests.RequestException as error:
        raise DownloadError(f"{source.url}: {error}") from None
    except ValueError as error:  # of the checksum
        raise DownloadError(f"{source.url}: {error} Try again; if it persists, the publisher has changed the file") from None
    found = {"": arrived} if "" in missing else _unpack(arrived, missing, source.checksums)
    for member, path in missing.items():
        (data / path).parent.mkdir(parents=True, exist_ok=True)
        os.replace(found[member], data / path)
    return [data / path for path in missing.values()]


def _unpack(archive: Path, files: dict[str, str], checksums: dict[str, str]) -> dict[str, Path]:
    """Unpack members, `{member: path in the data folder}`, and check them; returns where each lies beside the archive."""
    found = {}
    try:
        with zipfile.ZipFile(archive) as opened:
            for member in opened.infolist():
                _refuse_outsider(archive, member)
            for i, (name, path) in enumerate(files.items()):
                found[name] = archive.with_name(f"member-{i}")
                with opened.open(name) as source, open(found[name], "wb") as target:
                    shutil.copyfileobj(source, target)
                if path in checksums and (wrong := sha256(found[name])) != checksums[path]:
                    raise DownloadError(f"{path}: the file in the archive has the SHA-256 {wrong}, not {checksums[path]}")
    except (zipfile.BadZipFile, zlib.error, KeyError) as error:
        raise DownloadError(f"{archive.name}: not the publisher's archive: {error}") from None
    return found


def _refuse_outsider(archive: Path, member: zipfile.ZipInfo) -> None:
    name = PureWindowsPath(member.orig_filename)  # it splits at slashes of both kinds
    if name.anchor or ".." in name.parts:
        raise DownloadError(f"{archive.name}: the member {member.orig_filename!r} would be written outside its folder; refused")
    if stat.S_IFMT(member.external_attr >> 16) not in (0, stat.S_IFREG, stat.S_IFDIR):
        raise DownloadError(f"{archive.name}: the member {member.orig_filename!r} is a link or a special file; refused")


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
        raise DownloadError(
            f"{there} exists, but the SHA-256 of its content is {found}, not {checksum}; move it away and try again"
        )
    return True
