"""Trees in run directories, and what the report makes of them."""

import json
import re
from types import SimpleNamespace

import pytest

from pullback_study.report.trees import FILE, best_runs, forest, read_trees, write_trees
from pullback_study.results.choice import Runs
from pullback_study.trees.paper import SENTENCES
from report.folders import NASTY, text_run

EXAMPLES = [" ".join(tokens) for tokens in SENTENCES]


def test_trees_are_read_as_they_were_written(tmp_path):
    tokens = ("A", "taut", "</script>", "\u2028")
    write_trees(tmp_path, [SimpleNamespace(tokens=tokens, heads=(2, 0, 2, 3), label="positive")])
    assert read_trees(tmp_path) == {tokens: {"heads": [2, 0, 2, 3], "label": "positive"}}


@pytest.mark.parametrize(
    "line",
    ["{", "[]", "7", "null", '{"tokens": ["b"]}', '{"tokens": "ab", "heads": 3}', '{"tokens": ["b"], "heads": [2]}',
     '{"tokens": ["a", "b"], "heads": [2, 1]}', '{"tokens": [], "heads": []}', '{"tokens": ["b"], "heads": [NaN]}',
     "[" * 100_000],
    ids=lambda line: line[:20],
)  # fmt: skip
def test_what_is_not_a_tree_is_left_out(tmp_path, line):
    good = json.dumps({"tokens": ["a"], "heads": [0], "mu": [[0, 1, 1.0]], "label": None})
    (tmp_path / FILE).write_text(f"{good}\n{line}\n\n")
    assert list(read_trees(tmp_path)) == [("a",)]


def test_sentences_stand_side_by_side_and_the_papers_come_first(tmp_path):
    text_run(tmp_path, "spigot-ce", ["Fun .", *reversed(EXAMPLES)])
    text_run(tmp_path, "marginals", [EXAMPLES[2], NASTY])
    page = forest(Runs(tmp_path))
    sentences = re.findall(r"<summary>(.*?)</summary>", page)
    assert sentences[:3] == [example.replace("'", "&#x27;") for example in EXAMPLES]
    third = page.split("<summary>")[3]
    assert "Marginals" in third
    assert "SPIGOT-CE" in third
    assert "the paper's tree, depth" in third
    assert "Marginals" not in page.split("<summary>")[1]
    assert "<script>" not in page


def test_each_estimator_shows_its_best_run(tmp_path):
    text_run(tmp_path, "spigot", ["Worse ."])
    best = text_run(tmp_path, "spigot", ["Better ."], seed=1)
    (best / "result.json").write_text('{"validation_accuracy": 85.0}')
    ((_, run),) = best_runs(Runs(tmp_path).of("sst")).items()
    assert run.path == best
    assert "Better ." in forest(Runs(tmp_path))
    assert "Worse ." not in forest(Runs(tmp_path))
