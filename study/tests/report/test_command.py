"""`pullback report` on the command line."""

from pathlib import Path

import pytest

typer_testing = pytest.importorskip("typer.testing")


@pytest.fixture
def invoke(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        from pullback_study.cli import app

        return typer_testing.CliRunner().invoke(app, ("report", *arguments), env={"COLUMNS": "160"})

    return run


def test_it_explains_itself(invoke):
    result = invoke("--help")
    assert result.exit_code == 0
    assert "pullback report --runs runs --out report.html" in result.output


def test_a_page_is_written(invoke, folder):
    result = invoke("--runs", str(folder), "--out", "page/report.html")
    assert result.exit_code == 0, result.output
    assert "wrote page/report.html (0." in result.output
    assert Path("page/report.html").read_text().startswith("<!doctype html>")


def test_without_runs_the_page_says_what_is_missing(invoke):
    result = invoke()
    assert result.exit_code == 0
    assert "runs/ is not there" in result.output
    assert "pullback reproduce table1 --grid" in Path("report.html").read_text()


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (("--out", "."), "is a folder; name a file"),
        (("--benchmarks", "none.json"), "python -m benchmarks --json none.json"),
        (("--out", "/proc/none/report.html"), "cannot be written"),
        (("--serve", "--port", "70000"), "--port"),
    ],
    ids=str,
)
def test_a_mistake_gets_a_hint_and_no_stack_trace(invoke, arguments, hint):
    result = invoke(*arguments)
    assert result.exit_code == 2
    assert hint in " ".join(result.output.split())
    assert "Traceback" not in result.output


def test_trees_are_parsed_where_there_are_none(invoke, tmp_path, monkeypatch):
    """With a parser that stands in for a trained model, which needs the data."""
    from types import SimpleNamespace

    from pullback_study.report.trees import read_trees
    from report.folders import text_run

    run = text_run(tmp_path / "runs", "a" * 16, "spigot", [])
    (run / "trees.jsonl").unlink()
    broken = text_run(tmp_path / "runs", "b" * 16, "ste-i", [])
    (broken / "trees.jsonl").unlink()

    def parse(sentences):
        return [SimpleNamespace(tokens=s, heads=range(len(s)), mu=None, label="positive") for s in sentences]

    def load_parser(path, data):
        if path.name == "b" * 16:
            raise ValueError("no checkpoint")
        return SimpleNamespace(task="sst", parse=parse)

    monkeypatch.setattr("pullback_study.trees.parser.load_parser", load_parser)
    monkeypatch.setattr("pullback_study.trees.sample.task_sentences", lambda task, data: [("Fun", "."), ("Dull", ".")])
    result = invoke("--trees", "--data", str(tmp_path))
    assert result.exit_code == 0, result.output
    assert "parsed 2 test sentences: sst, spigot" in result.output
    assert "no trees of sst, ste-i (bbbbbbbb): no checkpoint" in result.output
    assert [tree["tokens"] for tree in read_trees(run)[0]] == [["Fun", "."], ["Dull", "."]]
