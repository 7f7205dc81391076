"""Preprocessed corpora: numbers, vectors, descriptions."""

import gzip
import re
import shutil
from itertools import pairwise

import numpy as np
import pytest

from pullback_study.corpora import CorpusError, choose_vectors, find_data, load


def sentences(corpus, split):
    """The words of each sentence, as the vocabulary spells them."""
    words = [corpus.vocabulary[row] for row in split.words.tolist()]
    ends = split.offsets.tolist()
    return [" ".join(words[start:end]) for start, end in pairwise(ends)]


def test_sst_is_binary_and_what_is_left_out_is_counted(data, tmp_path):
    corpus = load("sst", data, "tiny", cache=tmp_path)
    assert sentences(corpus, corpus.train) == ["It works .", "<unknown> good ."]
    assert sentences(corpus, corpus.test) == ["( great )"]
    splits = corpus.train, corpus.dev, corpus.test
    assert [split.labels.tolist() for split in splits] == [[1, 0], [0], [1]]
    assert [split.dropped for split in splits] == [{"neutral": 1}, {"neutral": 0}, {"neutral": 1}]
    assert corpus.train.sides == 1


def test_snli_has_two_sides_and_three_labels(data, tmp_path):
    corpus = load("snli", data, "tiny", max_tokens=2, cache=tmp_path)
    assert sentences(corpus, corpus.train) == ["a dog", "a <unknown>", "It works", "It"]
    assert corpus.train.labels.tolist() == [2, 0]
    assert corpus.train.lengths.tolist() == [[2, 2], [2, 1]]
    assert corpus.train.dropped == {"no gold label": 1}
    assert corpus.dev.dropped == corpus.test.dropped == {"more than 2 tokens": 1}


def test_the_vectors_are_those_of_the_words_that_occur(data, tmp_path):
    corpus = load("sst", data, "tiny", cache=tmp_path)
    assert corpus.vectors[:2].eq(0).all()
    with np.load(data / "vectors" / "tiny.npz") as file:
        known = dict(zip(file["words"].tolist(), file["vectors"].tolist(), strict=True))
    assert {word: vector.tolist() for word, vector in zip(corpus.vocabulary[2:], corpus.vectors[2:], strict=True)} == {
        word: known[word] for word in ("It", "works", ".", "good", "great", "(", ")")
    }


def test_the_description_says_what_it_was_made_from(data, tmp_path):
    about = load("sst", data, "tiny", cache=tmp_path).description
    assert about["vectors"] == "tiny"
    assert about["examples"] == {"train": 2, "dev": 1, "test": 1}
    assert about["coverage"] == pytest.approx(9 / 11)  # of "Not" and "Awful" there is no vector
    about = load("snli", data, "tiny", cache=tmp_path).description
    assert about["files"]["train"] == "snli_1.0_train.first100k.jsonl.gz"
    assert about["rows"]["train"] == 3
    assert about["share"]["train"] == pytest.approx(3 / 550_152)
    assert set(about["checksums"]) == {"train", "dev", "test", "vectors"}


def test_the_whole_training_file_goes_before_a_part_of_it(data, tmp_path):
    part = data / "snli" / "snli_1.0_train.first100k.jsonl.gz"
    rows = gzip.decompress(part.read_bytes())
    for name, content in (("snli_1.0_train.jsonl.gz", gzip.compress(rows * 2)), ("snli_1.0_train.jsonl", rows * 3)):
        (data / "snli" / name).write_bytes(content)
        about = load("snli", data, "tiny", cache=tmp_path).description
        assert about["files"]["train"] == name
    assert about["rows"]["train"] == 9


def test_vectors_by_name_or_path_as_npz_or_text(data, tmp_path):
    with np.load(data / "vectors" / "tiny.npz") as file:
        lines = [f"{word} {x} {y}\n" for word, (x, y) in zip(file["words"], file["vectors"], strict=True)]
    text = tmp_path / "elsewhere.txt"
    text.write_text("".join(lines))
    expected = load("sst", data, "tiny", cache=tmp_path)
    for vectors in (str(text), str(data / "vectors" / "tiny.npz")):
        assert load("sst", data, vectors, cache=tmp_path).vectors.equal(expected.vectors)
    with pytest.raises(ValueError, match=r"no vectors 'glove' in .*; there are: tiny"):
        load("sst", data, "glove", cache=tmp_path)


def test_the_vectors_that_are_there_are_chosen_by_a_fixed_order(data, tmp_path):
    (data / "vectors" / "tiny.npz").rename(data / "vectors" / "glove.6B.50d.npz")
    order = ["glove.6B.50d", "spacy_md.300d", "googlenews_mapped.300d", "glove.840B.300d"]  # worst first
    for name in order:
        if name != "glove.6B.50d":
            shutil.copy(data / "vectors" / "glove.6B.50d.npz", data / "vectors" / f"{name}.npz")
        assert choose_vectors(data) == name
        assert load("sst", data, cache=tmp_path).description["vectors"] == name
        assert load("sst", data, "glove.6B.50d", cache=tmp_path).description["vectors"] == "glove.6B.50d"
    with pytest.raises(ValueError, match=r"no vectors 'glov' in .*; there are: glove.6B.50d, glove.840B.300d"):
        load("sst", data, "glov", cache=tmp_path)
    shutil.rmtree(data / "vectors")
    with pytest.raises(ValueError, match=r"no word vectors in .*vectors; `pullback data download .* --only glove`"):
        choose_vectors(data)


def test_a_missing_file_is_named(data, tmp_path):
    (data / "sst" / "dev.txt").unlink()
    with pytest.raises(ValueError, match=r"no dev.txt or dev.txt.gz in .*sst"):
        load("sst", data, "tiny", cache=tmp_path)


@pytest.mark.parametrize("split", ["train", "dev", "test"])
@pytest.mark.parametrize(
    ("content", "reason"),
    [("", "no examples in it"), ("(2 a)\n(2 b)\n", "no examples in it: all rows are left out (2 neutral)")],
)
def test_a_split_without_examples_is_named(data, tmp_path, split, content, reason):
    path = data / "sst" / f"{split}.txt"
    path.write_text(content)
    with pytest.raises(CorpusError, match=re.escape(f"{path}: {reason}") + "$"):
        load("sst", data, "tiny", cache=tmp_path)


def test_a_split_that_the_rules_leave_empty_says_which(data, tmp_path):
    with pytest.raises(CorpusError, match=r"all rows are left out \(2 more than 0 tokens, 1 no gold label\)"):
        load("snli", data, "tiny", max_tokens=0, cache=tmp_path)


def test_the_data_folder_is_the_one_given_else_the_environments(tmp_path, monkeypatch):
    monkeypatch.delenv("PULLBACK_DATA", raising=False)
    with pytest.raises(ValueError, match=r"--data DIR.*PULLBACK_DATA"):
        find_data(None)
    monkeypatch.setenv("PULLBACK_DATA", str(tmp_path))
    assert find_data(None) == tmp_path
    with pytest.raises(ValueError, match=r"nowhere is not a folder"):
        find_data(tmp_path / "nowhere")
    monkeypatch.setenv("PULLBACK_DATA", "/nowhere")
    with pytest.raises(ValueError, match=r"/nowhere \(from PULLBACK_DATA\) is not a folder"):
        find_data(None)
