import pytest
from hypothesis import given
from hypothesis import strategies as st

from pullback.viz import tree_conllu
from pullback_study.corpora import read_conllu
from viz.drawn import trees

# What the format can hold: no tabs, line ends or other control characters, no spaces at the ends or repeated ones.
words = st.text(st.characters(exclude_categories=("C", "Z")), min_size=1, max_size=6)
plain = st.one_of(words, st.sampled_from(["_", "#", "1-2", "# text", "-LRB-", "in spite of", "8\xa01/2", "👩‍🚀"]))


@given(st.lists(trees(words=plain), min_size=1, max_size=4))
def test_the_reader_gets_back_what_was_written(tmp_path, sentences):
    path = tmp_path / "trees.conllu"
    written = [tree_conllu(*tree, comments={"sent_id": str(i)}) for i, tree in enumerate(sentences)]
    path.write_text("".join(written), encoding="utf-8", newline="")
    parses = read_conllu(path)
    assert [(list(parse.tokens), list(parse.heads)) for parse in parses] == [(tokens, heads) for tokens, heads in sentences]
    for i, (text, (_, heads)) in enumerate(zip(written, sentences, strict=True)):
        assert f"# sent_id = {i}" in text.split("\n")
        relations = [line.split("\t")[7] for line in text.split("\n") if "\t" in line]
        assert [relation == "root" for relation in relations] == [head == 0 for head in heads]


@given(trees(), st.text())
def test_whatever_the_tokens_are_the_lines_keep_their_form(tree, note):
    tokens, heads = tree
    text = tree_conllu(tokens, heads, comments={"note": note})
    text.encode()
    comments, rows, end = text.split("\n")[:2], text.split("\n")[2:-2], text.split("\n")[-2:]
    assert end == ["", ""]
    assert [line.startswith("# ") for line in comments] == [True, True]
    assert len(rows) == len(tokens)
    for number, row in enumerate(rows, 1):
        columns = row.split("\t")
        assert len(columns) == 10
        assert columns[0] == str(number)
        assert all(column and column == column.strip(" ") for column in columns)
        assert not any(" " in column for column in columns[2:])


def test_no_words():
    with pytest.raises(ValueError, match="no words"):
        tree_conllu([], [])
