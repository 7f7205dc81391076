"""Samples of the test sentences of a task."""

from __future__ import annotations

import random
from pathlib import Path

from pullback_study.corpora.layout import snli_file, sst_file
from pullback_study.corpora.snli import read_snli
from pullback_study.corpora.sst import binary, read_sst

Tokens = tuple[str, ...]


def task_sentences(task: str, data: Path) -> list[Tokens]:
    """The sentences of the test set in order, each once; for SNLI premises and hypotheses.

    Empty sentences and the neutral sentences of SST are left out.
    """
    if task == "sst":
        found = [sentence.tokens for sentence in binary(read_sst(sst_file(data, "test")))[0]]
    elif task == "snli":
        found = [side for pair in read_snli(snli_file(data, "test")) for side in (pair.premise, pair.hypothesis)]
    else:
        raise ValueError(f"there are no test sentences for the task {task!r}; it is sst or snli")
    return [tokens for tokens in dict.fromkeys(found) if tokens]


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
