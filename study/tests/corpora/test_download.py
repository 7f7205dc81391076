"""Downloads, from a server on this machine: resumed, checked, and nothing half-written or outside the folder."""

from __future__ import annotations

import gzip

import pytest

from corpora.server import CONTENT, digest, everything
from pullback_study.corpora.download import DownloadError, Source, download
from pullback_study.corpora.download.sources import DATASETS


def plain(site, checksum=None):
    return Source(f"{site.address}/a.txt", {"": "set/a.txt"}, checksum)


def test_a_file_arrives_whole_and_nothing_else_is_left(site, fetch, tmp_path):
    steps = fetch(plain(site, digest(CONTENT)))
    assert everything(tmp_path) == {"set/a.txt": CONTENT}
    assert not (tmp_path / ".download").exists()
    assert steps[-1] == ("a.txt", len(CONTENT), len(CONTENT))


def test_what_is_there_is_not_fetched_again(site, fetch):
    fetch(plain(site))
    fetch(plain(site))
    assert len(site.requests) == 1


def test_broken_connections_are_resumed(site, fetch, tmp_path):
    site.breaks = 3
    fetch(plain(site, digest(CONTENT)))
    assert everything(tmp_path) == {"set/a.txt": CONTENT}
    assert site.requests == [None, "bytes=1000-", "bytes=2000-", "bytes=3000-"]


def test_a_later_call_goes_on_where_an_earlier_one_gave_up(site, fetch, tmp_path):
    site.breaks, site.failures = 1, []
    source = plain(site, digest(CONTENT))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("time.sleep", lambda seconds: site.failures.append(503))  # from the first pause on
        with pytest.raises(DownloadError, match=r"503 .* Run the same command again to go on from byte 1,000"):
            fetch(source)
    assert not (tmp_path / "set" / "a.txt").exists()
    site.failures, site.requests = [], []
    fetch(source)
    assert site.requests == ["bytes=1000-"]
    assert everything(tmp_path) == {"set/a.txt": CONTENT}


@pytest.mark.parametrize("known", [True, False], ids=["checksum known", "checksum not known"])
@pytest.mark.parametrize("change", ["another version", "no ranges", "no versions"])
def test_versions_are_never_mixed(site, fetch, tmp_path, change, known):
    new = CONTENT[::-1]
    site.breaks = 1
    with pytest.MonkeyPatch.context() as patch:

        def publish_another(seconds):
            site.files["/a.txt"] = new
            site.tag = '"v2"'
            site.ranges = change != "no ranges"

        if change == "no versions":
            site.tag = None
            patch.setattr("time.sleep", lambda seconds: site.files.update({"/a.txt": CONTENT if known else new}))
        else:
            patch.setattr("time.sleep", publish_another)
        expected = CONTENT if change == "no versions" and known else new
        fetch(plain(site, digest(expected) if known else None))
    assert everything(tmp_path) == {"set/a.txt": expected}


def test_a_server_that_sends_other_bytes_than_it_was_asked_for(site, fetch, tmp_path):
    site.breaks, site.shift = 1, -500
    fetch(plain(site))
    assert site.requests == [None, "bytes=1000-", None]
    assert everything(tmp_path) == {"set/a.txt": CONTENT}


def test_a_transfer_that_was_complete_but_not_published_is_not_fetched_again(site, fetch, tmp_path):
    site.breaks, site.broken_after = 1, len(CONTENT) - 1
    with pytest.MonkeyPatch.context() as patch:
        part = tmp_path / ".download" / "a.txt.part"
        patch.setattr("time.sleep", lambda seconds: part.write_bytes(CONTENT))
        fetch(plain(site))
    assert site.requests == [None, f"bytes={len(CONTENT)}-"]
    assert everything(tmp_path) == {"set/a.txt": CONTENT}


