"""Downloads from a server on this machine: checked, and never a file that a later run takes for data."""

from __future__ import annotations

import contextlib
import gzip
import io
import os
import re
import signal
import socketserver
import subprocess
import sys
import threading
import zipfile

import pytest

from corpora.server import CONTENT, digest, everything
from pullback_study.corpora.download import DATASETS, DownloadError, Source, download


def plain(site, content=CONTENT, **options):
    return Source(f"{site.address}/a.txt", {"": "set/a.txt"}, digest(content), {"set/a.txt": digest(content)}, **options)


def test_a_file_arrives_whole_and_nothing_else_is_left(site, fetch, tmp_path):
    steps = fetch(plain(site))
    assert everything(tmp_path) == {"set/a.txt": CONTENT}
    assert not (tmp_path / ".download").exists()
    assert steps[-1] == ("a.txt", len(CONTENT), len(CONTENT))
    fetch(plain(site))
    assert len(site.requests) == 1


@pytest.mark.parametrize("ranges", [True, False])
def test_broken_connections_are_resumed(site, fetch, tmp_path, monkeypatch, ranges):
    monkeypatch.setattr("pullback_study.corpora.download.CHUNK", 100)
    site.breaks, site.ranges = 3, ranges
    fetch(plain(site))
    assert everything(tmp_path) == {"set/a.txt": CONTENT}
    starts = (1000, 2000, 3000) if ranges else (1000, 1000, 1000)
    assert site.requests == [None, *(f"bytes={start}-" for start in starts)]


def test_a_server_that_sends_other_bytes_than_were_requested(site, fetch, tmp_path, monkeypatch):
    monkeypatch.setattr("pullback_study.corpora.download.CHUNK", 100)
    site.breaks, site.shift = 1, -500
    with pytest.raises(DownloadError, match="does not match the known hash"):
        fetch(plain(site))
    assert everything(tmp_path) == {}
    fetch(plain(site))
    assert everything(tmp_path) == {"set/a.txt": CONTENT}


WRONG = {
    "other content": (CONTENT[::-1], None, "does not match the known hash"),
    "an error page": (b"<html>Service unavailable</html>", None, "does not match the known hash"),
    "nothing": (b"", None, "does not match the known hash"),
    "truncated": (CONTENT[:-1], None, "does not match the known hash"),
    "truncated, without a length": (CONTENT[:-1], "", "does not match the known hash"),
    "one byte more": (CONTENT + b"x", None, "does not match the known hash"),
    "truncated, length banana": (CONTENT[:-1], "banana", "does not match the known hash"),
    "length too large": (CONTENT, "99999", "broke after|IncompleteRead"),
    "length too small": (CONTENT, "100", "does not match the known hash"),
    "negative length": (CONTENT[:-1], "-5", "does not match the known hash"),
    "a huge length": (CONTENT, "9" * 17, "GB to come"),
    "a length of arabic digits": (CONTENT[:-1], "٣", "does not match the known hash"),
    "endless": (bytes(300_000), "", "more than the 200,000 bytes"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_bad_download_is_a_clear_error_and_leaves_nothing(site, fetch, tmp_path, case):
    content, site.length, reason = WRONG[case]
    if site.length and not site.length.isascii():
        site.length = site.length.encode().decode("latin-1")
    site.files["/a.txt"] = content
    with pytest.raises(DownloadError, match=rf"/a.txt: .*({reason})"):
        fetch(plain(site, limit=200_000))
    assert everything(tmp_path) == {}
    site.files["/a.txt"], site.length = CONTENT, None
    fetch(plain(site))
    assert everything(tmp_path) == {"set/a.txt": CONTENT}


ANSWERS = {
    "no answer": b"",
    "not HTTP": b"hello\r\n\r\n",
    "a status out of range": b"HTTP/1.1 999999 OK\r\n\r\nhello",
    "no content": b"HTTP/1.1 204 No Content\r\n\r\n",
    "two lengths": b"HTTP/1.1 200 OK\r\nContent-Length: 5, 6\r\n\r\nhello",
    "a length of 5000 digits": b"HTTP/1.1 200 OK\r\nContent-Length: " + b"9" * 5000 + b"\r\n\r\nhello",
    "many headers": b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 500 + b"\r\nhello",
    "a long header": b"HTTP/1.1 200 OK\r\nX: " + b"y" * 100_000 + b"\r\n\r\nhello",
    "bad chunks": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nhello\r\n0\r\n\r\n",
    "negative chunks": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-5\r\nhello\r\n0\r\n\r\n",
    "bad compression": b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 5\r\n\r\nhello",
    "a bomb": b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n" + gzip.compress(bytes(50_000_000)),
    "a redirect to a file": b"HTTP/1.1 302 Found\r\nLocation: file:///etc/passwd\r\n\r\n",
    "a redirect to itself": b"HTTP/1.1 302 Found\r\nLocation: /a.txt\r\nContent-Length: 0\r\n\r\n",
    "a redirect to nowhere": b"HTTP/1.1 302 Found\r\nLocation: http://[::bad/\r\n\r\n",
    "a part that was not requested": b"HTTP/1.1 206 Partial\r\nContent-Range: bytes banana\r\n\r\nhello",
    "no such range": b"HTTP/1.1 416 Range Not Satisfiable\r\nContent-Range: bytes */5\r\n\r\n",
}


@pytest.mark.parametrize("case", ANSWERS)
def test_whatever_the_server_answers_the_error_is_clear_and_nothing_is_left(fetch, tmp_path, case):
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), answering(ANSWERS[case])) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_address[1]}/a.txt"
        with pytest.raises(DownloadError, match=re.escape(address)):
            fetch(Source(address, {"": "set/a.txt"}, digest(CONTENT), limit=10_000_000))
        server.shutdown()
    assert everything(tmp_path) == {}


