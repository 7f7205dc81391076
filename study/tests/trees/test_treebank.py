import os
from pathlib import Path

import pytest
import torch

from pullback.structures import DependencyTree
from pullback_study.corpora import Parse, read_conllu
from pullback_study.trees.measures import baseline_trees, compare, tables


def small_treebank():
    tags = ("DET", "ADJ", "NOUN", "PUNCT")
    return [Parse(("A", "fun", "film", "."), (3, 3, 0, 3), tags)] * 3


def test_scores_by_hand():
    flat = [[0, 1, 1, 1], [3, 3, 0, 3], [3, 3, 0, 1]]
    rows = {row.name: row for row in compare(small_treebank(), {"mine": flat})}
    assert list(rows) == ["mine", "left-branching", "right-branching", "random", "gold"]
    mine = rows["mine"]
    assert mine.scores["attachment"].value == pytest.approx(100 * (0 + 4 + 3) / 12)
    assert mine.scores["no punctuation"].value == pytest.approx(100 * (0 + 3 + 3) / 9)
    assert mine.scores["undirected"].value == pytest.approx(100 * (1 + 4 + 3) / 12)  # 1 -> 3 is there as 3 -> 1
    assert mine.alike["left-branching"].value == pytest.approx(100 * (0 + 1 + 1) / 12)
    assert mine.alike["right-branching"].value == pytest.approx(100 * (2 + 1 + 0) / 12)
    assert rows["left-branching"].scores["attachment"].value == pytest.approx(25.0)
    assert rows["right-branching"].scores["attachment"].value == pytest.approx(25.0)
    assert rows["gold"].scores["attachment"].value == 100.0
    assert rows["gold"].shape.depth == 2.0


def test_tables_show_every_row():
    rows = compare(small_treebank(), {"mine": [[0, 1, 1, 1]] * 3})
    shown, likeness, shapes = (table.markdown() for table in tables(rows, "a treebank"))
    assert "| mine | 0.0 [0.0, 0.0] | 0.0 [0.0, 0.0] | 25.0 [25.0, 25.0] |" in shown
    assert "gold" not in shown
    assert "| gold |" in likeness
    assert "| gold | 2.00 | 1.33 | 1.00 | 66.7% | 100.0% |" in shapes


def test_no_sentences():
    with pytest.raises(ValueError, match="no trees"):
        compare([], {})


@pytest.fixture(scope="module")
def ewt():
    data = os.environ.get("PULLBACK_DATA") or Path(__file__).parents[4] / "shared" / "data"
    path = Path(data) / "ud-ewt" / "en_ewt-ud-dev.conllu.gz"
    if not path.exists():
        pytest.skip("needs ud-ewt/en_ewt-ud-dev.conllu.gz in the folder PULLBACK_DATA")
    return read_conllu(path)


def test_baselines_on_english(ewt):
    """More words have their head right after them (determiners, adjectives) than right before them."""
    rows = {row.name: row for row in compare(ewt, {})}
    scores = {name: row.scores["attachment"] for name, row in rows.items()}
    words = sum(len(parse.tokens) for parse in ewt)
    assert len(ewt) == 2001
    chains = baseline_trees([len(parse.heads) for parse in ewt], 0)
    for name in ("left-branching", "right-branching"):
        same = sum(h == g for p, chain in zip(ewt, chains[name], strict=True) for h, g in zip(chain, p.heads, strict=True))
        assert scores[name].value == pytest.approx(100 * same / words)
        assert scores[name].low < scores[name].value < scores[name].high
    assert scores["left-branching"].value > scores["right-branching"].value
    assert scores["random"].low < 100 * expected_of_random(ewt) / words < scores["random"].high
    assert rows["gold"].shape.roots == 1.0
    assert 0.9 < rows["gold"].shape.projective < 1.0


def expected_of_random(parses):
    """The words that a uniform projective tree gets right on average: the marginals of zero scores at the gold arcs."""
    total, known = 0.0, {}
    for parse in parses:
        n = len(parse.heads)
        if n not in known:
            known[n] = DependencyTree().marginals(torch.zeros(n, n)).tolist()
        total += sum(known[n][head - 1 if head else word][word] for word, head in enumerate(parse.heads))
    return total
