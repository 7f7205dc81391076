"""Archives that are downloaded: the wanted members are unpacked whole, and nothing is written outside the folder."""

from __future__ import annotations

import io
import stat
import zipfile

import pytest

from corpora.server import digest, everything
from pullback_study.corpora.download import DownloadError, Source

GOOD = ("trees/x.txt", b"hello")


def zipped(*members):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for member in members:
            archive.writestr(*member)
    return file.getvalue()


def archive(site, content, **options):
    site.files["/a.zip"] = content
    return Source(f"{site.address}/a.zip", {"trees/x.txt": "set/x.txt"}, digest(content), **options)


def link(name):
    info = zipfile.ZipInfo(name)
    info.create_system, info.external_attr = 3, (stat.S_IFLNK | 0o777) << 16
    return info, b"/etc"


def test_members_of_an_archive(site, fetch, tmp_path):
    content = zipped(("trees/", b""), GOOD, ("trees/other.txt", b"no"))
    fetch(archive(site, content, checksums={"set/x.txt": digest(b"hello")}))
    assert everything(tmp_path) == {"set/x.txt": b"hello"}
    assert not (tmp_path / ".download").exists()


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
    assert not (tmp_path / "set").exists()


def test_other_archives_that_are_not_what_they_should_be(site, fetch, tmp_path):
    whole = zipped(GOOD)
    for content, options, reason in (
        (b"<html>not a zip</html>", {}, "not a sound zip archive"),
        (whole[:40] + b"\xff" + whole[41:], {}, "not a sound zip archive"),
        (zipped(("trees/y.txt", b"")), {}, "there is no trees/x.txt in it"),
        (zipped(("trees/x.txt", bytes(10_000_000))), {"limit": 20_000}, "10,000,000 bytes unpacked, more than the 20,000"),
        (whole, {"checksums": {"set/x.txt": "00"}}, "has the SHA-256"),
    ):
        with pytest.raises(DownloadError, match=reason):
            fetch(archive(site, content, **options))
        assert not (tmp_path / "set" / "x.txt").exists()
        assert not list((tmp_path / ".download").glob("tmp*"))


def test_an_archive_that_arrived_whole_is_not_fetched_again(site, fetch, tmp_path, monkeypatch):
    source = archive(site, zipped(GOOD))
    full = type("Usage", (), {"free": 2})
    with monkeypatch.context() as patch:
        patch.setattr("pullback_study.corpora.download._receive", lambda url, output, *_: output.write_bytes(zipped(GOOD)))
        patch.setattr("pullback_study.corpora.download.shutil.disk_usage", lambda path: full)
        with pytest.raises(DownloadError, match="GB free"):
            fetch(source)
    fetch(source)
    assert everything(tmp_path) == {"set/x.txt": b"hello"}
    assert site.requests == []