@pytest.mark.parametrize("ranges", [True, False], ids=["ranges", "no ranges"])
def test_a_server_that_never_gets_to_the_end_is_given_up(site, fetch, tmp_path, ranges):
    site.breaks, site.ranges, site.shift = 100, ranges, len(CONTENT)
    site.broken_after = 0 if ranges else 1000
    with pytest.raises(DownloadError, match=r"Run the same command again to go on from byte"):
        fetch(plain(site))
    assert len(site.requests) < 10
    assert not (tmp_path / "set").exists()


def test_a_wrong_checksum(site, fetch, tmp_path):
    with pytest.raises(DownloadError, match=f"SHA-256 is {digest(CONTENT)}, not 00"):
        fetch(plain(site, "00"))
    assert everything(tmp_path) == {}


def test_a_file_that_is_there_but_differs_is_not_overwritten(site, fetch, tmp_path):
    (tmp_path / "set").mkdir()
    (tmp_path / "set" / "a.txt").write_text("mine")
    with pytest.raises(DownloadError, match=r"a.txt is there, but its SHA-256 is .* move it away"):
        fetch(Source(f"{site.address}/a.txt", {"": "set/a.txt"}, digest(CONTENT), {"set/a.txt": digest(CONTENT)}))
    assert everything(tmp_path) == {"set/a.txt": b"mine"}


def test_a_file_that_is_there_gzipped_is_not_fetched_again(site, fetch, tmp_path):
    source = Source(f"{site.address}/a.txt", {"": "set/a.txt"}, digest(CONTENT), {"set/a.txt": digest(CONTENT)})
    zipped = tmp_path / "set" / "a.txt.gz"
    zipped.parent.mkdir()
    zipped.write_bytes(gzip.compress(CONTENT))
    fetch(source)
    fetch(plain(site))
    assert site.requests == []
    assert list(everything(tmp_path)) == ["set/a.txt.gz"]
    for content, reason in (
        (gzip.compress(b"mine"), r"a.txt.gz is there, but its content's SHA-256 is .* move it away"),
        (gzip.compress(CONTENT)[:-100], r"a.txt.gz is there, but cannot be unzipped .* move it away"),
    ):
        zipped.write_bytes(content)
        with pytest.raises(DownloadError, match=reason):
            fetch(source)
        assert everything(tmp_path) == {"set/a.txt.gz": content}


def test_an_address_without_a_file_or_a_server(site, fetch, tmp_path):
    with pytest.raises(DownloadError, match=r"/b.txt: the server answers 404"):
        fetch(Source(f"{site.address}/b.txt", {"": "b.txt"}))
    with pytest.raises(DownloadError, match=r"refused.* Run the same command again"):
        fetch(Source("http://127.0.0.1:1/b.txt", {"": "b.txt"}))
    assert everything(tmp_path) == {}


def test_one_process_at_a_time(site, fetch, tmp_path):
    def another(*step):
        with pytest.raises(DownloadError, match="another process is downloading"):
            fetch(plain(site))

    download([plain(site)], tmp_path, progress=another)
    assert everything(tmp_path) == {"set/a.txt": CONTENT}


def test_a_disk_that_is_full(site, fetch, tmp_path, monkeypatch):
    full = type("Usage", (), {"free": 2})
    monkeypatch.setattr("pullback_study.corpora.download.transfer.shutil.disk_usage", lambda path: full)
    with pytest.raises(DownloadError, match=r"0.0 GB to come, but .* has 0.0 GB free"):
        fetch(plain(site))


def test_the_list_of_sources_is_sound():
    paths = [path for dataset in DATASETS.values() for source in dataset.sources for path in source.files.values()]
    assert len(paths) == len(set(paths)) == 10
    for dataset in DATASETS.values():
        for source in dataset.sources:
            assert source.url.startswith("https://")
            assert all(len(each) == 64 for each in (source.sha256, *source.checksums.values()))
            assert set(source.checksums) <= set(source.files.values())
