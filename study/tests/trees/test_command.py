"""`pullback parse` and `pullback trees` on a parser that the tests know: every word's head is the next one."""

import dataclasses
import os
from pathlib import Path
from types import SimpleNamespace
from xml.etree import ElementTree

import numpy as np
import pytest

from pullback.viz import tree_conllu
from pullback_study.corpora import read_conllu
from pullback_study.published import SENTENCES
from text import small

typer_testing = pytest.importorskip("typer.testing")
FILM = "A fun film ."
TREES = ["(1 (2 A) (1 dud))", "(2 (2 so) (2 so))", "(4 (2 A) (3 (3 fun) (3 film)))", "(4 (2 Fun) (2 .))", "(0 (2 A) (1 bore))"]


@dataclasses.dataclass(frozen=True)
class Analysis:
    tokens: tuple[str, ...]
    heads: tuple[int, ...]
    mu: np.ndarray
    label: str


class Chains:
    """The left-branching parser."""

    task, estimator, relaxed = "sst", "chains", False
    config = SimpleNamespace(vectors="small")

    def parse(self, sentences):
        self.unknown = {token for tokens in sentences for token in tokens} - {"A", "film"}
        return [
            Analysis(tokens, (*range(2, len(tokens) + 1), 0), np.eye(len(tokens), k=-1) + corner(len(tokens)), "positive")
            for tokens in sentences
        ]


def corner(n):
    out = np.zeros((n, n))
    out[n - 1, n - 1] = 1.0
    return out


@pytest.fixture
def invoke(tmp_path, monkeypatch):
    """The command line in a folder with two runs and some data, with the parser of the tests."""
    from pullback_study.cli import app

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("pullback_study.trees.parser.load_parser", lambda path, data: Chains())
    for name in ("5c08aa", "5c09bb"):
        (tmp_path / "runs" / name).mkdir(parents=True)
        (tmp_path / "runs" / name / "config.json").write_text("{}")
    (tmp_path / "data" / "sst").mkdir(parents=True)
    (tmp_path / "data" / "sst" / "test.txt").write_text("\n".join(TREES) + "\n")

    def run(*arguments, **options):
        environment = {"COLUMNS": "100", "PULLBACK_DATA": str(tmp_path / "data")}
        return typer_testing.CliRunner().invoke(app, arguments, env=environment, **options)

    return run


def test_a_sentence_is_drawn(invoke):
    result = invoke("parse", "--run", "5c08", FILM)
    assert result.exit_code == 0, result.output
    assert (
        result.stdout
        == """\
  ┌──────────────┐
  │  ┌─┐┌───┐┌──┐│
  │  ▼ │▼   │▼  │▼
root A fun film  .
(positive, depth 4)
"""
    )
    assert "words without a vector, all alike to the model: . fun\n" in result.stderr


@pytest.mark.parametrize("command", ["parse", "trees"])
def test_help_has_examples(invoke, command):
    assert f"pullback {command} --run 5c08" in invoke(command, "--help").output


@pytest.mark.parametrize("form", ["text", "svg", "latex", "conllu", "heatmap"])
def test_sentences_of_a_file_in_every_format(invoke, form):
    Path("reviews.txt").write_text(f"{FILM}\n\n<b> & fun\n")
    result = invoke("parse", "--run", "5c08", "--file", "reviews.txt", "--format", form)
    assert result.exit_code == 0, result.output
    expected = {"text": "depth 3", "svg": "&lt;b&gt;", "latex": r"\symbol{38}", "conllu": "# model = chains", "heatmap": "██"}
    assert expected[form] in result.stdout
    if form == "svg":
        assert len(ElementTree.fromstring(result.stdout).findall("{http://www.w3.org/2000/svg}svg")) == 2


def test_the_name_of_the_file_decides_the_format(invoke):
    for name, start in (("a.svg", "<svg "), ("a.tex", "%"), ("a.conllu", "# sent_id = 1"), ("a.txt", "  ┌")):
        assert invoke("parse", "--run", "5c08", "--out", name, FILM).exit_code == 0
        assert Path(name).read_text().startswith(start)
    invoke("parse", "--run", "5c08", "--format", "heatmap", "--out", "heat.svg", FILM)
    assert Path("heat.svg").read_text().count("<rect") == 4
    assert read_conllu(Path("a.conllu"))[0].heads == (2, 3, 4, 0)


