"""Members of a zip archive: checked before they are unpacked, which pooch does not do.

An archive with an entry that would be written outside its folder (an absolute path, `..`, a symbolic link) is
refused as a whole, whether or not that entry is wanted.
"""

from __future__ import annotations

import re
import shutil
import stat
import tempfile
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

from pullback_study.corpora.checksums import sha256

CHUNK = 1 << 20
Progress = Callable[[str, int, int | None], None]  # name, bytes so far, bytes in all if known


class DownloadError(ValueError):
    """A download that cannot be finished, and why."""


def unpack(archive: Path, files: dict[str, Path], *, checksums: dict[Path, str], limit: int, progress: Progress) -> None:
    """Unpack some members, `{member: path}`; each file appears complete and checked, or not at all.

    Args:
        archive: a zip archive.
        files: the path of each member that is wanted.
        checksums: SHA-256 of files, as far as known.
        limit: the largest size of all of them together, in bytes.
        progress: called as bytes are written.
    """
    try:
        with zipfile.ZipFile(archive) as opened:
            members = {member.filename: member for member in opened.infolist()}
            for member in members.values():
                _refuse_outsider(archive, member)
            for name in files:
                if name not in members:
                    raise DownloadError(f"{archive.name}: there is no {name} in it; the publisher has changed the archive")
            size = sum(members[name].file_size for name in files)
            if size > limit:
                raise DownloadError(f"{archive.name}: {size:,} bytes unpacked, more than the {limit:,} expected")
            free = shutil.disk_usage(archive.parent).free
            if size > free:
                raise DownloadError(f"{archive.name}: {size / 1e9:.1f} GB unpacked, but {free / 1e9:.1f} GB free")
            with tempfile.TemporaryDirectory(dir=archive.parent) as folder:
                for name, path in files.items():
                    _unpack(opened, members[name], Path(folder) / "file", path, checksums.get(path), progress)
    except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, NotImplementedError) as error:
        raise DownloadError(f"{archive.name}: not a sound zip archive: {error}") from None


def _unpack(
    opened: zipfile.ZipFile, member: zipfile.ZipInfo, temporary: Path, path: Path, checksum: str | None, progress: Progress
) -> None:
    with opened.open(member) as source, open(temporary, "wb") as target:
        while chunk := source.read(CHUNK):  # ends at the member's stated size, and checks its CRC
            target.write(chunk)
            progress(path.name, target.tell(), member.file_size)
    if checksum is not None and (found := sha256(temporary)) != checksum:
        raise DownloadError(f"{path}: the file in the archive has the SHA-256 {found}, not {checksum}")
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary.replace(path)


def _refuse_outsider(archive: Path, member: zipfile.ZipInfo) -> None:
    name = member.orig_filename
    parts = re.split(r"[/\\]", name)
    if parts[0] == "" or ".." in parts or re.match(r"[A-Za-z]:", name) or "\0" in name:
        raise DownloadError(f"{archive.name}: the member {name!r} would be written outside its folder; refused")
    if stat.S_IFMT(member.external_attr >> 16) not in (0, stat.S_IFREG, stat.S_IFDIR):
        raise DownloadError(f"{archive.name}: the member {name!r} is a link or a special file; refused")
