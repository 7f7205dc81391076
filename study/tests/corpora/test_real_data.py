"""The published files: checksums, counts and coverage. Set PULLBACK_DATA to their folder."""

import os
from pathlib import Path

import pytest

from pullback_study.corpora import corpus_file, files, load, read_conllu
from pullback_study.corpora.download import check

DATA = Path(os.environ.get("PULLBACK_DATA", Path(__file__).parents[4] / "shared" / "data"))
VECTORS = "googlenews_mapped.300d"


def needs(*paths):
    missing = [path for path in paths if not (DATA / path).exists()]
    return pytest.mark.skipif(bool(missing), reason=f"no {' or '.join(missing)} in {DATA}; set PULLBACK_DATA")


@needs("sst/train.txt", "snli", "ud-ewt")
def test_the_files_are_the_published_ones():
    assert {state for _, _, state in check(DATA)} <= {"as published", "not known"}


@needs("sst", f"vectors/{VECTORS}.npz")
def test_sst_loads(tmp_path):
    corpus = load("sst", DATA, VECTORS, cache=tmp_path)
    assert [len(split) for split in (corpus.train, corpus.dev, corpus.test)] == [6920, 872, 1821]
    assert corpus.train.labels.bincount().tolist() == [3310, 3610]
    assert corpus.description["coverage"] == pytest.approx(0.982, abs=6e-4)


@needs("snli/snli_1.0_train.first100k.jsonl.gz", f"vectors/{VECTORS}.npz")
def test_snli_loads(tmp_path):
    corpus = load("snli", DATA, VECTORS, cache=tmp_path)
    assert (len(corpus.dev), len(corpus.test)) == (9842, 9824)
    assert corpus.dev.labels.bincount().tolist() == [3329, 3235, 3278]
    assert corpus.description["share"]["train"] == pytest.approx(corpus.description["rows"]["train"] / 550_152)


@needs("ud-ewt")
def test_ewt_has_its_sentences():
    found = {name: len(read_conllu(corpus_file("ewt", DATA, name))) for name in files.SPLITS}
    assert found == {"train": 12_544, "dev": 2001, "test": 2077}  # of release 2.16
