"""What the trainer must know about a task."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pullback_study.text.model import TextModel

if TYPE_CHECKING:
    from pullback_study.corpora.corpus import Corpus


@dataclass(frozen=True)
class Task:
    """A data set, its models and the paper's settings that all rows share.

    Args:
        name: on the command line and in configs.
        title: in tables; the paper's column.
        sides: sentences in an example, each with a tree.
        labels: the classes, in the order of the logits.
        model: from the size of the word vectors and whether there are trees to a model with fresh parameters.
        load: from the data's folder and the vectors' name to the corpus.
        file: from the data's folder and a split's name to the split's file.
        training_data: from the data's folder to a name of the training data that is there: all of SNLI, or a part.
        batch_size: examples.
        weight_decay: AdamW's.
        averaged_over: how many numbers the loss of the paper's code was averaged over: its step sizes are of that mean.
        projective: whether trees are, by default.
        learning_rates: the paper's grid.
        step_sizes: the paper's grid.
        example: a sentence whose tree is kept in a run's result, for the claim about it.
    """

    name: str
    title: str
    sides: int
    labels: tuple[str, ...]
    model: Callable[[int, bool], TextModel]
    load: Callable[[Path, str], Corpus]
    file: Callable[[Path, str], Path]
    training_data: Callable[[Path], str]
    batch_size: int
    weight_decay: float
    averaged_over: int
    projective: bool
    learning_rates: tuple[float, ...]
    step_sizes: tuple[float, ...]
    example: tuple[str, ...] = ()
