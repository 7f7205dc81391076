"""The trees of all runs side by side: for each task, sentences x estimators, and what the trees look like."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from pullback.estimators.registry import ENTRIES
from pullback.experiments.report.numbers import finite
from pullback.experiments.report.trees import EXAMPLES, FILE, depth, read_trees
from pullback.experiments.status import Listed

_SENTENCES = 60
_BYTES = 1_000_000
_ORDER = {entry.name: i for i, entry in enumerate(ENTRIES)}
_NAMES = {entry.name: entry.structured for entry in ENTRIES}


def forest(root: Path, listed: Mapping[str, Listed]) -> list[dict[str, Any]]:
    """One entry for each task with trees; for each estimator the run with the best validation accuracy."""
    best: dict[tuple[str, str], Listed] = {}
    for run in listed.values():
        if isinstance(run.config, dict) and (root / run.hash / FILE).exists():
            key = (str(run.config.get("task", run.study)), str(run.config.get("estimator")))
            if key not in best or _accuracy(run) > _accuracy(best[key]):
                best[key] = run
    tasks = sorted({task for task, _ in best}, key=lambda task: (task != "sst", task))
    return [_of_task(task, [run for (where, _), run in best.items() if where == task], root) for task in tasks]


def _of_task(task: str, runs: list[Listed], root: Path) -> dict[str, Any]:
    runs.sort(key=lambda run: (_ORDER.get(str(run.config.get("estimator")), len(_ORDER)), run.hash))
    read = {run.hash: read_trees(root / run.hash) for run in runs}
    sentences = _sentences([trees for trees, _ in read.values()])
    shown = sentences[:_SENTENCES]
    while shown:
        estimators = [_estimator(run, *read[run.hash], shown) for run in runs]
        out = {
            "task": task, "sentences": shown, "estimators": estimators,
            "examples": sum(" ".join(tokens) in EXAMPLES for tokens in shown), "left_out": len(sentences) - len(shown),
        }  # fmt: skip
        if len(json.dumps(out)) < _BYTES:
            return out
        shown = shown[: len(shown) * 3 // 4]
    return {"task": task, "sentences": [], "estimators": [], "examples": 0, "left_out": len(sentences)}


def _sentences(samples: Sequence[Sequence[dict[str, Any]]]) -> list[tuple[str, ...]]:
    """The paper's examples, then all others in the order in which they appear."""
    seen = dict.fromkeys(tuple(tree["tokens"]) for trees in samples for tree in trees)
    rank = {sentence: i for i, sentence in enumerate(EXAMPLES)}
    return sorted(seen, key=lambda tokens: rank.get(" ".join(tokens), len(rank)))


def _estimator(
    run: Listed, trees: list[dict[str, Any]], bad: int, sentences: Sequence[tuple[str, ...]]
) -> dict[str, Any]:
    name = str(run.config.get("estimator"))
    by_sentence = {tuple(tree["tokens"]): tree for tree in trees}
    return {
        "name": name, "label": _NAMES.get(name, name), "run": run.hash, "seed": run.config.get("seed"),
        "validation": finite(_accuracy(run)), "unreadable": bad,
        "statistics": {**statistics(trees), "test_depth": finite(run.result.get("test_depth"), 3)},
        "trees": [_short(by_sentence.get(tokens)) for tokens in sentences],
    }  # fmt: skip


def _short(tree: dict[str, Any] | None) -> dict[str, Any] | None:
    if tree is None:
        return None
    mu = None if tree["mu"] is None else [arc for arc in tree["mu"] if arc[2] >= 0.01]
    return {"heads": tree["heads"], "mu": mu, "label": tree["label"]}


def statistics(trees: Sequence[dict[str, Any]]) -> dict[str, float | int | None]:
    """What the trees look like, over sentences of at least two words; a relaxation's are its best trees.

    Mean depth; the share of flat trees (depth 2 at most); words attached to the root; among the others, the mean length of
    an arc and the shares of heads to the right, of the word before and of the word after.
    """
    heads = [tree["heads"] for tree in trees if len(tree["heads"]) > 1]
    if not heads:
        return {"sentences": 0}
    depths = [depth(each) or 0 for each in heads]
    arcs = [(head, word) for each in heads for word, head in enumerate(each, 1) if head]
    return {
        "sentences": len(heads),
        "depth": round(fmean(depths), 3),
        "flat": round(fmean(d <= 2 for d in depths), 4),
        "roots": round(fmean(each.count(0) for each in heads), 3),
        "length": round(fmean(abs(h - m) for h, m in arcs), 3) if arcs else None,
        "right": round(fmean(h > m for h, m in arcs), 4) if arcs else None,
        "previous": round(fmean(h == m - 1 for h, m in arcs), 4) if arcs else None,
        "next": round(fmean(h == m + 1 for h, m in arcs), 4) if arcs else None,
    }


def _accuracy(run: Listed) -> float:
    value = run.result.get("validation_accuracy") if isinstance(run.result, dict) else None
    return value if isinstance(value, int | float) else -1.0
