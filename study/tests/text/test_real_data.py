"""On the published data, where it is at hand."""

import os
from pathlib import Path

import pytest

from pullback_study.tasks import find_task

SHARED = Path(__file__).parents[4] / "shared" / "data"
DATA = Path(os.environ.get("PULLBACK_DATA") or SHARED)

needs_data = pytest.mark.skipif(
    not ((DATA / "sst" / "train.txt").is_file() and (DATA / "vectors").is_dir()),
    reason="needs SST and its word vectors: set PULLBACK_DATA",
)


@needs_data
@pytest.mark.usefixtures("own_cache")
def test_one_epoch_of_sst_beats_the_majority_class():
    task = find_task("sst", DATA)
    trainer = task.trainer([task.configure(estimator="spigot", learning_rate=1e-3, epochs=1)], "cpu")
    labels = trainer.problem.splits[2].labels
    majority = 100 * labels.bincount().max().item() / len(labels)
    trainer.advance(trainer.steps, lambda: False)
    (result,) = trainer.results()
    assert result["test_accuracy"] > majority + 10
