"""Trees in run directories, and what the report makes of them."""

import json
import re
from types import SimpleNamespace

import pytest
import torch

import pullback as pb
from pullback_study.report.trees import FILE, _statistics, best_runs, forest, read_trees, write_trees
from pullback_study.results.choice import Runs
from pullback_study.trees.paper import SENTENCES
from report.folders import NASTY, halves, text_run

EXAMPLES = [" ".join(tokens) for tokens in SENTENCES]


def test_trees_are_read_as_they_were_written(tmp_path):
    tokens = ["A", "taut", "</script>", "\u2028"]
    analyses = [
        SimpleNamespace(tokens=tokens, heads=(2, 0, 2, 3), mu=None, label="positive"),
        SimpleNamespace(tokens=["Fun", "."], heads=torch.tensor([0, 1]), mu=torch.tensor([[1.0, 0.25], [0.0, 0.75]]), label=""),
    ]
    write_trees(tmp_path, analyses)
    found, bad = read_trees(tmp_path)
    assert bad == 0
    assert found[0] == {"tokens": tokens, "heads": [2, 0, 2, 3], "mu": None, "label": "positive"}
    assert found[1] == {"tokens": ["Fun", "."], "heads": [0, 1], "mu": [[0, 1, 1.0], [1, 2, 0.25], [0, 2, 0.75]], "label": None}


def test_a_tree_is_not_an_average(tmp_path):
    tree = torch.tensor([[1.0, 1.0], [0.0, 0.0]])
    write_trees(tmp_path, [SimpleNamespace(tokens=["Fun", "."], heads=[0, 1], mu=tree, label="positive")])
    assert read_trees(tmp_path)[0][0]["mu"] is None


def test_the_conventions_are_the_librarys(tmp_path):
    scores = torch.randn(1, 6, 6, generator=torch.Generator().manual_seed(0))
    tree = pb.DependencyTree(lengths=torch.tensor([6]))
    heads, mu = tree.heads(tree.argmax(scores))[0], tree.marginals(scores)[0]
    write_trees(tmp_path, [SimpleNamespace(tokens=list("abcdef"), heads=heads, mu=mu, label=None)])
    (found,), _ = read_trees(tmp_path)
    assert found["heads"] == heads.tolist()
    for head, word, weight in found["mu"]:
        there = mu[word - 1, word - 1] if head == 0 else mu[head - 1, word - 1]
        assert weight == pytest.approx(there.item(), abs=1e-3)


@pytest.mark.parametrize(
    "line",
    ["{", "[]", "7", "null", '{"tokens": ["a"]}', '{"tokens": "ab", "heads": [0, 1]}', '{"tokens": ["a"], "heads": [2]}',
     '{"tokens": ["a", "b"], "heads": [2, 1]}', '{"tokens": [], "heads": []}', '{"tokens": ["a"], "heads": [true]}',
     '{"tokens": ["a"], "heads": [0], "mu": [[0, 5, 1.0]]}', '{"tokens": ["a"], "heads": [0], "mu": [[0, 1, NaN]]}',
     '{"tokens": ["a"], "heads": [0], "mu": 3}', '{"tokens": [1], "heads": [0]}'],
)  # fmt: skip
def test_what_is_not_a_tree_is_counted_and_left_out(tmp_path, line):
    good = json.dumps({"tokens": ["a"], "heads": [0], "mu": None, "label": None})
    (tmp_path / FILE).write_text(f"{good}\n{line}\n\n")
    found, bad = read_trees(tmp_path)
    assert len(found) == bad == 1


def test_the_shape_of_trees():
    flat, chain = {"heads": [2, 0, 2, 2]}, {"heads": [0, 1, 2, 3]}
    words = [words for words, _ in _statistics("SPIGOT", [flat, chain, {"heads": [0]}])]
    assert words == ["SPIGOT", "3.00", "50%", "1.00", "1.17", "17%", "100%", "67%", "17%", "2"]
    assert [key for _, key in _statistics("SPIGOT", [])][-1] == 0


def test_sentences_stand_side_by_side_and_the_papers_come_first(tmp_path):
    text_run(tmp_path, "spigot-ce", ["Fun .", *reversed(EXAMPLES)])
    text_run(tmp_path, "marginals", [EXAMPLES[2], NASTY], mu=halves)
    page = forest(Runs(tmp_path))
    options = re.findall(r"<option[^>]*>(.*?)</option>", page)
    assert [option.startswith("paper: ") for option in options] == [True] * 3 + [False] * 2
    third = page.split('class="sentence"')[3]
    assert "weight of an arc" in third
    assert "Marginals" in third
    assert "SPIGOT-CE" in third
    assert "the paper's tree, depth" in third
    assert "This sentence is not in its sample." in page.split('class="sentence"')[1]
    assert "<script>" not in page


def test_each_estimator_shows_its_best_run(tmp_path):
    text_run(tmp_path, "spigot", ["Worse ."])
    best = text_run(tmp_path, "spigot", ["Better ."], seed=1)
    (best / "result.json").write_text('{"validation_accuracy": 85.0}')
    ((_, run),) = best_runs(Runs(tmp_path).of("sst")).items()
    assert run.path == best
    assert "Better" in forest(Runs(tmp_path))
    assert "Worse" not in forest(Runs(tmp_path))


def test_many_long_sentences_do_not_make_the_page_large(tmp_path):
    sentences = [" ".join(f"word{i}.{j}" for j in range(30)) for i in range(60)]
    for estimator in ("marginals", "sparsemap"):
        text_run(tmp_path, estimator, sentences, mu=lambda n: [[1 / n] * n for _ in range(n)])
    page = forest(Runs(tmp_path))
    assert len(page) < 9_000_000
    assert "36 more sentences" in page


def test_trees_that_cannot_be_read_are_counted(tmp_path):
    path = text_run(tmp_path, "spigot", ["Fun ."])
    (path / FILE).write_text("{\n")
    assert "cannot be read" in forest(Runs(tmp_path))
    assert "pullback report --trees" in forest(Runs(tmp_path / "none"))
