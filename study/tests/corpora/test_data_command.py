"""`pullback data check` and `pullback data download`."""

import pytest

from corpora.server import serve
from pullback_study.corpora import check, layout
from pullback_study.corpora.download import DATASETS, Dataset, Source

typer_testing = pytest.importorskip("typer.testing")


@pytest.fixture
def invoke(monkeypatch):
    monkeypatch.delenv("PULLBACK_DATA", raising=False)

    def run(*arguments, columns=200):
        from pullback_study.cli import app

        result = typer_testing.CliRunner().invoke(app, ["data", *map(str, arguments)], env={"COLUMNS": str(columns)})
        return result.exit_code, " ".join(result.output.split())

    return run


@pytest.fixture
def official(monkeypatch):
    """The small folder's counts in the place of the official ones."""
    for counts, small in ((layout.SST_TREES, (3, 1, 2)), (layout.SNLI_PAIRS, (30, 2, 2))):
        for split, count in zip(layout.SPLITS, small, strict=True):
            monkeypatch.setitem(counts, split, count)
    monkeypatch.setattr(layout, "SNLI_PART", 3)


def test_check_shows_counts_what_is_left_out_and_coverage(invoke, data, official):
    status, output = invoke("check", data)
    assert status == 0
    assert "sst/train.txt 3 3 2 1 neutral ≠ published" in output
    assert "snli/snli_1.0_train.first100k.jsonl.gz 3 (10.0%) 30 2 1 no gold label not known" in output
    assert "EWT train missing 12,544" in output
    assert "tiny 9 2 81.8%" in output


def test_the_numbers_of_check_are_whole_in_80_columns(invoke, data, monkeypatch):
    coverage = {"SST": 0.9811, "SNLI": 0.9822, "EWT": 0.9833}
    vectors = [check.VectorCheck("glove.840B.300d", 2_196_017, 300, coverage)]
    files = {title: [check.FileCheck("snli/train.jsonl", 550_152, 550_152, 549_367)] for title in coverage}
    monkeypatch.setattr(check, "check", lambda data, watch: check.DataCheck(files, vectors))
    _, output = invoke("check", data, columns=80)
    assert "550,152 550,152 549,367" in output
    assert "2,196,017 300 98.1% 98.2% 98.3%" in output


def test_check_names_what_is_broken_and_goes_on(invoke, data, official):
    (data / "sst" / "dev.txt").write_text("(9 a)\n")
    (data / "vectors" / "bad.txt").write_text("a 1 2\nb 1\n")
    (data / "snli" / "snli_1.0_test.jsonl").write_text("")
    status, output = invoke("check", data)
    assert status == 1
    assert "dev.txt, line 1: the label 9 is not one of 0 to 4" in output
    assert "bad.txt, line 2: 1 numbers after the word; the file's vectors have 2" in output
    assert "snli_1.0_test.jsonl: 0 rows where 2 should be" in output
    assert "sst/test.txt 2 2 1 1 neutral" in output


def test_check_passes_over_what_is_not_a_file_of_vectors(invoke, data, official):
    (data / "vectors" / "foo.npz.gz").write_bytes(b"")
    (data / "vectors" / "plain.txt").write_text("a 1 2\n")
    status, output = invoke("check", data)
    assert status == 0
    assert "foo" not in output
    assert "plain 1 2" in output


def test_check_goes_on_after_vectors_that_cannot_be_found(invoke, data, official, monkeypatch):
    monkeypatch.setattr(layout, "vector_names", lambda data: ["gone", "tiny"])
    status, output = invoke("check", data)
    assert status == 1
    assert "gone broken" in output
    assert "tiny 9 2 81.8%" in output


def test_check_of_an_empty_folder_or_none(invoke, tmp_path):
    status, output = invoke("check", tmp_path)
    assert status == 1
    assert "There is no data in" in output
    status, output = invoke("check")
    assert status == 2
    assert "PULLBACK_DATA" in output


def test_download_then_again(invoke, tmp_path, monkeypatch):
    monkeypatch.setenv("no_proxy", "*")
    with serve() as site:
        site.files["/x.txt"] = b"hello"
        monkeypatch.setitem(DATASETS, "sst", Dataset("X", "5 bytes", (Source(f"{site.address}/x.txt", {"": "s/x"}),)))
        status, output = invoke("download", tmp_path / "new", "--only", "sst")
        assert (status, (tmp_path / "new" / "s" / "x").read_bytes()) == (0, b"hello")
        assert "X (5 bytes)" in output
        status, output = invoke("download", tmp_path / "new", "--only", "sst")
        assert status == 0
        assert "is there already" in output
        site.files.clear()
        status, output = invoke("download", tmp_path / "other", "--only", "sst")
        assert status == 2
        assert "the server answers 404" in output


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (("download",), "PULLBACK_DATA"),
        (("download", "x", "--only", "sts"), "did you mean 'sst'?"),
        (("download", "/dev/null/x", "--only", "sst"), "cannot write to /dev/null/x"),
    ],
)
def test_a_mistake_gets_a_hint(invoke, arguments, hint):
    status, output = invoke(*arguments)
    assert status == 2
    assert hint in output
