"""The trees of all runs side by side: for each task, sentences x estimators, and what the trees look like."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from pullback.estimators.registry import ENTRIES
from pullback_study.report.numbers import finite
from pullback_study.report.trees import FILE, read_trees
from pullback_study.results.paper.names import name_of
from pullback_study.status import Listed
from pullback_study.trees.paper import PRINTED, SENTENCES
from pullback_study.trees.shape import depth, shape

_SENTENCES = 60
_BYTES = 1_000_000
_ORDER = {entry.name: i for i, entry in enumerate(ENTRIES)}
_NAMES = {entry.name: name_of(entry.name, structured=True).label for entry in ENTRIES}


def forest(root: Path, listed: Mapping[str, Listed]) -> list[dict[str, Any]]:
    """One entry for each task with trees; for each estimator the best of the runs that have kept some."""
    best = best_runs({name: run for name, run in listed.items() if (root / name / FILE).exists()})
    tasks = sorted({task for task, _ in best}, key=lambda task: (task != "sst", task))
    return [_of_task(task, [run for (where, _), run in best.items() if where == task], root) for task in tasks]


def best_runs(listed: Mapping[str, Listed]) -> dict[tuple[str, str], Listed]:
    """For each task and estimator the run with the best validation accuracy, the first of equals."""
    best: dict[tuple[str, str], Listed] = {}
    for run in listed.values():
        if isinstance(run.config, dict):
            key = (str(run.config.get("task", run.study)), str(run.config.get("estimator")))
            if key not in best or _accuracy(run) > _accuracy(best[key]):
                best[key] = run
    return best


def _of_task(task: str, runs: list[Listed], root: Path) -> dict[str, Any]:
    runs.sort(key=lambda run: (_ORDER.get(str(run.config.get("estimator")), len(_ORDER)), run.hash))
    read = {run.hash: read_trees(root / run.hash) for run in runs}
    sentences = _sentences([trees for trees, _ in read.values()])
    shown = sentences[:_SENTENCES]
    while shown:
        estimators = [_estimator(run, *read[run.hash], shown) for run in runs]
        out = {
            "task": task, "sentences": shown, "estimators": estimators,
            "examples": sum(tokens in SENTENCES for tokens in shown), "left_out": len(sentences) - len(shown),
        }  # fmt: skip
        if len(json.dumps(out)) < _BYTES:
            return out
        shown = shown[: len(shown) * 3 // 4]
    return {"task": task, "sentences": [], "estimators": [], "examples": 0, "left_out": len(sentences)}


def _sentences(samples: Sequence[Sequence[dict[str, Any]]]) -> list[tuple[str, ...]]:
    """The paper's examples, then all others in the order in which they appear."""
    seen = dict.fromkeys(tuple(tree["tokens"]) for trees in samples for tree in trees)
    rank = {tokens: i for i, tokens in enumerate(SENTENCES)}
    return sorted(seen, key=lambda tokens: rank.get(tokens, len(rank)))


def _estimator(
    run: Listed, trees: list[dict[str, Any]], bad: int, sentences: Sequence[tuple[str, ...]]
) -> dict[str, Any]:
    name = str(run.config.get("estimator"))
    by_sentence = {tuple(tree["tokens"]): tree for tree in trees}
    return {
        "name": name, "label": _NAMES.get(name, name), "run": run.hash, "seed": str(run.config.get("seed")),
        "validation": finite(_accuracy(run)), "unreadable": bad,
        "statistics": {**statistics(trees), "test_depth": finite(run.result.get("test_depth"), 3)},
        "trees": [_short(by_sentence.get(tokens)) for tokens in sentences],
        "paper": [_printed(_NAMES.get(name, name), tokens) for tokens in sentences[: len(SENTENCES)]],
    }  # fmt: skip


def _short(tree: dict[str, Any] | None) -> dict[str, Any] | None:
    if tree is None:
        return None
    mu = None if tree["mu"] is None else [arc for arc in tree["mu"] if arc[2] >= 0.01]
    return {"heads": tree["heads"], "mu": mu, "label": tree["label"]}


def _printed(label: str, tokens: tuple[str, ...]) -> list[int] | None:
    """The heads of the tree that the paper prints for a model and a sentence."""
    return next((list(tree.heads) for tree in PRINTED if tree.tokens == tokens and label in tree.models), None)


def statistics(trees: Sequence[dict[str, Any]]) -> dict[str, float | int | None]:
    """What the trees look like, over sentences of at least two words; a relaxation's are its best trees.

    Beside their shape, the share of flat ones (depth 2 at most) and, among words with a word as head, the shares whose head is
    the word before and the word after.
    """
    heads = [tree["heads"] for tree in trees if len(tree["heads"]) > 1]
    if not heads:
        return {"sentences": 0}
    found = shape(heads)
    arcs = [(head, word) for each in heads for word, head in enumerate(each, 1) if head]
    return {
        "sentences": found.sentences, "depth": finite(found.depth, 3), "roots": finite(found.roots, 3),
        "length": finite(found.arc_length, 3), "right": finite(found.left), "projective": finite(found.projective),
        "flat": finite(fmean(depth(each) <= 2 for each in heads)),
        "previous": finite(fmean(h == m - 1 for h, m in arcs)) if arcs else None,
        "next": finite(fmean(h == m + 1 for h, m in arcs)) if arcs else None,
    }  # fmt: skip


def _accuracy(run: Listed) -> float:
    value = run.result.get("validation_accuracy") if isinstance(run.result, dict) else None
    return value if isinstance(value, int | float) else -1.0
