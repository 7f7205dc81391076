"""`pullback data check` and `pullback data download`."""

import io
import zipfile
from pathlib import Path

import pytest

from corpora.server import digest, serve
from pullback_study.corpora import files, load
from pullback_study.corpora.download import DATASETS, Dataset, Source

typer_testing = pytest.importorskip("typer.testing")


@pytest.fixture
def invoke(monkeypatch, tmp_path):
    monkeypatch.setenv("PULLBACK_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("PULLBACK_DATA", raising=False)

    def run(*arguments, columns=200):
        from pullback_study.cli import app

        result = typer_testing.CliRunner().invoke(app, ["data", *map(str, arguments)], env={"COLUMNS": str(columns)})
        return result.exit_code, " ".join(result.output.split())

    return run


@pytest.fixture
def published(data, monkeypatch):
    """The small folder's checksums in the place of the official ones."""
    sums = {f"{split}.txt": digest((data / "sst" / f"{split}.txt").read_bytes()) for split in files.SPLITS}
    sources = Source("", "", sums, "sst"), Source("", "", {"snli_1.0_dev.jsonl": "00"}, "snli")
    monkeypatch.setattr("pullback_study.corpora.download.DATASETS", {"all": Dataset("", "", sources)})


def test_check_lists_files_checksums_and_vectors(invoke, data, published):
    (data / "ud-ewt" / "en_ewt-ud-dev.conllu").unlink()
    status, output = invoke("check", data)
    assert status == 1
    assert "sst/train.txt 0.0 as published" in output
    assert "snli/snli_1.0_train.first100k.jsonl.gz 0.0 not known" in output
    assert "snli/snli_1.0_dev.jsonl: not the published file; move it away" in output
    assert "EWT dev missing" in output
    assert "word vectors: tiny used by default: tiny" in output
    (data / "snli" / "snli_1.0_dev.jsonl").unlink()
    assert invoke("check", data)[0] == 0
    (data / "sst" / "train.txt").unlink()
    (data / "sst" / "train.txt.gz").write_bytes(b"\x1f\x8bbroken")
    assert "sst/train.txt.gz: not the published file" in invoke("check", data)[1]


def test_control_characters_in_names_are_shown_not_sent(invoke, data):
    (data / "vectors" / "evil\x1b[31m\u202e.txt").write_text("a 1 2\n")
    _, output = invoke("check", data)
    assert "\\x1b" in output
    assert not {"\x1b", "\u202e"} & set(output)


def test_check_of_an_empty_folder_or_none(invoke, tmp_path):
    status, output = invoke("check", tmp_path)
    assert status == 1
    assert "There is no data in" in output
    status, output = invoke("check")
    assert status == 2
    assert "PULLBACK_DATA" in output


def test_the_size_of_a_download_is_the_sum(invoke):
    units = {"MB": 1e6, "GB": 1e9}
    sizes = [dataset.size.replace(",", " ").split()[:2] for dataset in DATASETS.values()]
    total = f"{sum(float(number) * units[unit] for number, unit in sizes) / 1e9:.1f} GB"
    page = Path(__file__).parents[3] / "docs" / "data.md"
    assert total in invoke("download", "--help")[1]
    assert total in page.read_text()


def test_download_then_again(invoke, tmp_path, monkeypatch):
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.setattr("pullback_study.corpora.download.RETRIES", 0)
    with serve() as site:
        site.files["/x.txt"] = b"hello"
        source = Source(f"{site.address}/x.txt", digest(b"hello"), {"": None}, "s")
        monkeypatch.setitem(DATASETS, "sst", Dataset("X", "5 bytes", (source,)))
        status, output = invoke("download", tmp_path / "new", "--only", "sst")
        assert (status, (tmp_path / "new" / "s" / "x.txt").read_bytes()) == (0, b"hello")
        assert "X (5 bytes)" in output
        status, output = invoke("download", tmp_path / "new", "--only", "sst")
        assert status == 0
        assert "already there" in output
        site.files.clear()
        status, output = invoke("download", tmp_path / "other", "--only", "sst")
        assert status == 2
        assert "404" in output


def test_downloaded_data_is_all_that_the_text_experiments_need(invoke, tmp_path, data, monkeypatch):
    """The publishers' archives in small: SST and GloVe 840B, unpacked where the loaders look for them."""
    monkeypatch.setenv("no_proxy", "*")
    trees = {f"trees/{split}.txt": (data / "sst" / f"{split}.txt").read_bytes() for split in files.SPLITS}
    glove = {"glove.840B.300d.txt": b"It 1 2\nworks 3 4\n. . . 5 6\n"}
    with serve() as site:
        for name, members in (("sst", trees), ("glove", glove)):
            file = io.BytesIO()
            with zipfile.ZipFile(file, "w") as archive:
                for member, content in members.items():
                    archive.writestr(member, content)
            site.files[f"/{name}.zip"] = file.getvalue()
            [real] = DATASETS[name].sources
            assert set(real.members) == set(members)
            source = Source(f"{site.address}/{name}.zip", digest(file.getvalue()), dict.fromkeys(members), real.folder)
            monkeypatch.setitem(DATASETS, name, Dataset(name, "", (source,)))
        new = tmp_path / "new"
        status, output = invoke("download", new, "--only", "sst", "--only", "glove")
    assert status == 0, output
    corpus = load("sst", new, cache=tmp_path / "corpora")
    assert corpus.description["vectors"] == "glove.840B.300d"
    assert [len(split) for split in (corpus.train, corpus.dev, corpus.test)] == [2, 1, 1]


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (("download",), "PULLBACK_DATA"),
        (("download", "x", "--only", "sts"), "did you mean 'sst'?"),
        (("download", "/dev/null/x", "--only", "sst"), "cannot download into /dev/null/x: Not a directory"),
    ],
)
def test_a_mistake_gets_a_hint(invoke, arguments, hint):
    status, output = invoke(*arguments)
    assert status == 2
    assert hint in output
