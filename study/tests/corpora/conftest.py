"""A small data folder in the publishers' formats, and a server to download from."""

from __future__ import annotations

import gzip
import json

import numpy as np
import pytest

from corpora.server import CONTENT, serve
from pullback_study.corpora.download import download

TREES = {
    "train": ["(3 (2 It) (4 (2 works) (2 .)))", "(2 (2 So) (2 what))", "(1 (2 Not) (1 (2 good) (2 .)))"],
    "dev": ["(0 (2 Awful) (2 .))"],
    "test": ["(4 (2 -LRB-) (4 (2 Great) (2 -RRB-)))", "(2 Hm)"],
}
PAIRS = {
    "train": [("( A dog )", "( A cat )", "contradiction"), ("( It works )", "It", "entailment"), ("A", "( a b )", "-")],
    "dev": [("( A dog )", "( A ( good dog ) )", "neutral"), ("( A dog )", "A", "entailment")],
    "test": [("( A dog )", "( A dog )", "entailment"), ("( a ( b c ) )", "a", "neutral")],
}
PARSES = {
    "train": [(("It", "works", "."), (2, 0, 2)), (("a", "good", "dog"), (3, 3, 0))],
    "dev": [(("dog",), (0,))],
    "test": [(("a", "dog"), (2, 0))],
}
WORDS = ["It", "works", ".", "good", "great", "(", ")", "a", "dog"]


def pair(premise: str, hypothesis: str, label: str) -> str:
    row = {"gold_label": label, "sentence1_binary_parse": premise, "sentence2_binary_parse": hypothesis}
    return json.dumps(row)


def sentence(parse: tuple[tuple[str, ...], tuple[int, ...]]) -> str:
    rows = enumerate(zip(*parse, strict=True), 1)
    return "".join(f"{i}\t{word}\t_\tX\t_\t_\t{head}\tdep\t_\t_\n" for i, (word, head) in rows) + "\n"


@pytest.fixture
def data(tmp_path):
    """SST, SNLI (the training part zipped), EWT, and vectors: word k of `WORDS` is (k, -k)."""
    folder = tmp_path / "data"
    for name in ("sst", "snli", "vectors"):
        (folder / name).mkdir(parents=True)
    for split in ("train", "dev", "test"):
        (folder / "sst" / f"{split}.txt").write_text("".join(f"{tree}\n" for tree in TREES[split]))
        rows = "".join(pair(*each) + "\n" for each in PAIRS[split])
        if split == "train":
            (folder / "snli" / "snli_1.0_train.first100k.jsonl.gz").write_bytes(gzip.compress(rows.encode()))
        else:
            (folder / "snli" / f"snli_1.0_{split}.jsonl").write_text(rows)
    numbers = np.arange(len(WORDS), dtype=np.float16)
    (folder / "ud-ewt").mkdir()
    for split in ("train", "dev", "test"):
        (folder / "ud-ewt" / f"en_ewt-ud-{split}.conllu").write_text("".join(map(sentence, PARSES[split])))
    np.savez(folder / "vectors" / "tiny.npz", words=np.array(WORDS), vectors=np.stack([numbers, -numbers], 1))
    return folder


@pytest.fixture
def site(monkeypatch):
    monkeypatch.setenv("no_proxy", "*")
    with serve() as site:
        site.files["/a.txt"] = CONTENT
        yield site


@pytest.fixture
def fetch(site, tmp_path, monkeypatch):
    """Download one source to the data folder, without waiting before it tries again."""
    monkeypatch.setattr("pooch.core.time.sleep", lambda seconds: None)
    return lambda source: download([source], tmp_path)
