"""Data from its publishers: fetched and checked by pooch, unpacked here.

Files appear under their names only when they are complete and their SHA-256 is right, so nothing that a server sends is ever
taken for data by a later run. An archive with an entry that would be written outside its folder is refused as a whole.

The checksums of the three archives and of SNLI's training file are those that several public projects record for
these addresses; those of the other files were taken from copies of them, and agree with public records where any exist.
"""

from __future__ import annotations

import json
import os
import shutil
import stat
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path, PureWindowsPath

from pullback_study.corpora.files import BROKEN, FILES, SPLITS, corpus_file, sha256

TIMEOUT = 30.0  # seconds without a byte
RETRIES = 3
WRONG = "not the published file"


@dataclass(frozen=True)
class Source:
    """A file of a publisher: a zip archive, or the file itself; members go to a folder of the data under their own names."""

    url: str
    sha256: str  # of the file at the address
    members: dict[str, str | None]  # of the archive, and their SHA-256 where it is known; "" for a file that is no archive
    folder: str

    def path(self, member: str) -> str:
        """Of a member in the data folder."""
        return f"{self.folder}/{(member or self.url).rpartition('/')[2]}"


@dataclass(frozen=True)
class Dataset:
    """The sources behind one name of `--only`, and their size in words."""

    title: str
    size: str
    sources: tuple[Source, ...]


DATASETS = {
    name: Dataset(about["title"], about["size"], tuple(Source(folder=about["folder"], **each) for each in about["sources"]))
    for name, about in json.loads(resources.files(__package__).joinpath("sources.json").read_text()).items()
}
"""By the names of `--only`."""


def download(sources: Sequence[Source], data: Path) -> list[Path]:
    """Fetch the files that are missing into the data folder, which is made if it does not exist; returns the new files.

    A file that exists already is checked, and never overwritten.
    """
    data.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".download-", dir=data) as work:
        return [path for source in sources for path in _fetch(source, data, Path(work))]


def _fetch(source: Source, data: Path, work: Path) -> list[Path]:
    import pooch
    import requests

    paths = {member: data / source.path(member) for member in source.members}
    missing = {member: path for member, path in paths.items() if not _is_there(path, source.members[member])}
    if not missing:
        return []
    pooch.get_logger().setLevel("WARNING")
    checksums = {source.url.rpartition("/")[2]: f"sha256:{source.sha256}"}
    bar = pooch.HTTPDownloader(progressbar=sys.stderr.isatty(), chunk_size=1 << 18, timeout=TIMEOUT)
    try:
        fetcher = pooch.create(work, "", registry=checksums, urls=dict.fromkeys(checksums, source.url), retry_if_failed=RETRIES)
        arrived = Path(fetcher.fetch(*checksums, downloader=bar))
    except requests.RequestException as error:
        raise ValueError(f"{source.url}: {error}") from None
    except ValueError as error:  # of the checksum
        raise ValueError(f"{source.url}: {error} Try again; if it persists, the publisher has changed the file") from None
    for member, path in missing.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        content, expected = _unpacked(arrived, member) if member else arrived, source.members[member]
        if expected is not None and not _as_published(content, expected):
            raise ValueError(f"{source.url}: the SHA-256 of {path.name} is not {expected} after unpacking; try again")
        os.replace(content, path)
    return list(missing.values())


def _unpacked(archive: Path, name: str) -> Path:
    """A member of an archive, as a file beside it."""
    with zipfile.ZipFile(archive) as opened:
        for member in opened.infolist():
            path = PureWindowsPath(member.orig_filename)  # it splits at slashes of both kinds
            if path.anchor or ".." in path.parts:
                raise ValueError(f"{archive.name}: the member {str(path)!r} would be written outside its folder; refused")
            if stat.S_IFMT(member.external_attr >> 16) not in (0, stat.S_IFREG, stat.S_IFDIR):
                raise ValueError(f"{archive.name}: the member {str(path)!r} is a link or a special file; refused")
        with opened.open(name) as source, open(archive.with_name("member"), "wb") as target:
            shutil.copyfileobj(source, target)
    return archive.with_name("member")


def _is_there(path: Path, checksum: str | None) -> bool:
    """Whether a file exists, plain or gzipped; an error if its content is not the publisher's."""
    there = next((each for each in (path, path.with_name(f"{path.name}.gz")) if each.exists()), None)
    if there is None or checksum is None:
        return there is not None
    if not _as_published(there, checksum):
        raise ValueError(f"{there} exists, but the SHA-256 of its content is not {checksum}; move it away and try again")
    return True


def _as_published(path: Path, checksum: str) -> bool:
    try:
        return sha256(path, content=True) == checksum
    except (OSError, *BROKEN):
        return False


def check(data: Path) -> list[list[str]]:
    """For each split of each corpus its file, its size in MB, and what its checksum says."""
    sources = [source for dataset in DATASETS.values() for source in dataset.sources]
    known = {source.path(member): checksum for source in sources for member, checksum in source.members.items()}
    rows = []
    for corpus, split in ((corpus, split) for corpus in FILES for split in SPLITS):
        try:
            path = corpus_file(corpus, data, split)
        except ValueError:
            rows.append([f"{corpus.upper()} {split}", "missing", ""])
            continue
        name = path.relative_to(data).as_posix()
        expected = known.get(name.removesuffix(".gz"))
        state = "not known" if expected is None else "as published" if _as_published(path, expected) else WRONG
        rows.append([name, f"{path.stat().st_size / 1e6:.1f}", state])
    return rows
