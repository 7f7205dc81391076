"""`pullback data check` and `pullback data download`."""

import io
import zipfile

import pytest

from corpora.server import digest, serve
from pullback_study.corpora import check, layout, load
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
def official(monkeypatch):
    """The small folder's counts in the place of the official ones."""
    for counts, small in (
        (layout.ROWS["sst"], (3, 1, 2)), (layout.ROWS["snli"], (30, 2, 2)), (layout.ROWS["ewt"], (2, 1, 1)),
    ):  # fmt: skip
        for split, count in zip(layout.SPLITS, small, strict=True):
            monkeypatch.setitem(counts, split, count)
    monkeypatch.setattr(layout, "SNLI_PART", 3)


def test_check_shows_counts_what_is_left_out_and_coverage(invoke, data, official):
    status, output = invoke("check", data)
    assert status == 0
    assert "sst/train.txt 3 3 2 1 neutral ≠ published" in output
    assert "snli/snli_1.0_train.first100k.jsonl.gz 3 (10.0%) 30 2 1 no gold label not known" in output
    assert "ud-ewt/en_ewt-ud-dev.conllu 1 1 1 ≠ published" in output
    assert "tiny 9 2 81.8%" in output
    assert "used by default: tiny" in output
    (data / "ud-ewt" / "en_ewt-ud-dev.conllu").unlink()
    assert "EWT dev missing 1" in invoke("check", data)[1]


def test_control_characters_in_names_are_shown_not_sent(invoke, data, official):
    (data / "vectors" / "evil\x1b[31m\u202e.txt").write_text("a 1 2\n")
    _, output = invoke("check", data)
    assert "\\x1b" in output
    assert not {"\x1b", "\u202e"} & set(output)


def test_the_numbers_of_check_are_whole_in_80_columns(invoke, data, monkeypatch):
    found = check.DataCheck(
        [["snli/train.jsonl", "550,152", "550,152", "549,367", "", "as published"]],
        [["glove.840B.300d", "2,196,017", "300", "98.1%", "98.2%", "98.3%"]],
    )
    monkeypatch.setattr(check, "check", lambda *args: found)
    _, output = invoke("check", data, columns=80)
    assert "550,152 550,152 549,367" in output
    assert "2,196,017 300 98.1% 98.2% 98.3%" in output


def test_check_names_what_is_broken_and_goes_on(invoke, data, official):
    (data / "sst" / "dev.txt").write_text("(9 a)\n")
    (data / "vectors" / "bad.txt").write_text("a 1 2\nb 1\n")
    (data / "snli" / "snli_1.0_test.jsonl").write_text("")
    status, output = invoke("check", data)
    assert status == 1
    assert "dev.txt, line 1: not a tree like (3 (2 It) (2 works))" in output
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


def test_check_of_an_empty_folder_or_none(invoke, tmp_path):
    status, output = invoke("check", tmp_path)
    assert status == 1
    assert "There is no data in" in output
    status, output = invoke("check")
    assert status == 2
    assert "PULLBACK_DATA" in output


def test_download_then_again(invoke, tmp_path, monkeypatch):
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.setattr("pullback_study.corpora.download.RETRIES", 0)
    with serve() as site:
        site.files["/x.txt"] = b"hello"
        source = Source(f"{site.address}/x.txt", {"": "s/x"}, digest(b"hello"))
        monkeypatch.setitem(DATASETS, "sst", Dataset("X", "5 bytes", (source,)))
        status, output = invoke("download", tmp_path / "new", "--only", "sst")
        assert (status, (tmp_path / "new" / "s" / "x").read_bytes()) == (0, b"hello")
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
    trees = {f"trees/{split}.txt": (data / "sst" / f"{split}.txt").read_bytes() for split in layout.SPLITS}
    glove = {"glove.840B.300d.txt": b"It 1 2\nworks 3 4\n. . . 5 6\n"}
    with serve() as site:
        for name, members in (("sst", trees), ("glove", glove)):
            file = io.BytesIO()
            with zipfile.ZipFile(file, "w") as archive:
                for member, content in members.items():
                    archive.writestr(member, content)
            site.files[f"/{name}.zip"] = file.getvalue()
            [real] = DATASETS[name].sources
            assert set(real.files) == set(members)
            source = Source(f"{site.address}/{name}.zip", real.files, digest(file.getvalue()))
            monkeypatch.setitem(DATASETS, name, Dataset(name, "", (source,)))
        new = tmp_path / "new"
        status, output = invoke("download", new, "--only", "sst", "--only", "glove")
    assert status == 0, output
    corpus = load("sst", new, cache=tmp_path / "corpora")
    assert corpus.description["vectors"] == "glove.840B.300d"
    assert [len(split) for split in corpus.splits.values()] == [2, 1, 1]


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
