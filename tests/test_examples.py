"""Every example runs, and its own assertions hold."""

import runpy
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("*.py"))


NEEDS = {"crf_trainer": ["transformers", "accelerate"], "crf_lightning": ["lightning"]}


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_it_is_read_in_ten_minutes(path):
    assert len(path.read_text().splitlines()) < 120


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_it_runs(path):
    for package in NEEDS.get(path.stem, []):
        pytest.importorskip(package)
    runpy.run_path(str(path), run_name="__main__")


@pytest.mark.parametrize("kind", [[], ["--nonprojective"]], ids=["projective", "nonprojective"])
@pytest.mark.parametrize("loss", ["softmax", "crf", "hinge", "sparsemap"])
def test_the_parser_learns_with_every_loss(loss, kind, monkeypatch, capsys):
    """Without data it learns two sentences by heart."""
    monkeypatch.setattr("sys.argv", ["parser", "--data", "nowhere", "--epochs", "12", "--loss", loss, *kind])
    runpy.run_path(str(EXAMPLES[0].parent / "dependency_parser.py"), run_name="__main__")
    assert capsys.readouterr().out.rstrip().endswith("UAS 100.00, LAS 100.00")


@pytest.mark.parametrize("crf", ["softmax", "pytorch-crf", "pullback"])
def test_the_tagger_learns_with_every_crf(crf, monkeypatch, capsys):
    if crf == "pytorch-crf":
        pytest.importorskip("torchcrf")
    monkeypatch.setattr("sys.argv", ["tagger", "--data", "nowhere", "--epochs", "12", "--crf", crf])
    runpy.run_path(str(EXAMPLES[0].parent / "pos_tagger.py"), run_name="__main__")
    assert "accuracy 100.00" in capsys.readouterr().out.splitlines()[-1]
