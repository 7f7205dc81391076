"""Sentiment of sentences (SST), with a latent dependency tree."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pullback_study.tasks.text.task import TextTask

if TYPE_CHECKING:
    from pullback_study.corpora import Corpus
    from pullback_study.tasks.text.model import TextModel


def _model(inputs: int, trees: bool) -> TextModel:
    from pullback_study.tasks.sst.model import Baseline, LatentTree

    return LatentTree(inputs) if trees else Baseline(inputs)


def _load(data: Path, vectors: str) -> Corpus:
    from pullback_study.corpora import load_sst

    return load_sst(data, vectors)


def _file(data: Path, split: str) -> Path:
    from pullback_study.corpora.layout import sst_file

    return sst_file(data, split)


TASK = TextTask(
    name="sst",
    title="SST",
    about="Sentiment of a sentence, through a latent dependency tree.",
    sides=1,
    labels=("negative", "positive"),
    model=_model,
    load=_load,
    file=_file,
    best={
        "baseline": (2e-5, None),
        "marginals": (1e-4, None),
        "sparsemap": (5e-5, None),
        "perturb-and-map": (5e-5, None),
        "ste-s": (5e-5, None),
        "ste-i": (1e-4, 1.0),  # the paper lists no step size: with one inner step it only scales the parser's gradient
        "spigot": (1e-4, 0.1),
        "spigot-ce": (5e-5, 0.1),
        "spigot-eg": (5e-5, 0.1),
    },
    batch_size=32,
    weight_decay=1e-4,
    averaged_over=16,
    projective=True,
    learning_rates=(1e-5, 2e-5, 5e-5, 1e-4, 5e-4, 1e-3, 2e-3),
    step_sizes=(0.1, 1.0, 10.0),
    example=("A", "taut", ",", "intelligent", "psychological", "drama", "."),
)
