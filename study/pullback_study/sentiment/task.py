"""SST as a task: its paper settings."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pullback_study.sentiment.model import Baseline, LatentTree
from pullback_study.text.model import TextModel
from pullback_study.text.task import Task

if TYPE_CHECKING:
    from pullback_study.corpora.corpus import Corpus


def _model(inputs: int, trees: bool) -> TextModel:
    return LatentTree(inputs) if trees else Baseline(inputs)


def _load(data: Path, vectors: str) -> Corpus:
    from pullback_study.corpora import load_sst

    return load_sst(data, vectors)


def _file(data: Path, split: str) -> Path:
    from pullback_study.corpora.layout import sst_file

    return sst_file(data, split)


def _training_data(data: Path) -> str:
    return "sst"


SST = Task(
    name="sst",
    title="SST",
    sides=1,
    labels=("negative", "positive"),
    model=_model,
    load=_load,
    file=_file,
    training_data=_training_data,
    batch_size=32,
    weight_decay=1e-4,
    averaged_over=16,
    projective=True,
    learning_rates=(1e-5, 2e-5, 5e-5, 1e-4, 5e-4, 1e-3, 2e-3),
    step_sizes=(0.1, 1.0, 10.0),
    example=("A", "taut", ",", "intelligent", "psychological", "drama", "."),
)
