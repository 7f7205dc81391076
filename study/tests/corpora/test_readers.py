"""SST, SNLI and CoNLL-U: what the formats mean, and errors that name file, line and reason."""

import gzip
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pullback_study.corpora import CorpusError, Pair, Sentence, read_conllu, read_snli, read_sst
from pullback_study.corpora.snli import usable
from pullback_study.corpora.sst import parse_tree

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
    assert parse_tree(written(tree, label)) == Sentence(tuple(leaves(tree)), label)


def test_the_label_is_the_roots_and_words_may_hold_a_no_break_space(tmp_path):
    path = tmp_path / "train.txt"
    path.write_text("(4 (0 (1 a) (2 8\xa01\\/2)) (3 -LRB-))\n\n(0 b)", encoding="utf-8")
    assert read_sst(path) == [Sentence(("a", "8\xa01\\/2", "-LRB-"), 4), Sentence(("b",), 0)]


@pytest.mark.parametrize(
    ("tree", "reason"),
    [
        ("(3 (2 a) (2 b)", "the brackets do not form one tree"),
        ("(3 (2 a) (2 b)))", "the brackets do not form one tree"),
        ("(3 a) (2 b)", "the brackets do not form one tree"),
        ("3 a", "not a tree like"),
        ("(5 a)", "not a tree like (3 (2 It) (2 works)), with a label from 0 to 4"),
        ("(good a)", "not a tree like"),
        ("(3 a b)", "not a tree like"),
        ("(3 (2 a) b)", "not a tree like"),
        ("(3 a (2 b))", "not a tree like"),
        ("((2 a))", "not a tree like"),
        ("(3 )", "not a tree like"),
        ("()", "not a tree like"),
    ],
)
def test_a_malformed_tree(tmp_path, tree, reason):
    path = tmp_path / "train.txt"
    path.write_text(f"(3 (2 fine) (2 .))\n{tree}\n")
    with pytest.raises(CorpusError) as caught:
        read_sst(path)
    assert str(caught.value).startswith(f"{path}, line 2: {reason}")


def test_pairs_plain_or_gzipped(tmp_path):
    plain, zipped = tmp_path / "a.jsonl", tmp_path / "a.jsonl.gz"
    plain.write_text(GOOD_PAIR + "\n" + GOOD_PAIR.replace("neutral", "-") + "\n")
    zipped.write_bytes(gzip.compress(plain.read_bytes()))
    assert list(read_snli(plain)) == [Pair(("A", "dog"), ("Hm",), "neutral"), Pair(("A", "dog"), ("Hm",), "-")]
    assert list(read_snli(zipped)) == list(read_snli(plain))


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (GOOD_PAIR[:-20], "not JSON"),
        ("[1, 2]", "a JSON list, not an object"),
        (GOOD_PAIR.replace("neutral", "maybe"), "the gold_label 'maybe' is not one of entailment"),
        ("{}", "the gold_label None is not one of"),
        (GOOD_PAIR.replace('"neutral"', "[1]"), r"the gold_label [1] is not one of"),
        (GOOD_PAIR.replace("sentence2_binary_parse", "x"), "sentence2_binary_parse is missing, or not a string"),
        (GOOD_PAIR.replace('"Hm"', "3"), "sentence2_binary_parse is missing, or not a string"),
        (GOOD_PAIR.replace("dog )", "dog"), "the brackets of sentence1_binary_parse do not form one tree"),
        (GOOD_PAIR.replace("( A dog )", ") A dog ("), "the brackets of sentence1_binary_parse do not form one tree"),
        (GOOD_PAIR.replace("A dog )", "A ) ( dog )"), "the brackets of sentence1_binary_parse do not form one tree"),
        (GOOD_PAIR.replace("( A dog )", "A ( dog )"), "the brackets of sentence1_binary_parse do not form one tree"),
        (GOOD_PAIR.replace("( A dog )", "(A dog)"), "sentence1_binary_parse has '(A'; spaces should separate brackets"),
    ],
    ids=lambda value: value[:70],
)
def test_a_malformed_pair(tmp_path, line, reason):
    path = tmp_path / "train.jsonl"
    path.write_text(f"{GOOD_PAIR}\n{line}\n")
    with pytest.raises(CorpusError) as caught:
        list(read_snli(path))
    assert str(caught.value).startswith(f"{path}, line 2: {reason}")