def test_a_byte_order_mark_is_no_part_of_the_first_word(invoke, tmp_path):
    (tmp_path / "marked.txt").write_text(f"\ufeff{FILM}\n", encoding="utf-8")
    result = invoke("parse", "--run", "5c08", "--format", "conllu", "--file", "marked.txt")
    assert "1\tA\t" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (("parse", "--run", "nothing", FILM), "there is no run nothing"),
        (("parse", "--run", "5c0", FILM), "2 runs begin with 5c0: runs/5c08aa, runs/5c09bb"),
        (("parse", "--run", "5c08"), "no sentence to parse"),
        (("parse", "--run", "5c08", "  "), "no sentence to parse"),
        (("parse", "--run", "5c08", "--file", "missing.txt"), "missing.txt"),
        (("parse", "--run", "5c08", "--out", "runs", FILM), "Is a directory"),
        (("parse", "--run", "5c08", "--format", "svgg", FILM), "svgg"),
        (("parse", "--run", "5c08", "--out", "x.foo", FILM), "use one of .txt, .svg, .tex, .conllu, or give --format"),
        (("parse", "--run", "5c08", "--format", "conllu", "--out", "a.svg", FILM), "conllu cannot be written to a.svg"),
        (("parse", "--run", "5c08", "--format", "svg", "--out", "a.TXT", FILM), "--format svg cannot be written to a.TXT"),
        (("trees", "--run", "5c08", "--format", "conllu", "--out", "a.svg"), "conllu cannot be written to a.svg"),
        (("trees", "--run", "5c08", "--sample", "0"), "Invalid value for '--sample'"),
        (("trees", "--run", "5c08", "--max-length", "5"), "--max-length needs --gold"),
        (("trees", "--run", "5c08", "--gold", "data/sst/test.txt"), "test.txt, line 1"),
        (("trees", "--run", "5c08", "--gold", os.devnull), "it has no sentences"),
        (("trees", "--run", "5c08", "--run", "5c09", "--format", "svg"), "pass one --run"),
        (("trees", "--run", "5c08", "--gold", "gold.conllu", "--paper"), "leave out --format, --out and --paper"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_a_mistake_gets_a_hint_and_no_stack_trace(invoke, arguments, hint):
    result = invoke(*arguments)
    assert result.exit_code == 2, result.output
    assert hint in " ".join(result.output.split())
    assert "Traceback" not in result.output
    assert not list(Path().glob("a.*"))


def test_a_sample_is_printed_and_the_run_is_left_alone(invoke):
    kept = Path("runs/5c08aa/trees.jsonl")
    kept.write_text("the report's sample\n")
    result = invoke("trees", "--run", "5c08", "--sample", "3")
    assert result.exit_code == 0, result.output
    assert "3 of 4 test sentences" in result.stderr  # the neutral one is no part of the task
    assert result.stdout.count("root") == 3
    assert kept.read_text() == "the report's sample\n"
    assert sorted(path.name for path in kept.parent.iterdir()) == ["config.json", "trees.jsonl"]
    assert invoke("trees", "--run", "5c08", "--sample", "3").stdout == result.stdout
    assert invoke("trees", "--run", "5c08", "--sample", "9").stdout.count("root") == 4


def test_control_characters_in_sentences_and_names_are_shown_not_sent(invoke):
    evil = "\x1b[31m\u202e\x9b"
    Path(f"{evil}.conllu").write_text(tree_conllu(["a"], [0]))
    for arguments in (
        ("parse", "--run", "5c08", f"A {evil} film"),
        ("trees", "--run", "5c08", "--gold", f"{evil}.conllu"),
        ("trees", "--run", "5c08", "--sample", "1", "--out", f"out{evil}.txt"),
    ):
        result = invoke(*arguments)
        assert result.exit_code == 0, result.output
        assert "\\x1b" in result.output
        assert not {"\x1b", "\u202e", "\x9b"} & set(result.output)


def test_drawings_of_a_sample(invoke):
    result = invoke("trees", "--run", "5c08", "--sample", "2", "--out", "trees.svg")
    assert result.exit_code == 0, result.output
    assert Path("trees.svg").read_text().count("<svg") == 3  # two in one


def test_the_papers_sentences(invoke, monkeypatch):
    result = invoke("trees", "--run", "5c08", "--paper", "--out", "paper.conllu")
    assert result.exit_code == 0, result.output
    assert [parse.tokens for parse in read_conllu(Path("paper.conllu"))] == list(SENTENCES)
    assert not Path("runs/5c08aa/trees.jsonl").exists()
    assert invoke("trees", "--run", "5c08", "--paper").stdout.count("root") == 3
    monkeypatch.setattr(Chains, "estimator", "spigot")
    shown = invoke("trees", "--run", "5c08", "--paper").stdout
    assert shown.count("root") == 6
    assert "(the paper's SPIGOT, depth 5)" in shown


def test_measures_on_a_treebank(invoke):
    Path("gold.conllu").write_text(tree_conllu(FILM.split(), [2, 3, 0, 3]) + tree_conllu(["w"] * 9, [0] * 9))
    result = invoke("trees", "--run", "5c08", "--gold", "gold.conllu", "--max-length", "4", "--markdown")
    assert result.exit_code == 0, result.output
    assert "gold.conllu: 1 sentence, 4 words; 1 sentence of more than 4 words left out" in result.stdout
    assert "small has vectors for 50.0% of the words" in result.stdout
    assert "| chains 5c08aa | 50.0 [50.0, 50.0] |" in result.stdout
    assert "| right-branching | 25.0 [25.0, 25.0] |" in result.stdout


@pytest.mark.parametrize("task", ["sst", "snli"])
def test_a_trained_run(tmp_path, monkeypatch, task):
    """The same commands, from training on."""
    from pullback_study.cli import app

    data = small.write(tmp_path / "data")
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        result = typer_testing.CliRunner().invoke(app, arguments, env={"COLUMNS": "100", "PULLBACK_DATA": str(data)})
        assert result.exit_code == 0, result.output
        return result

    run("train", task, "--estimator", "marginals", "--epochs", "1", "--vectors", "tiny", "--device", "cpu")
    [config] = Path("runs").glob("*/config.json")
    name = config.parent.name[:6]
    first, *_ = small.sentences(1, 0)
    sentence = " ".join(first[0])
    drawn = run("parse", "--run", name, sentence)
    assert drawn.stdout.count("▼") == len(first[0])
    assert ("positive" in drawn.stdout or "negative" in drawn.stdout) == (task == "sst")
    assert "nowhere" in run("parse", "--run", name, f"{sentence} nowhere").stderr
    assert run("parse", "--run", name, "--format", "heatmap", sentence).stdout.count("\n") > len(first[0])
    assert "5 of" in run("trees", "--run", name, "--sample", "5").stderr
    assert run("trees", "--run", name, "--paper").stdout.count("(the paper's") == 3
