import numpy as np
import pytest

from pullback_study.corpora import CorpusError, Vectors, read_vectors


def vectors_of(*words):
    return Vectors("v", list(words), np.zeros((len(words), 1), np.float32))


@pytest.mark.parametrize(
    ("token", "words", "found"),
    [
        ("Film", ["film", "Film"], "Film"),
        ("Film", ["film"], "film"),
        ("-LRB-", ["(", "-lrb-", "-LRB-"], "-LRB-"),
        ("-LRB-", ["-lrb-", "("], "("),
        ("Either\\/Or", ["either\\/or", "either/or"], "either\\/or"),
        ("Either\\/Or", ["either/or"], "either/or"),
        ("``", ['"'], '"'),
        ("film", ["Film"], None),
    ],
)
def test_a_token_is_looked_up_as_it_is_then_unescaped_then_lower_cased_then_both(token, words, found):
    row = vectors_of(*words).lookup(token)
    assert (None if row is None else words[row]) == found


def write(path, *lines):
    path.write_bytes("\n".join([*lines, ""]).encode())
    return path


def test_text_and_npz_agree(tmp_path):
    write(tmp_path / "a.txt", "the 0.5 -1 2e-1", "né\xa0e 1 2 3", "film 4 5 6")
    matrix = np.array([[0.5, -1, 0.2], [1, 2, 3], [4, 5, 6]], np.float64)
    np.savez(tmp_path / "a.npz", words=np.array(["the", "né\xa0e", "film"]), vectors=matrix)
    for path in (tmp_path / "a.txt", tmp_path / "a.npz"):
        read = read_vectors(path)
        assert (read.name, read.words, read.matrix.dtype) == ("a", ["the", "né\xa0e", "film"], np.float32)
        np.testing.assert_array_equal(read.matrix, matrix.astype(np.float32))
        some = read_vectors(path, ["Film", "cat"])
        assert (some.words, some.matrix.tolist()) == (["film"], [[4, 5, 6]])


def test_words_with_spaces_are_skipped_and_word2vecs_header_is_understood(tmp_path):
    path = write(tmp_path / "g.txt", "3 2", "a 1 2", ". . . 3 4", "b 5 6 ")
    assert read_vectors(path).words == ["a", "b"]


def test_a_byte_order_mark_is_no_part_of_the_first_word(tmp_path):
    path = write(tmp_path / "g.txt", "\ufeffa 1 2", "b 3 4", "\ufeff 5 6")
    assert read_vectors(path).words == ["a", "b", "\ufeff"]
    assert read_vectors(path, ["a"]).words == ["a"]


@pytest.mark.parametrize("tokens", [None, ["a", "b"]], ids=["all", "some"])
@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        (["a 1 2", "b 1"], ", line 2: 1 numbers after the word; the file's vectors have 2"),
        (["a 1 2", ""], ", line 2: 0 numbers after the word; the file's vectors have 2"),
        (["a"], ", line 1: 0 numbers"),
        (["a 1 2", "b 1 x"], ", line 2: the vector of 'b': "),
        (["a 1 2", "b 1 nan"], ": the vector of 'b' is not finite"),
        (["a 1 2", "b 1 1e60"], ": the vector of 'b' is not finite"),
        ([], ": no vectors in it"),
    ],
)
def test_malformed_text(tmp_path, lines, reason, tokens):
    path = write(tmp_path / "g.txt", *lines) if lines else tmp_path / "g.txt"
    path.touch()
    with pytest.raises(CorpusError) as caught:
        read_vectors(path, tokens)
    assert str(caught.value).startswith(f"{path}{reason}")


NAN, HUGE = np.full((1, 2), np.nan, np.float16), np.full((1, 2), 1e60)


@pytest.mark.parametrize(
    ("arrays", "reason"),
    [
        ({"words": np.array([b"a", b"b"]), "vectors": np.zeros((2, 2))}, "`words` is an array of |S1 with shape [2]"),
        ({"words": np.array([1, 2]), "vectors": np.zeros((2, 2))}, "`words` is an array of int64 with shape [2]"),
        ({"words": np.array([["a"], ["b"]]), "vectors": np.zeros((2, 2))}, "`words` is an array of <U1 with shape [2, 1]"),
        ({"words": np.array(["a"])}, "cannot be read as an .npz file with strings `words` [V] and numbers `vectors` [V, d]"),
        ({"words": np.array(["a"], object), "vectors": np.zeros((1, 2))}, "Object arrays cannot be loaded"),
        ({"words": np.array(["a"]), "vectors": np.array([[1.0, "x"]], object)}, "Object arrays cannot be loaded"),
        ({"words": np.array(["a", "b"]), "vectors": np.zeros((1, 2))}, "cannot be read as an .npz file"),
        ({"words": np.array(["a"]), "vectors": NAN}, "the vector of 'a' is not finite"),
        ({"words": np.array(["a"]), "vectors": HUGE}, "the vector of 'a' is not finite"),
    ],
)
def test_malformed_npz(tmp_path, arrays, reason):
    path = tmp_path / "g.npz"
    np.savez(path, **arrays)
    with pytest.raises(CorpusError) as caught:
        read_vectors(path)
    assert str(path) in str(caught.value)
    assert reason in str(caught.value)


def test_a_truncated_npz_or_one_that_is_something_else(tmp_path):
    path = tmp_path / "g.npz"
    np.savez(path, words=np.array(["a"] * 50), vectors=np.zeros((50, 9)))
    np.save(tmp_path / "array.npy", np.zeros(3))
    array = (tmp_path / "array.npy").read_bytes()
    for content in (path.read_bytes()[:-40], b"hello", b"", b"\x80\x04].", array):
        path.write_bytes(content)
        with pytest.raises(CorpusError, match=r"g.npz: cannot be read as an .npz file"):
            read_vectors(path)
