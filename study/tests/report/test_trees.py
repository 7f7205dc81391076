"""Trees in run directories, and what the report makes of them."""

import json
from types import SimpleNamespace

import pytest
import torch

import pullback as pb
from pullback_study.report.forest import forest, statistics
from pullback_study.report.trees import FILE, read_trees, write_trees
from pullback_study.status import list_runs
from pullback_study.trees.paper import SENTENCES
from report.folders import NASTY, halves, text_run

EXAMPLES = [" ".join(tokens) for tokens in SENTENCES]


def forest_of(root):
    return forest(root, {run.hash: run for run in list_runs(root)})


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


def test_depth_and_attachment():
    flat = {"heads": [2, 0, 2, 2]}
    chain = {"heads": [0, 1, 2, 3]}
    found = statistics([flat, chain, {"heads": [0]}])
    assert found["sentences"] == 2
    assert found["depth"] == 3.0
    assert found["flat"] == 0.5
    assert found["roots"] == 1.0
    assert found["right"] == round(1 / 6, 4)
    assert found["previous"] == round(4 / 6, 4)
    assert found["next"] == round(1 / 6, 4)
    assert found["length"] == round((1 + 1 + 2 + 1 + 1 + 1) / 6, 3)
    assert statistics([]) == {"sentences": 0}


def test_sentences_stand_side_by_side_and_the_papers_come_first(tmp_path):
    text_run(tmp_path, "a" * 16, "spigot-ce", ["Fun .", *reversed(EXAMPLES)])
    text_run(tmp_path, "b" * 16, "marginals", [EXAMPLES[2], NASTY], mu=halves)
    (sst,) = forest_of(tmp_path)
    shown = [" ".join(tokens) for tokens in sst["sentences"]]
    assert shown == [*EXAMPLES, NASTY, "Fun ."]
    assert sst["examples"] == 3
    marginals, spigot = sst["estimators"]
    assert (marginals["label"], spigot["label"]) == ("Marginals", "SPIGOT-CE")
    assert marginals["trees"][0] is None
    assert marginals["trees"][2]["mu"]
    assert spigot["trees"][2] == {"heads": [0, 1, 2, 3, 4, 5, 6], "mu": None, "label": "positive"}
    assert spigot["statistics"]["previous"] == 1.0
    assert spigot["paper"][2] == [7, 6, 6, 6, 6, 1, 0]


def test_each_estimator_shows_its_best_run(tmp_path):
    text_run(tmp_path, "a" * 16, "spigot", ["Worse ."])
    best = text_run(tmp_path, "b" * 16, "spigot", ["Better ."])
    (best / "result.json").write_text('{"validation_accuracy": 85.0}')
    (sst,) = forest_of(tmp_path)
    assert [estimator["run"] for estimator in sst["estimators"]] == ["b" * 16]
    assert sst["sentences"] == [("Better", ".")]


def test_many_long_sentences_do_not_make_the_page_large(tmp_path, monkeypatch):
    monkeypatch.setattr("pullback_study.report.forest._BYTES", 100_000)
    sentences = [" ".join(f"word{i}.{j}" for j in range(20)) for i in range(40)]

    def everything(n):
        return [[1 / n] * n for _ in range(n)]

    for name, estimator in (("a", "marginals"), ("b", "sparsemap")):
        text_run(tmp_path, name * 16, estimator, sentences, mu=everything)
    (sst,) = forest_of(tmp_path)
    assert len(json.dumps(sst)) < 100_000
    assert sst["sentences"]
    assert sst["left_out"] == 40 - len(sst["sentences"])
