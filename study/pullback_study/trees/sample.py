"""Samples of the test sentences of a task."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

from pullback_study.corpora.loading import READERS
from pullback_study.tasks import find_task
from pullback_study.tasks.text.task import TextTask

Tokens = tuple[str, ...]


def task_sentences(task: str, data: Path) -> list[Tokens]:
    """The sentences of the test set in order, each once; for pairs both sides.

    Examples that the task leaves out (neutral ones of SST, SNLI's without a label) are left out.
    """
    found = find_task(task)
    if not isinstance(found, TextTask):
        raise ValueError(f"there are no test sentences for the task {task!r}")
    examples = READERS[task](found.file(data, "test"), Counter(), 10**6)
    return list(dict.fromkeys(tokens for example in examples for tokens in example.sentences if tokens))


def sample(sentences: list[Tokens], size: int, seed: int, first: tuple[Tokens, ...] = ()) -> list[Tokens]:
    """Random sentences in the order of the set, after those of `first` that it contains.

    >>> sample([("a",), ("b",), ("c",)], 2, seed=0, first=(("c",), ("d",)))
    [('c',), ('b',)]
    """
    if size < 1:
        raise ValueError(f"the sample has {size} sentences; it needs at least 1")
    there = set(sentences)
    start = [tokens for tokens in first if tokens in there][:size]
    rest = [tokens for tokens in sentences if tokens not in set(start)]
    drawn = random.Random(seed).sample(range(len(rest)), min(size - len(start), len(rest)))
    return start + [rest[i] for i in sorted(drawn)]
