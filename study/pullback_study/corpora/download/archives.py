"""Members of a zip archive, unpacked with distrust.

An archive with a single entry that would be written outside its folder (an absolute path, `..`, a symbolic link) is
refused as a whole, whether or not that entry is wanted.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
import zipfile
import zlib
from pathlib import Path

from pullback_study.corpora.checksums import sha256
from pullback_study.corpora.download.transfer import CHUNK, DownloadError, Progress


def unpack(
    archive: Path, files: dict[str, Path], *, checksums: dict[Path, str], limit: int, progress: Progress
) -> None:
    """Unpack some members; each file appears complete and checked, or not at all.

    Args:
        archive: a zip archive.
        files: the path of each member that is wanted.
        checksums: SHA-256 of files, as far as known.
        limit: the most bytes that all of them together may have.
        progress: told about the bytes as they are written.
    """
    try:
        with zipfile.ZipFile(archive) as opened:
            for member in opened.infolist():
                refuse_outsider(archive, member)
            wanted = [(_member(archive, opened, name), path) for name, path in files.items()]
            size = sum(member.file_size for member, _ in wanted)
            if size > limit:
                raise DownloadError(
                    f"{archive.name}: {size:,} bytes unpacked, more than the {limit:,} expected; refused"
                )
            for member, path in wanted:
                _write(opened, member, path, checksums.get(path), progress)
    except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, NotImplementedError) as error:
        raise DownloadError(f"{archive.name}: not a sound zip archive: {error}") from None


def refuse_outsider(archive: Path, member: zipfile.ZipInfo) -> None:
    """An error for a member that would not stay inside the folder it is unpacked to."""
    name = member.orig_filename
    parts = re.split(r"[/\\]", name)
    if parts[0] == "" or ".." in parts or re.match(r"[A-Za-z]:", name) or "\0" in name:
        raise DownloadError(f"{archive.name}: the member {name!r} would be written outside its folder; refused")
    kind = stat.S_IFMT(member.external_attr >> 16)
    if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
        raise DownloadError(f"{archive.name}: the member {name!r} is a link or a special file; refused")


def _member(archive: Path, opened: zipfile.ZipFile, name: str) -> zipfile.ZipInfo:
    try:
        return opened.getinfo(name)
    except KeyError:
        raise DownloadError(
            f"{archive.name}: there is no {name} in it; the publisher has changed the archive"
        ) from None


def _write(
    opened: zipfile.ZipFile, member: zipfile.ZipInfo, path: Path, checksum: str | None, progress: Progress
) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(path.parent).free
    if member.file_size > free:
        raise DownloadError(f"{path}: {member.file_size / 1e9:.1f} GB needed, {free / 1e9:.1f} GB free")
    temporary = _temporary(path)
    try:
        with opened.open(member) as source, open(temporary, "wb") as target:
            while chunk := source.read(CHUNK):  # ends at the member's stated size, and checks its CRC
                target.write(chunk)
                progress(path.name, target.tell(), member.file_size)
            target.flush()
            os.fsync(target.fileno())
        if checksum is not None and (found := sha256(temporary)) != checksum:
            raise DownloadError(f"{path}: the file in the archive has the SHA-256 {found}, not {checksum}")
        os.replace(temporary, path)
    finally:
        remove_unfinished(path)


def remove_unfinished(path: Path) -> None:
    """Remove what a process that was killed has left of a file; for those who hold the lock of the downloads."""
    _temporary(path).unlink(missing_ok=True)


def _temporary(path: Path) -> Path:
    """The same name in every process, so that a later one finds it; beside the file, so that it can be renamed."""
    return path.with_name(f".{path.name}.unpacking")
