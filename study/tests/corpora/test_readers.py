"""SST, SNLI and CoNLL-U: what the formats mean, and errors that name file, line and reason."""

import gzip
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pullback_study.corpora import CorpusError, Example, read_conllu
from pullback_study.corpora.readers import _LEAF, read_snli, read_sst

GOOD_PAIR = '{"gold_label": "neutral", "sentence1_binary_parse": "( A dog )", "sentence2_binary_parse": "Hm"}'
words = st.text(st.characters(exclude_characters="() \n\r", exclude_categories=["Cs"]), min_size=1)
trees = st.recursive(words, lambda inner: st.lists(inner, min_size=1, max_size=3))


def written(node, label):
    inside = node if isinstance(node, str) else " ".join(written(child, label) for child in node)
    return f"({label} {inside})"


def leaves(node):
    return [node] if isinstance(node, str) else [leaf for child in node for leaf in leaves(child)]


@given(trees, st.integers(0, 4))
def test_the_leaves_of_any_tree(tree, label):
    assert _LEAF.findall(written(tree, label)) == leaves(tree)


def test_the_label_is_the_roots_and_words_may_hold_a_no_break_space(tmp_path):
    path, dropped = tmp_path / "train.txt", Counter()
    path.write_text("\ufeff(4 (0 (1 a) (2 8\xa01\\/2)) (3 -LRB-))\n\n(2 so)\n(0 b)", encoding="utf-8")
    assert list(read_sst(path, dropped)) == [Example((("a", "8\xa01\\/2", "-LRB-"),), 1), Example((("b",),), 0)]
    assert dropped == {"neutral": 1}


def test_pairs_plain_or_gzipped(tmp_path):
    plain, zipped = tmp_path / "a.jsonl", tmp_path / "a.jsonl.gz"
    plain.write_text(GOOD_PAIR + "\n" + GOOD_PAIR.replace("neutral", "entailment") + "\n")
    zipped.write_bytes(gzip.compress(plain.read_bytes()))
    expected = [Example((("A", "dog"), ("Hm",)), 1), Example((("A", "dog"), ("Hm",)), 0)]
    assert list(read_snli(plain, Counter())) == list(read_snli(zipped, Counter())) == expected


def test_what_the_task_leaves_out_is_counted_by_rule(tmp_path):
    path, dropped = tmp_path / "a.jsonl", Counter()
    changes = [("A dog", "A b c d"), ("Hm", "A b c d"), ("Hm", ""), ("neutral", "-"), ("dog", "dog c")]
    path.write_text("\n".join(GOOD_PAIR.replace(*change) for change in changes))
    assert [example.sentences for example in read_snli(path, dropped, 3)] == [(("A", "dog", "c"), ("Hm",))]
    assert dropped == {"more than 3 tokens": 2, "empty sentence": 1, "no gold label": 1}


@pytest.mark.parametrize(
    ("read", "good", "line", "reason"),
    [
        (read_sst, "(3 (2 fine) (2 .))", "(5 a)", "not a tree like (3 (2 It) (2 works))"),
        (read_sst, "(3 (2 fine) (2 .))", "<html>", "not a tree"),
        (read_snli, GOOD_PAIR, GOOD_PAIR[:-20], "not a pair of SNLI"),
        (read_snli, GOOD_PAIR, "[1, 2]", "not a pair of SNLI"),
        (read_snli, GOOD_PAIR, GOOD_PAIR.replace("neutral", "maybe"), "not a pair of SNLI"),
        (read_snli, GOOD_PAIR, GOOD_PAIR.replace("sentence2_binary_parse", "x"), "not a pair of SNLI"),
    ],
)
def test_a_file_that_is_something_else(tmp_path, read, good, line, reason):
    path = tmp_path / "train"
    path.write_text(f"{good}\n{line}\n")
    with pytest.raises(CorpusError) as caught:
        list(read(path, Counter()))
    assert str(caught.value).startswith(f"{path}, line 2: {reason}")


def test_a_truncated_gzip_file_and_one_that_is_not_utf8_or_not_there(tmp_path):
    path = tmp_path / "train.jsonl.gz"
    whole = gzip.compress("".join(GOOD_PAIR.replace("dog", f"dog{i}") + "\n" for i in range(2000)).encode())
    path.write_bytes(whole[:-1000])
    with pytest.raises(CorpusError, match=r"train.jsonl.gz, line \d+: the gzip stream is truncated or corrupt"):
        list(read_snli(path, Counter()))
    path.write_bytes(b"(3 a)\n(3 caf\xe9)\n")
    with pytest.raises(CorpusError, match=r"line 2: not UTF-8: .* at byte 7"):
        list(read_sst(path, Counter()))
    with pytest.raises(CorpusError, match=r"dev.txt: No such file"):
        list(read_sst(tmp_path / "dev.txt", Counter()))


def word(number, form, head, relation="dep"):
    return f"{number}\t{form}\t_\tX\t_\t_\t{head}\t{relation}\t_\t_"


def test_conllu_by_the_formats_rules(tmp_path):
    path = tmp_path / "a.conllu"
    lines = [
        "# sent_id = s1", "# text = vámonos al mar", word("1-2", "vámonos", "_"), word(1, "vamos", 0, "root"),
        word(2, "nos", 1), word("2.1", "empty", "_"), word(3, "al mar", 1), "", "# text = x", word(1, "x", 0),
    ]  # fmt: skip
    path.write_text("\n".join(lines), encoding="utf-8")
    first, second = read_conllu(path)
    assert first == (("vamos", "nos", "al mar"), (0, 1, 1), ("X", "X", "X"))
    assert second.heads == (0,)


@pytest.mark.parametrize(
    ("lines", "line", "reason"),
    [
        ([word(1, "a", 2)], 2, "words must be numbered from 1 and have heads from 0 to 1"),
        ([word(1, "a", 0), word(2, "b", "_")], 3, "words must be numbered from 1 and have heads from 0 to 2"),
        ([word(1, "a", 0), word(2, "b", -1)], 3, "words must be numbered"),
        ([word(1, "a", 0), word(3, "b", 1)], 3, "words must be numbered"),
        ([word(1, "a", 0), word(2, "b", 3), word(3, "c", 2)], 4, "some heads of the sentence that ends here form a cycle"),
        ([word(1, "a", 1)], 2, "some heads of the sentence that ends here form a cycle"),
        (["# text = a", "1\ta\t_"], 2, "columns separated by tabs: 3; CoNLL-U has 10"),
    ],
)
def test_a_malformed_treebank(tmp_path, lines, line, reason):
    path = tmp_path / "a.conllu"
    path.write_text("\n".join([*lines, "", ""]))
    with pytest.raises(CorpusError) as caught:
        read_conllu(path)
    assert str(caught.value).startswith(f"{path}, line {line}: {reason}")
