"""The published files: counts and coverage. Set PULLBACK_DATA to their folder."""

import os
from pathlib import Path

import pytest

from pullback_study.corpora import corpus_file, layout, load, read_conllu
from pullback_study.corpora.check import check

DATA = Path(os.environ.get("PULLBACK_DATA", Path(__file__).parents[4] / "shared" / "data"))
VECTORS = "googlenews_mapped.300d"


def needs(*paths):
    missing = [path for path in paths if not (DATA / path).exists()]
    return pytest.mark.skipif(bool(missing), reason=f"no {' or '.join(missing)} in {DATA}; set PULLBACK_DATA")


@pytest.fixture(scope="module")
def found():
    return check(DATA)


def rows(found, folder):
    return [row[1:4] for row in found.files if row[0].startswith(folder)]


@needs("sst/train.txt")
def test_sst_is_complete(found):
    assert rows(found, "sst") == [["8,544", "8,544", "6,920"], ["1,101", "1,101", "872"], ["2,210", "2,210", "1,821"]]
    assert all(row[5] == "as published" for row in found.files if row[0].startswith("sst"))


@needs("snli")
def test_snli_has_its_labelled_pairs(found):
    train, dev, test = rows(found, "snli")
    assert (train[0], train[2]) in (("550,152", "549,367"), ("100,000 (18.2%)", "99,890"))
    assert (dev[2], test[2]) == ("9,842", "9,824")
    assert [row[5] for row in found.files if row[0].startswith("snli")][1:] == ["as published"] * 2


@needs("ud-ewt")
def test_ewt_is_complete(found):
    assert [row[0] for row in rows(found, "ud-ewt")] == ["12,544", "2,001", "2,077"]
    assert all(row[5] == "as published" for row in found.files if row[0].startswith("ud-ewt"))


@needs("sst", "snli/snli_1.0_train.first100k.jsonl.gz", "vectors")
@pytest.mark.parametrize(
    ("name", "sst", "snli"),
    [(VECTORS, 0.982, 0.996), ("spacy_md.300d", 0.982, 0.996), ("glove.6B.50d", 0.991, 0.998)],
)
def test_coverage(found, name, sst, snli):
    coverage = next(row[3:5] for row in found.vectors if row[0] == name)
    assert [float(share.rstrip("%")) / 100 for share in coverage] == pytest.approx([sst, snli], abs=6e-4)


@needs("sst", f"vectors/{VECTORS}.npz")
def test_sst_loads(tmp_path):
    corpus = load("sst", DATA, VECTORS, cache=tmp_path)
    assert {name: len(split) for name, split in corpus.splits.items()} == {"train": 6920, "dev": 872, "test": 1821}
    assert corpus.train.labels.bincount().tolist() == [3310, 3610]
    assert corpus.description["coverage"] == pytest.approx(0.982, abs=6e-4)


@needs("snli/snli_1.0_train.first100k.jsonl.gz", f"vectors/{VECTORS}.npz")
def test_snli_loads(tmp_path):
    corpus = load("snli", DATA, VECTORS, cache=tmp_path)
    assert (len(corpus.dev), len(corpus.test)) == (9842, 9824)
    assert corpus.dev.labels.bincount().tolist() == [3329, 3235, 3278]
    assert corpus.description["share"]["train"] == pytest.approx(corpus.description["rows"]["train"] / 550_152)


@needs("ud-ewt", f"vectors/{VECTORS}.npz")
def test_ewt_loads_with_its_trees(tmp_path):
    corpus = load("ewt", DATA, VECTORS, max_tokens=40, cache=tmp_path)
    rows = {name: len(split) + sum(split.dropped.values()) for name, split in corpus.splits.items()}
    assert rows == layout.ROWS["ewt"]
    gold = [parse.heads for parse in read_conllu(corpus_file("ewt", DATA, "dev")) if len(parse.tokens) <= 40]
    assert corpus.dev.gold.tolist() == [head for heads in gold for head in heads]