def answering(answer):
    class Handler(socketserver.BaseRequestHandler):
        def handle(self):
            while b"\r\n\r\n" not in self.request.recv(65536):
                pass
            with contextlib.suppress(OSError):
                self.request.sendall(answer)

    return Handler


def test_a_malformed_length_does_not_matter_if_the_content_is_right(site, fetch, tmp_path):
    site.length = "banana"
    fetch(plain(site))
    assert everything(tmp_path) == {"set/a.txt": CONTENT}


def test_planted_links_are_not_written_through(site, fetch, tmp_path):
    victim = tmp_path / "victim"
    victim.write_text("mine")
    work = tmp_path / ".download"
    work.mkdir()
    for name in ("a.txt", "a.txt.part", "tmp1234"):
        (work / name).symlink_to(victim)
    fetch(plain(site))
    assert victim.read_text() == "mine"
    assert (tmp_path / "set" / "a.txt").read_bytes() == CONTENT
    assert not (tmp_path / "set" / "a.txt").is_symlink()


def test_a_link_in_the_place_of_the_file_is_checked_like_a_file(site, fetch, tmp_path):
    (tmp_path / "other").write_text("mine")
    (tmp_path / "set").mkdir()
    (tmp_path / "set" / "a.txt").symlink_to(tmp_path / "other")
    with pytest.raises(DownloadError, match=r"a.txt exists, but the SHA-256 .* move it away"):
        fetch(plain(site))
    assert (tmp_path / "other").read_text() == "mine"


def test_a_server_that_never_gets_to_the_end_is_given_up(site, fetch, tmp_path):
    site.breaks, site.ranges = 100, False
    with pytest.raises(DownloadError, match=r"/a.txt: "):
        fetch(plain(site))
    assert len(site.requests) < 10
    assert everything(tmp_path) == {}


def test_a_file_that_exists_but_differs_is_not_overwritten(site, fetch, tmp_path):
    (tmp_path / "set").mkdir()
    for name, content, reason in (
        ("a.txt", b"mine", r"a.txt exists, but the SHA-256 of its content is .* move it away"),
        ("a.txt.gz", gzip.compress(b"mine"), r"a.txt.gz exists, but the SHA-256 of its content is .* move it away"),
        ("a.txt.gz", gzip.compress(CONTENT)[:-100], r"a.txt.gz exists, but cannot be unzipped .* move it away"),
    ):
        (tmp_path / "set" / name).write_bytes(content)
        with pytest.raises(DownloadError, match=reason):
            fetch(plain(site))
        assert everything(tmp_path) == {f"set/{name}": content}
        (tmp_path / "set" / name).unlink()
    (tmp_path / "set" / "a.txt.gz").write_bytes(gzip.compress(CONTENT))
    fetch(plain(site))
    assert site.requests == []


def test_an_address_without_a_file_or_a_server(site, fetch, tmp_path):
    missing = Source(f"{site.address}/b.txt", {"": "b.txt"}, digest(b""))
    with pytest.raises(DownloadError, match=r"/b.txt: .*404"):
        fetch(missing)
    assert len(site.requests) == 1
    with pytest.raises(DownloadError, match=r"127.0.0.1.*refused"):
        fetch(Source("http://127.0.0.1:1/b.txt", {"": "b.txt"}, digest(b"")))
    site.failures = [503, 503]
    fetch(plain(site))
    assert everything(tmp_path) == {"set/a.txt": CONTENT}


def test_one_process_at_a_time(site, fetch, tmp_path):
    def another(*step):
        with pytest.raises(DownloadError, match="another process is downloading"):
            fetch(plain(site))

    download([plain(site)], tmp_path, progress=another)
    assert everything(tmp_path) == {"set/a.txt": CONTENT}


@pytest.mark.parametrize("name", ["a.zip", "x.txt"], ids=["while fetching", "while unpacking"])
def test_a_killed_download_leaves_nothing_that_counts_as_data(site, fetch, tmp_path, name):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("x.txt", CONTENT)
    site.files["/a.zip"] = file.getvalue()
    source = Source(f"{site.address}/a.zip", {"x.txt": "set/x.txt"}, digest(file.getvalue()))
    program = (
        "import os, signal, sys\nfrom pathlib import Path\n"
        "from pullback_study.corpora.download import Source, download\n"
        "def progress(name, *_):\n    if name == sys.argv[4]: os.kill(os.getpid(), signal.SIGKILL)\n"
        "download([Source(sys.argv[2], {'x.txt': 'set/x.txt'}, sys.argv[3])], Path(sys.argv[1]), progress=progress)\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", program, str(tmp_path), source.url, source.sha256, name]
    assert subprocess.run(command, env=environment, check=False).returncode == -signal.SIGKILL
    assert everything(tmp_path)
    assert not (tmp_path / "set").exists()
    fetch(source)
    assert everything(tmp_path) == {"set/x.txt": CONTENT}


def test_pooch_is_imported_for_downloads_alone():
    program = "import sys, pullback_study.corpora.check, pullback_study.cli; sys.exit('pooch' in sys.modules)"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    assert subprocess.run([sys.executable, "-c", program], env=environment, check=False).returncode == 0


def test_the_list_of_sources_is_sound():
    sources = [source for dataset in DATASETS.values() for source in dataset.sources]
    paths = [path for source in sources for path in source.files.values()]
    assert len(paths) == len(set(paths)) == 10
    for source in sources:
        assert source.url.startswith("https://")
        assert all(len(each) == 64 for each in (source.sha256, *source.checksums.values()))
        assert set(source.checksums) <= set(source.files.values())
