"""Downloads from a server on this machine: checked, and never a file that a later run takes for data."""

from __future__ import annotations

import gzip
import io
import os
import stat
import subprocess
import sys
import zipfile

import pytest

from corpora.server import CONTENT, digest, everything
from pullback_study.corpora.download import DATASETS, Source


def plain(site, content=CONTENT):
    return Source(f"{site.address}/a.txt", digest(content), {"": digest(content)}, "set")


def test_a_file_arrives_whole_and_nothing_else_is_left(site, fetch, tmp_path):
    assert fetch(plain(site)) == [tmp_path / "set" / "a.txt"]
    assert everything(tmp_path) == {"set/a.txt": CONTENT}
    assert [path.name for path in tmp_path.iterdir()] == ["set"]
    assert fetch(plain(site)) == []
    assert site.requests == 1


def test_broken_connections_and_busy_servers_are_tried_again(site, fetch, tmp_path):
    site.breaks, site.failures = 2, [503]
    fetch(plain(site))
    assert everything(tmp_path) == {"set/a.txt": CONTENT}
    assert site.requests == 4


WRONG = {
    "other content": (CONTENT[::-1], None),
    "an error page": (b"<html>Service unavailable</html>", None),
    "nothing": (b"", None),
    "truncated, without a length": (CONTENT[:-1], ""),
    "length too large": (CONTENT, "99999"),
    "length banana": (CONTENT, "banana"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_bad_download_is_a_clear_error_and_leaves_nothing(site, fetch, tmp_path, case):
    site.files["/a.txt"], site.length = WRONG[case]
    with pytest.raises(ValueError, match=r"/a.txt: "):
        fetch(plain(site))
    assert everything(tmp_path) == {}
    site.files["/a.txt"], site.length = CONTENT, None
    fetch(plain(site))
    assert everything(tmp_path) == {"set/a.txt": CONTENT}


def test_an_address_without_a_file_or_a_server(site, fetch, tmp_path):
    with pytest.raises(ValueError, match=r"/b.txt: .*404"):
        fetch(Source(f"{site.address}/b.txt", digest(b""), {"": None}, "set"))
    with pytest.raises(ValueError, match=r"127.0.0.1.*refused"):
        fetch(Source("http://127.0.0.1:1/b.txt", digest(b""), {"": None}, "set"))


def test_a_file_that_exists_but_differs_is_not_overwritten(site, fetch, tmp_path):
    (tmp_path / "set").mkdir()
    for name, content, reason in (
        ("a.txt", b"mine", r"a.txt exists, but the SHA-256 of its content is .* move it away"),
        ("a.txt.gz", gzip.compress(b"mine"), r"a.txt.gz exists, but the SHA-256 of its content is .* move it away"),
        ("a.txt.gz", gzip.compress(CONTENT)[:-100], r"a.txt.gz exists, but the SHA-256 of its content is .* move it away"),
    ):
        (tmp_path / "set" / name).write_bytes(content)
        with pytest.raises(ValueError, match=reason):
            fetch(plain(site))
        assert everything(tmp_path) == {f"set/{name}": content}
        (tmp_path / "set" / name).unlink()
    (tmp_path / "set" / "a.txt.gz").write_bytes(gzip.compress(CONTENT))
    assert fetch(plain(site)) == []
    assert site.requests == 0


GOOD = ("trees/x.txt", b"hello")


def zipped(*members):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for member in members:
            archive.writestr(*member)
    return file.getvalue()


def archive(site, content, checksum=None):
    site.files["/a.zip"] = content
    return Source(f"{site.address}/a.zip", digest(content), {"trees/x.txt": checksum}, "set")


def link(name):
    info = zipfile.ZipInfo(name)
    info.create_system, info.external_attr = 3, (stat.S_IFLNK | 0o777) << 16
    return info, b"/etc"


def test_members_of_an_archive(site, fetch, tmp_path):
    content = zipped(("trees/", b""), GOOD, ("trees/other.txt", b"no"))
    fetch(archive(site, content, checksum=digest(b"hello")))
    assert everything(tmp_path) == {"set/x.txt": b"hello"}


def test_a_member_that_is_not_the_published_one_is_refused(site, fetch, tmp_path):
    with pytest.raises(ValueError, match=r"a.zip: the SHA-256 of x.txt is not [0-9a-f]{64} after unpacking"):
        fetch(archive(site, zipped(GOOD), checksum=digest(b"other")))
    assert everything(tmp_path) == {}


@pytest.mark.parametrize("name", ["../evil", "trees/../../evil", "/tmp/evil", "..\\evil", "C:\\evil", "a link"])
def test_an_archive_that_would_write_outside_is_refused_as_a_whole(site, fetch, tmp_path, name):
    with pytest.raises(ValueError, match="is a link or a special file" if name == "a link" else "outside its folder"):
        fetch(archive(site, zipped(GOOD, link("trees/link") if name == "a link" else (name, b"x"))))
    assert everything(tmp_path) == {}


def test_pooch_is_imported_for_downloads_alone():
    program = "import sys, pullback_study.corpora.download, pullback_study.cli; sys.exit('pooch' in sys.modules)"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    assert subprocess.run([sys.executable, "-c", program], env=environment, check=False).returncode == 0


def test_the_list_of_sources_is_sound():
    sources = [source for dataset in DATASETS.values() for source in dataset.sources]
    paths = [source.path(member) for source in sources for member in source.members]
    assert len(paths) == len(set(paths)) == 10
    for source in sources:
        assert source.url.startswith("https://")
        assert all(len(each) == 64 for each in (source.sha256, *filter(None, source.members.values())))