def test_what_the_task_leaves_out_is_counted_by_rule():
    long, short = ("a",) * 4, ("a",) * 3
    pairs = [Pair(long, short, "neutral"), Pair(short, long, "neutral"), Pair(short, (), "neutral"),
             Pair(long, long, "-"), Pair(short, short, "neutral")]  # fmt: skip
    dropped = Counter()
    assert list(usable(pairs, dropped, max_tokens=3)) == pairs[-1:]
    assert dropped == {"more than 3 tokens": 2, "empty sentence": 1, "no gold label": 1}


def test_a_truncated_or_corrupt_gzip_file(tmp_path):
    path = tmp_path / "train.jsonl.gz"
    whole = gzip.compress("".join(GOOD_PAIR.replace("dog", f"dog{i}") + "\n" for i in range(2000)).encode())
    path.write_bytes(whole[:-1000])
    with pytest.raises(CorpusError, match=r"train.jsonl.gz, line \d+: the gzip stream is truncated or corrupt"):
        list(read_snli(path))
    path.write_bytes(whole[:2000] + bytes(100) + whole[2100:])
    with pytest.raises(CorpusError, match=r"train.jsonl.gz, line \d+: (the gzip stream is truncated or corrupt|not )"):
        list(read_snli(path))


def test_a_byte_order_mark_is_passed_over(tmp_path):
    path = tmp_path / "a"
    path.write_text("\ufeff(3 a)\n", encoding="utf-8")
    assert read_sst(path) == [Sentence(("a",), 3)]
    path.write_text(f"\ufeff{GOOD_PAIR}\n", encoding="utf-8")
    assert len(list(read_snli(path))) == 1


def test_a_file_that_is_not_utf8_or_not_there(tmp_path):
    path = tmp_path / "train.txt"
    path.write_bytes(b"(3 a)\n(3 caf\xe9)\n")
    with pytest.raises(CorpusError, match=r"train.txt, line 2: not UTF-8: .* at byte 7"):
        read_sst(path)
    with pytest.raises(CorpusError, match=r"dev.txt: No such file"):
        read_sst(tmp_path / "dev.txt")


def word(number, form, head, relation="dep"):
    return f"{number}\t{form}\t_\tX\t_\t_\t{head}\t{relation}\t_\t_"


def test_conllu_by_the_formats_rules(tmp_path):
    path = tmp_path / "a.conllu"
    lines = [
        "# sent_id = s1", "# text = vámonos al mar", word("1-2", "vámonos", "_"), word(1, "vamos", 0, "root"),
        word(2, "nos", 1), word("2.1", "empty", "_"), word(3, "al mar", 1), "", "# text = x", word(1, "x", 0), "",
    ]  # fmt: skip
    path.write_text("\n".join(lines), encoding="utf-8")
    first, second = read_conllu(path)
    assert (first.tokens, first.heads, first.relations) == (
        ("vamos", "nos", "al mar"),
        (0, 1, 1),
        ("root", "dep", "dep"),
    )
    assert (first.name, first.tags, second.name, second.heads) == ("s1", ("X", "X", "X"), "", (0,))


@pytest.mark.parametrize(
    ("lines", "line", "reason"),
    [
        ([word(1, "a", 2)], 1, "the head '2' is not a number from 0 to 1"),
        ([word(1, "a", 0), word(2, "b", "_")], 2, "the head '_' is not a number from 0 to 2"),
        ([word(1, "a", 0), word(2, "b", -1)], 2, "the head '-1' is not a number from 0 to 2"),
        ([word(1, "a", "7" * 5000)], 1, f"the head '{'7' * 20}' is not a number from 0 to 1"),
        ([word(1, "a", 0), word(3, "b", 1)], 2, "word '3' where word 2 should be"),
        ([word(1, "a", 0), word(2, "b", 3), word(3, "c", 2)], 2, "the heads of word 2 run in a circle"),
        ([word(1, "a", 1)], 1, "the heads of word 1 run in a circle"),
        (["# text = a", "1\ta\t_"], 2, "3 columns, separated by tabs; CoNLL-U has 10"),
    ],
)
def test_a_malformed_treebank(tmp_path, lines, line, reason):
    path = tmp_path / "a.conllu"
    path.write_text("\n".join([*lines, "", ""]))
    with pytest.raises(CorpusError) as caught:
        read_conllu(path)
    assert str(caught.value).startswith(f"{path}, line {line}: {reason}")
