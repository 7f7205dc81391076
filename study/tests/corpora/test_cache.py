"""The cache: keyed by content, complete or absent, safe with several processes, and dispensable."""

import dataclasses
import os
import subprocess
import sys
import time

import pytest
import torch

from pullback_study.corpora import corpus, files, load


@pytest.fixture
def builds(monkeypatch):
    """How often a corpus was read from its sources."""
    calls = []
    preprocess = corpus.preprocess
    monkeypatch.setattr(corpus, "preprocess", lambda *args, **options: calls.append(1) or preprocess(*args, **options))
    return calls


def assert_same(first, second):
    for split, same in ((first.train, second.train), (first.dev, second.dev), (first.test, second.test)):
        for field in dataclasses.fields(split):
            one, other = getattr(split, field.name), getattr(same, field.name)
            assert torch.equal(one, other) and one.dtype == other.dtype if torch.is_tensor(one) else one == other
    assert first.vectors.equal(second.vectors)
    assert (first.vocabulary, first.description) == (second.vocabulary, second.description)


@pytest.mark.parametrize("task", ["sst", "snli"])
def test_the_second_time_it_comes_from_the_cache_and_is_the_same(data, tmp_path, builds, task):
    first = load(task, data, "tiny", cache=tmp_path / "cache")
    second = load(task, data, "tiny", cache=tmp_path / "cache")
    assert len(builds) == 1
    assert_same(first, second)
    assert (second.train.words.dtype, second.train.offsets.dtype, second.vectors.dtype) == (
        torch.int32, torch.int64, torch.float32,
    )  # fmt: skip


def test_a_change_of_any_source_or_option_is_seen(data, tmp_path, builds):
    cache = tmp_path / "cache"
    load("snli", data, "tiny", cache=cache)
    load("snli", data, "tiny", max_tokens=2, cache=cache)
    dev = data / "snli" / "snli_1.0_dev.jsonl"
    status = dev.stat()
    dev.write_text(dev.read_text().replace("good dog", "goos dog"))
    os.utime(dev, ns=(status.st_atime_ns, status.st_mtime_ns))
    corpus = load("snli", data, "tiny", cache=cache)
    assert len(builds) == 3
    assert "good" not in corpus.vocabulary


def test_a_damaged_file_is_made_again(data, tmp_path, builds):
    cache = tmp_path / "cache"
    first = load("sst", data, "tiny", cache=cache)
    (kept,) = cache.glob("*.pt")
    whole = kept.read_bytes()
    for content in (whole[:-30], whole[: len(whole) // 2], b"", b"PK", whole[:-20] + bytes(20)):
        kept.write_bytes(content)
        assert_same(load("sst", data, "tiny", cache=cache), first)
        assert kept.read_bytes() == whole
    assert len(builds) == 6


def test_a_cache_that_cannot_be_written_costs_a_warning_only(data, tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("PULLBACK_CACHE", str(tmp_path / "file"))
    with pytest.warns(UserWarning, match="the sst corpus is not cached"):
        corpus = load("sst", data, "tiny")
    assert len(corpus.train) == 2


def test_the_users_cache_folder_is_the_default(data, tmp_path, monkeypatch):
    monkeypatch.delenv("PULLBACK_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    load("sst", data, "tiny")
    assert list((tmp_path / "xdg" / "pullback" / "corpora").glob("sst-*.pt"))


def test_while_one_process_makes_it_another_waits(data, tmp_path, builds):
    program = (
        "import sys, time\nfrom pathlib import Path\nfrom pullback_study.corpora import corpus\n"
        "preprocess = corpus.preprocess\n"
        "def slow(*args, **options):\n"
        "    print('at work', flush=True); time.sleep(0.5); return preprocess(*args, **options)\n"
        "corpus.preprocess = slow\n"
        "corpus.load('sst', Path(sys.argv[1]), 'tiny', cache=Path(sys.argv[2]))\n"
    )
    command = [sys.executable, "-c", program, str(data), str(tmp_path / "cache")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout.readline() == "at work\n"
        corpus = load("sst", data, "tiny", cache=tmp_path / "cache")
    assert (other.returncode, len(builds), len(corpus.train)) == (0, 0, 2)


def test_the_checksum_of_a_large_file_is_remembered_until_the_file_changes(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "LARGE", 1)
    read = []
    plain = files.sha256
    monkeypatch.setattr(files, "sha256", lambda path: read.append(path) or plain(path))
    path, memory = tmp_path / "large", tmp_path / "memory"
    path.write_text("one")
    first = files.remembered_sha256(path, memory)
    files.remembered.cache_clear()  # as another process would find it
    assert files.remembered_sha256(path, memory) == first
    assert len(read) == 1
    status = path.stat()
    time.sleep(0.02)
    path.write_text("two")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))  # same size, same time of modification
    assert files.remembered_sha256(path, memory) == plain(path) != first
