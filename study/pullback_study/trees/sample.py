"""Samples of the test sentences of a task."""

from __future__ import annotations

import random
from pathlib import Path

from pullback_study.corpora import read_conllu, read_snli, read_sst
from pullback_study.corpora.sst import binary
from pullback_study.tasks import find_task
from pullback_study.tasks.text.task import TextTask

Tokens = tuple[str, ...]


def task_sentences(task: str, data: Path) -> list[Tokens]:
    """The sentences of the test set in order, each once; for pairs both sides.

    Empty sentences and the neutral sentences of SST are left out.
    """
    found = find_task(task)
    if not isinstance(found, TextTask):
        raise ValueError(f"there are no test sentences for the task {task!r}")
    return [tokens for tokens in dict.fromkeys(_read(found.file(data, "test"))) if tokens]


def _read(path: Path) -> list[Tokens]:
    """The sentences of a file in one of the formats of the corpora, by its ending."""
    ending = Path(path.name.removesuffix(".gz")).suffix
    if ending == ".jsonl":
        return [side for pair in read_snli(path) for side in (pair.premise, pair.hypothesis)]
    if ending == ".conllu":
        return [parse.tokens for parse in read_conllu(path)]
    return [sentence.tokens for sentence in binary(read_sst(path))[0]]


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
