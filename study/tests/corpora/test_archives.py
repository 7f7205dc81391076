"""Archives that are downloaded: what is wanted of them is unpacked, whole, and nothing outside the folder."""

from __future__ import annotations

import io
import signal
import stat
import subprocess
import sys
import zipfile

import pytest

from corpora.server import digest, everything
from pullback_study.corpora.download import DownloadError, Source


def zipped(*members):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for member in members:
            archive.writestr(*member)
    return file.getvalue()


def archive(site, content, **options):
    site.files["/a.zip"] = content
    return Source(f"{site.address}/a.zip", {"trees/x.txt": "set/x.txt"}, **options)


GOOD = ("trees/x.txt", b"hello")


def test_members_of_an_archive(site, fetch, tmp_path):
    fetch(
        archive(
            site, zipped(("trees/", b""), GOOD, ("trees/other.txt", b"no")), checksums={"set/x.txt": digest(b"hello")}
        )
    )
    assert everything(tmp_path) == {"set/x.txt": b"hello"}


def link(name):
    info = zipfile.ZipInfo(name)
    info.create_system, info.external_attr = 3, (stat.S_IFLNK | 0o777) << 16
    return info, b"/etc"


@pytest.mark.parametrize(
    ("member", "reason"),
    [
        (("../evil", b"x"), "would be written outside its folder"),
        (("trees/../../evil", b"x"), "would be written outside its folder"),
        (("/tmp/evil", b"x"), "would be written outside its folder"),
        (("..\\evil", b"x"), "would be written outside its folder"),
        (("C:\\evil", b"x"), "would be written outside its folder"),
        (link("trees/link"), "is a link or a special file"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_an_archive_that_would_write_outside_is_refused_as_a_whole(site, fetch, tmp_path, member, reason):
    with pytest.raises(DownloadError, match=reason):
        fetch(archive(site, zipped(GOOD, member)))
    assert everything(tmp_path) == {}


def test_other_archives_that_are_not_what_they_should_be(site, fetch, tmp_path):
    whole = zipped(GOOD)
    damaged = whole.replace(b"hello", b"hellO") if b"hello" in whole else whole[:40] + b"\xff" + whole[41:]
    for content, options, reason in (
        (b"<html>not a zip</html>", {}, "not a sound zip archive"),
        (damaged, {}, "not a sound zip archive"),
        (zipped(("trees/y.txt", b"")), {}, "there is no trees/x.txt in it"),
        (zipped(("trees/x.txt", bytes(10_000_000))), {"limit": 1000}, "10,000,000 bytes unpacked, more than the 1,000"),
        (whole, {"checksums": {"set/x.txt": "00"}}, "has the SHA-256"),
    ):
        with pytest.raises(DownloadError, match=reason):
            fetch(archive(site, content, **options))
        assert everything(tmp_path) == {}


def test_an_archive_that_arrived_whole_is_kept_until_it_is_unpacked(site, fetch, tmp_path, monkeypatch):
    content = zipped(GOOD)
    source = archive(site, content, sha256=digest(content))
    full = type("Usage", (), {"free": 2})
    with monkeypatch.context() as patch:
        patch.setattr("pullback_study.corpora.download.archives.shutil.disk_usage", lambda path: full)
        patch.setattr("pullback_study.corpora.download.transfer._Partial._check_space", lambda *args: None)
        with pytest.raises(DownloadError, match="GB free"):
            fetch(source)
    fetch(source)
    assert everything(tmp_path) == {"set/x.txt": b"hello"}
    assert len(site.requests) == 1


@pytest.mark.parametrize("then", ["download again", "put the file there"])
def test_what_a_killed_process_had_unpacked_is_removed_by_the_next(site, fetch, tmp_path, then):
    content = zipped(GOOD)
    source = archive(site, content, sha256=digest(content))
    program = (
        "import os, signal, sys\nfrom pathlib import Path\n"
        "from pullback_study.corpora.download import Source, download\n"
        "def progress(name, done, total):\n"
        "    if name == 'x.txt': os.kill(os.getpid(), signal.SIGKILL)\n"
        "download([Source(sys.argv[2], {'trees/x.txt': 'set/x.txt'})], Path(sys.argv[1]), progress=progress)\n"
    )
    killed = subprocess.run([sys.executable, "-c", program, str(tmp_path), source.url], check=False)
    assert killed.returncode == -signal.SIGKILL
    assert len(list((tmp_path / "set").iterdir())) == 1
    if then == "put the file there":
        (tmp_path / "set" / "x.txt").write_bytes(b"hello")
    fetch(source)
    assert everything(tmp_path / "set") == {"x.txt": b"hello"}
