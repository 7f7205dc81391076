"""Small corpora made by the tests: the label is whether a word occurs, so that a model can learn it."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np
import torch

from pullback_study.corpora import Corpus, Split
from pullback_study.tasks import find_task
from pullback_study.tasks.latent.trainer import LatentTrainer
from pullback_study.tasks.text.problem import TextProblem
from pullback_study.tasks.text.task import TextTask

EXAMPLE = ("A", "taut", ",", "intelligent", "psychological", "drama", ".")
WORDS = [*EXAMPLE, *(f"w{i}" for i in range(20))]
DIMENSION = 6
GOOD, BAD = "taut", "w3"


def sentences(examples: int, seed: int) -> list[tuple[list[str], int]]:
    """Sentences of 1 to 9 words with their labels: 1 with GOOD, 0 with BAD."""
    random = np.random.default_rng(seed)
    out = []
    for i in range(examples):
        words = [WORDS[k] for k in random.integers(8, len(WORDS), random.integers(1, 10))]
        words[random.integers(len(words))] = GOOD if i % 2 else BAD
        out.append(([word for word in words if word == (GOOD if i % 2 else BAD) or word != BAD], i % 2))
    return out


def vectors() -> np.ndarray:
    return np.random.default_rng(0).normal(size=(len(WORDS), DIMENSION)).astype(np.float32)


def corpus(task: str = "sst", examples: int = 60) -> Corpus:
    """The corpus in memory; for SNLI the premise decides, and labels are 0 and 1 only."""
    sides = 1 if task == "sst" else 2
    rows = {word: row for row, word in enumerate(WORDS, 2)}

    def split(size: int, seed: int) -> Split:
        made = sentences(size, seed)
        words = [each for tokens, _ in made for each in ([tokens, WORDS[:3]] if sides == 2 else [tokens])]
        flat = torch.tensor([rows[word] for tokens in words for word in tokens], dtype=torch.int32)
        offsets = torch.tensor([0, *np.cumsum([len(tokens) for tokens in words])])
        return Split(flat, offsets, torch.tensor([label for _, label in made]), sides)

    table = torch.cat([torch.zeros(2, DIMENSION), torch.from_numpy(vectors())])
    about = {
        "vectors": "tiny", "dimension": DIMENSION, "coverage": 1.0, "share": {"train": 1.0},
        "checksums": {"train": "0", "vectors": "0"},
    }  # fmt: skip
    return Corpus(split(examples, 1), split(30, 2), split(30, 3), table, ["<padding>", "<unknown>", *WORDS], about)


def config(task: str = "sst", estimator: str = "marginals", **options):
    """A config that learns the small corpus; its names are those of the files that `write` makes."""
    names = {"vectors": "tiny", "data": {"sst": "sst", "snli": "snli_1.0_train"}[task]}
    fields = {"learning_rate": 0.01, "epochs": 2, "batch_size": 16, **names, **options}
    return find_task(task).configure(estimator=estimator, **fields)


@dataclasses.dataclass(frozen=True, kw_only=True)
class InMemory(TextTask):
    read: Corpus

    def problem(self, settings):
        return TextProblem(self, settings, self.read)


def in_memory(task: str = "sst", examples: int = 60) -> InMemory:
    """The task on the corpus in memory."""
    fields = {each.name: getattr(find_task(task), each.name) for each in dataclasses.fields(TextTask)}
    return InMemory(**fields, read=corpus(task, examples))


def trainer(settings, task: str = "sst", device: str = "cpu", examples: int = 60) -> LatentTrainer:
    return LatentTrainer(in_memory(task, examples), [settings], device)


def write(folder: Path, examples: int = 60) -> Path:
    """The same as files in the publishers' formats."""
    for name in ("sst", "snli", "vectors"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    for seed, (split, size) in enumerate({"train": examples, "dev": 30, "test": 30}.items(), 1):
        made = [*sentences(size - 1, seed), (list(EXAMPLE), 1)]
        trees = [_tree(tokens, 4 if label else 0) for tokens, label in made]
        (folder / "sst" / f"{split}.txt").write_text("".join(f"{tree}\n" for tree in trees))
        pairs = [
            {
                "gold_label": "neutral" if label else "entailment",
                "sentence1_binary_parse": " ".join(tokens),
                "sentence2_binary_parse": " ".join(WORDS[:3]),
            }
            for tokens, label in made
        ]
        (folder / "snli" / f"snli_1.0_{split}.jsonl").write_text("".join(json.dumps(each) + "\n" for each in pairs))
    np.savez(folder / "vectors" / "tiny.npz", words=np.array(WORDS), vectors=vectors())
    return folder


def _tree(tokens: list[str], label: int) -> str:
    if len(tokens) == 1:
        return f"({label} {tokens[0]})"
    return f"({label} (2 {tokens[0]}) {_tree(tokens[1:], 2)})"
