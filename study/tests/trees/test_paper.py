import re
from pathlib import Path

import pytest

from pullback_study.published import PRINTED, SENTENCES, printed_for
from pullback_study.trees.measures import depth

SOURCE = Path(__file__).parents[4] / "shared" / "paper" / "understanding-spigot.tex"


def test_printed_trees_are_trees_of_their_sentences():
    assert all(len(tree.heads) == len(tree.tokens) and depth(tree.heads) for tree in PRINTED)
    assert {tree.tokens for tree in PRINTED} == set(SENTENCES)


def test_every_model_has_at_most_one_tree_of_a_sentence():
    rows = ("marginals", "sparsemap", "perturb-and-map", "ste-s", "ste-i", "spigot", "spigot-ce", "spigot-eg")
    for name in rows:
        sentences = [SENTENCES.index(tree.tokens) for tree in printed_for(name)]
        assert sentences == sorted(set(sentences))
        assert 2 in sentences
    assert printed_for("baseline") == []


def test_spigot_ce_attaches_the_adjectives_to_drama():
    tree = next(tree for tree in PRINTED if tree.tokens == SENTENCES[2] and "SPIGOT-CE" in tree.models)
    heads = {token: tree.tokens[head - 1] for token, head in zip(tree.tokens, tree.heads, strict=True) if head}
    assert heads["taut"] == heads["intelligent"] == heads["psychological"] == "drama"


@pytest.mark.skipif(not SOURCE.exists(), reason="needs the paper's source beside the project")
def test_printed_trees_are_the_papers():
    figure = r"\(([^()]*)\):?\s*\\begin\{dependency\}.*?\n\\begin\{deptext\}.*?\n(.*?)\\end\{deptext\}(.*?)\\end\{dependency\}"
    blocks = re.findall(figure, SOURCE.read_text(), re.DOTALL)
    assert len(blocks) == len(PRINTED)
    for (models, words, arcs), tree in zip(blocks, PRINTED, strict=True):
        assert models == ("all others" if len(tree.models) > 3 else ", ".join(tree.models))
        assert tuple(words.replace(r"\\", "").replace(r"\&", " ").split()) == tree.tokens
        heads = {int(m): int(h) for h, m in re.findall(r"\\depedge\{(\d+)\}\{(\d+)\}", arcs)}
        heads |= {int(m): 0 for m in re.findall(r"\\deproot\[.*?\]\{(\d+)\}", arcs)}
        assert tuple(heads[word] for word in range(1, len(tree.tokens) + 1)) == tree.heads
