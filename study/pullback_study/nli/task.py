"""SNLI as a task: its paper settings.

The paper's text speaks of projective trees for SST only, and its code used non-projective ones here: so do we, by default.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pullback_study.nli.model import DecomposableAttention
from pullback_study.text.model import TextModel
from pullback_study.text.task import Task

if TYPE_CHECKING:
    from pullback_study.corpora.corpus import Corpus


def _model(inputs: int, trees: bool) -> TextModel:
    return DecomposableAttention(inputs, trees=trees)


def _load(data: Path, vectors: str) -> Corpus:
    from pullback_study.corpora import load_snli

    return load_snli(data, vectors)


def _file(data: Path, split: str) -> Path:
    from pullback_study.corpora.layout import snli_file

    return snli_file(data, split)


def _training_data(data: Path) -> str:
    return _file(data, "train").name.removesuffix(".gz").removesuffix(".jsonl")


SNLI = Task(
    name="snli",
    title="SNLI",
    sides=2,
    labels=("entailment", "neutral", "contradiction"),
    model=_model,
    load=_load,
    file=_file,
    training_data=_training_data,
    batch_size=64,
    weight_decay=0.01,
    averaged_over=64,
    projective=False,
    learning_rates=(1e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2),
    step_sizes=(0.001, 0.01, 0.1, 1.0, 10.0),
)
