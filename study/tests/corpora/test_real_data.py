"""The published files: counts and coverage. Set PULLBACK_DATA to their folder."""

import os
from pathlib import Path

import pytest

from pullback_study.corpora import layout, load_snli, load_sst
from pullback_study.corpora.check import check

DATA = Path(os.environ.get("PULLBACK_DATA", Path(__file__).parents[4] / "shared" / "data"))
VECTORS = "googlenews_mapped.300d"


def needs(*paths):
    missing = [path for path in paths if not (DATA / path).exists()]
    return pytest.mark.skipif(bool(missing), reason=f"no {' or '.join(missing)} in {DATA}; set PULLBACK_DATA")


@pytest.fixture(scope="module")
def found():
    return check(DATA)


@needs("sst/train.txt")
def test_sst_is_complete(found):
    assert [each.rows for each in found.files["SST"]] == [8544, 1101, 2210]
    assert [each.used for each in found.files["SST"]] == [6920, 872, 1821]
    assert all(each.published for each in found.files["SST"])


@needs("snli")
def test_snli_has_its_labelled_pairs(found):
    train, dev, test = found.files["SNLI"]
    assert (train.rows, train.used) in ((550_152, 549_367), (100_000, 99_890))
    assert (dev.used, test.used) == (9842, 9824)
    assert dev.published
    assert test.published


@needs("ud-ewt")
def test_ewt_is_complete(found):
    assert [each.rows for each in found.files["EWT"]] == [12_544, 2001, 2077]
    assert all(each.published for each in found.files["EWT"])


@needs("sst", "snli/snli_1.0_train.first100k.jsonl.gz", "vectors")
@pytest.mark.parametrize(
    ("name", "sst", "snli"),
    [(VECTORS, 0.982, 0.996), ("spacy_md.300d", 0.982, 0.996), ("glove.6B.50d", 0.991, 0.998)],
)
def test_coverage(found, name, sst, snli):
    coverage = {each.name: each.coverage for each in found.vectors}[name]
    assert coverage["SST"] == pytest.approx(sst, abs=6e-4)
    assert coverage["SNLI"] == pytest.approx(snli, abs=6e-4)


@needs("sst", f"vectors/{VECTORS}.npz")
def test_sst_loads(tmp_path):
    corpus = load_sst(DATA, VECTORS, cache=tmp_path)
    assert {name: len(split) for name, split in corpus.splits.items()} == layout.SST_BINARY
    assert corpus.train.labels.bincount().tolist() == [3310, 3610]
    assert corpus.description["coverage"] == pytest.approx(0.982, abs=6e-4)


@needs("snli/snli_1.0_train.first100k.jsonl.gz", f"vectors/{VECTORS}.npz")
def test_snli_loads(tmp_path):
    corpus = load_snli(DATA, VECTORS, cache=tmp_path)
    assert (len(corpus.dev), len(corpus.test)) == (9842, 9824)
    assert corpus.dev.labels.bincount().tolist() == [3329, 3235, 3278]
    assert corpus.description["share"]["train"] == pytest.approx(corpus.description["rows"]["train"] / 550_152)
