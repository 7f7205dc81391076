"""On the published data, where it is at hand."""

import os
from pathlib import Path

import pytest

from pullback_study.corpora import load_sst
from pullback_study.text.config import VECTORS, configure
from pullback_study.text.trainer import TextTrainer

SHARED = Path(__file__).parents[4] / "shared" / "data"
DATA = Path(os.environ.get("PULLBACK_DATA") or SHARED)

needs_data = pytest.mark.skipif(
    not ((DATA / "sst" / "train.txt").is_file() and (DATA / "vectors" / f"{VECTORS}.npz").is_file()),
    reason="needs SST and its word vectors: set PULLBACK_DATA",
)


@needs_data
def test_one_epoch_of_sst_beats_the_majority_class(tmp_path):
    corpus = load_sst(DATA, cache=tmp_path)
    majority = 100 * corpus.test.labels.bincount().max().item() / len(corpus.test)
    trainer = TextTrainer(configure("sst", "spigot", learning_rate=1e-3, epochs=1), corpus)
    trainer.advance(trainer.steps, lambda: False)
    (result,) = trainer.results()
    assert result["test_accuracy"] > majority + 10
