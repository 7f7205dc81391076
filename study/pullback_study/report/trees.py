"""The latent trees of all runs side by side, and the files that they are kept in.

    <run>/trees.jsonl      one line for each of some test sentences:
        {"tokens": ["A", "taut", ...], "heads": [2, 0, ...], "mu": [[2, 1, 0.93], ...] or null, "label": "positive"}

Heads and arcs are numbered as treebanks do: 0 is the root, 1 the first word. `mu` lists the arcs [head, word, weight] of an
average structure, those of a noticeable weight; it is null where the model sees a single tree.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

import numpy as np

from pullback.viz import heatmap_svg, tree_svg
from pullback_study.report.html import command, esc, notes, scrolled, sortable, tabs
from pullback_study.results.choice import Runs, number
from pullback_study.results.configurations import describe, label_of
from pullback_study.runs.files import write_atomically
from pullback_study.trees.paper import PRINTED, SENTENCES
from pullback_study.trees.shape import depth, shape

if TYPE_CHECKING:
    from pullback_study.runs.store import Stored

FILE = "trees.jsonl"
_NOTICEABLE = 0.005
_SAMPLE, _SENTENCES, _WORDS = 60, 24, 40  # parsed, shown, and the most words of one that is shown
_COLUMNS = ("Estimator", "depth", "flat trees", "roots per sentence", "length of an arc", "head to the right", "projective",
            "head is the word before", "head is the word after", "sentences")  # fmt: skip
_ABOUT = """<p>The latent tree of each estimator for the same sentence, from the run with its best validation accuracy. Arcs
point from head to word. Where a model sees an average of trees, a heat map shows the weight of each arc.</p>"""


def write_trees(run: Path, analyses: Iterable[Any]) -> None:
    """Keep the trees of some sentences: each has `tokens`, `heads`, a `label` and `mu`, `[n, n]`, or None for the tree."""
    lines = []
    for each in analyses:
        mu = None if each.mu is None else np.asarray(each.mu, dtype=float)
        arcs = None
        if mu is not None and not np.isin(mu, (0, 1)).all():
            arcs = [[0 if h == m else h + 1, m + 1, round(float(mu[h, m]), 4)]
                    for m, h in np.ndindex(*mu.shape) if mu[h, m] >= _NOTICEABLE]  # fmt: skip
        heads = [int(head) for head in each.heads]
        line = {"tokens": list(each.tokens), "heads": heads, "mu": arcs, "label": each.label or None}
        lines.append(json.dumps(line, ensure_ascii=False, allow_nan=False) + "\n")
    write_atomically(run / FILE, "".join(lines))


def read_trees(run: Path) -> tuple[list[dict[str, Any]], int]:
    """The trees of a run's directory, and how many lines are not trees: those are left out."""
    try:
        lines = (run / FILE).read_text(encoding="utf-8", errors="replace").split("\n")  # a word may hold other line breaks
    except OSError:
        return [], 0
    found = [_tree(line) for line in lines if line.strip()]
    good = [tree for tree in found if tree is not None]
    return good, len(found) - len(good)


def _tree(line: str) -> dict[str, Any] | None:
    try:
        row = json.loads(line)
        tokens, heads, mu = row["tokens"], row["heads"], row.get("mu")
        n = len(tokens)
        words = isinstance(tokens, list) and all(isinstance(token, str) for token in tokens)
        if not words or not n or len(heads) != n or not all(type(head) is int and 0 <= head <= n for head in heads):
            return None
        depth(heads)  # an error if these are not the heads of a tree
        arcs = None if mu is None else [[int(h), int(m), round(float(weight), 3)] for h, m, weight in mu]
        if arcs and not all(0 <= h <= n and 1 <= m <= n and 0 <= weight <= 1.001 for h, m, weight in arcs):
            return None
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError):
        return None
    label = row.get("label")
    return {"tokens": tokens, "heads": heads, "mu": arcs, "label": None if label is None else str(label)}


def keep_trees(runs: Runs, data: Path | None, say: Callable[[str], None]) -> None:
    """Parse a sample of test sentences with the best run of each estimator on text that has kept no trees yet."""
    from pullback_study.corpora import find_data
    from pullback_study.tasks import TASKS, find_task
    from pullback_study.tasks.text.task import TextTask
    from pullback_study.trees.parser import load_parser, sample, task_sentences

    tasks = [name for name in TASKS if isinstance(find_task(name), TextTask)]
    able = [run for task in tasks for run in runs.of(task) if run.config.get("estimator") != "baseline"]
    wanted = [run for run in best_runs(able).values() if not (run.path / FILE).exists()]
    folder = find_data(data) if wanted else Path()
    for run in wanted:
        what = f"{run.task}, {run.config.get('estimator')} ({run.id[:8]})"
        try:
            parser = load_parser(run.path, folder)
            sentences = sample(task_sentences(parser.task, folder), _SAMPLE, seed=0, first=SENTENCES)
            write_trees(run.path, parser.parse(sentences))
            say(f"parsed {len(sentences)} test sentences: {what}")
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RuntimeError) as error:
            say(f"no trees of {what}: {error}")


def best_runs(runs: Iterable[Stored]) -> dict[tuple[str, str], Stored]:
    """For each task and estimator the run with the best validation accuracy, the first of equals."""

    def accuracy(run: Stored) -> float:
        value = number(run, "validation_accuracy")
        return -1.0 if value != value else value

    best: dict[tuple[str, str], Stored] = {}
    for run in runs:
        key = (run.task, str(run.config.get("estimator")))
        if key not in best or accuracy(run) > accuracy(best[key]):
            best[key] = run
    return best


def forest(runs: Runs) -> str:
    """One tab for each task with trees; for each estimator the best of the runs that have kept some."""
    best = best_runs(run for run in runs.all if (run.path / FILE).exists())
    if not best:
        return (
            "<p>No run here has kept trees. Once there are trained runs on SST or SNLI, this parses a sample of test "
            f"sentences with them: {command('pullback report --trees --data DATA')}</p>"
        )
    tasks = dict.fromkeys(task for task, _ in best)
    of = {task: [run for (where, _), run in best.items() if where == task] for task in tasks}
    return _ABOUT + tabs("Data", [(describe(task).title, _of_task(task, of[task])) for task in tasks])


def _of_task(task: str, runs: Sequence[Stored]) -> str:
    kept = {run.id: read_trees(run.path) for run in runs}
    seen = dict.fromkeys(tuple(tree["tokens"]) for trees, _ in kept.values() for tree in trees)
    first = [tokens for tokens in SENTENCES if tokens in seen]
    shown = (first + [tokens for tokens in seen if tokens not in first and len(tokens) <= _WORDS])[:_SENTENCES]
    if not shown:
        return notes(["The trees of these runs cannot be read."])
    options = panels = ""
    for i, tokens in enumerate(shown):
        words = esc(" ".join(tokens))
        options += f'<option value="{i}">{"paper: " if tokens in first else ""}{words}</option>'
        cards = "".join(_card(task, run, tokens, kept[run.id][0]) for run in runs)
        panels += f'<div class="sentence"><h4 class="paper-only">{words}</h4><div class="cards">{cards}</div></div>'
    picker = f'<p class="picker"><label>Sentence <select>{options}</select></label></p>'
    left = len(seen) - len(shown)
    said = [f"{left} more sentences of the runs' samples are left out to keep this page small."] if left else []
    said += [f"{bad} lines of the trees of run {name[:8]} cannot be read." for name, (_, bad) in kept.items() if bad]
    lines = [_statistics(label_of(task, str(run.config.get("estimator"))), kept[run.id][0]) for run in runs]
    table = sortable(f"Shape of the trees, {describe(task).title}: means over a sample of test sentences", _COLUMNS, lines)
    said.append("Depth: arcs on the longest path from the artificial root (2: flat). A relaxation's trees are its best ones.")
    return f'<div class="pick">{picker}{panels}</div>{table}{notes(said)}'


def _card(task: str, run: Stored, tokens: tuple[str, ...], trees: Sequence[dict[str, Any]]) -> str:
    name = label_of(task, str(run.config.get("estimator")))
    tree = next((tree for tree in trees if tuple(tree["tokens"]) == tokens), None)
    if tree is None:
        return f'<article class="card"><h4>{esc(name)}</h4>{notes(["This sentence is not in its sample."])}</article>'
    label = f", predicts {tree['label']}" if tree["label"] is not None else ""
    facts = f"depth {depth(tree['heads'])}{label}; seed {run.seed}, run {run.id[:8]}"
    drawing = tree_svg(tokens, tree["heads"]) if tree["mu"] is None else heat_map(tokens, tree["mu"])
    theirs = "".join(
        f'<details><summary class="quiet">the paper\'s tree, depth {depth(each.heads)}</summary>'
        f"{scrolled(tree_svg(tokens, each.heads), f'The tree of {name} in the paper')}</details>"
        for each in PRINTED if each.tokens == tokens and name in each.models
    )  # fmt: skip
    return (
        f'<article class="card"><h4>{esc(name)} <span class="quiet">{esc(facts)}</span></h4>'
        f"{scrolled(drawing, f'Tree of {name}')}{theirs}</article>"
    )


def heat_map(tokens: Sequence[str], arcs: Sequence[Sequence[float]]) -> str:
    """The weights of arcs (head, word, weight), with the names of the axes and the scale."""
    mu = [[0.0] * len(tokens) for _ in tokens]
    for head, word, weight in arcs:
        h, m = int(head), int(word)
        mu[m - 1 if h == 0 else h - 1][m - 1] = min(1.0, weight)
    return (
        '<figure class="heat"><p class="quiet axis">columns: the word →</p><div><p class="quiet axis down">rows: its head →</p>'
        f'{heatmap_svg(tokens, mu)}</div><p class="quiet">weight of an arc: 0 <span class="scale"></span> 1</p></figure>'
    )


def _statistics(label: str, trees: Sequence[dict[str, Any]]) -> list[tuple[str, object]]:
    """What the trees look like, over sentences of at least two words; a relaxation's are its best trees."""
    heads = [tree["heads"] for tree in trees if len(tree["heads"]) > 1]
    if not heads:
        return [(esc(label), label), *[("", None)] * (len(_COLUMNS) - 2), ("0", 0)]
    found = shape(heads)
    arcs = [(head, word) for each in heads for word, head in enumerate(each, 1) if head]
    near = [fmean(h == m + by for h, m in arcs) if arcs else None for by in (-1, 1)]
    flat = fmean(depth(each) <= 2 for each in heads)
    numbers = [(f"{found.depth:.2f}", found.depth), (f"{flat:.0%}", flat), (f"{found.roots:.2f}", found.roots),
               (f"{found.arc_length:.2f}", found.arc_length)]  # fmt: skip
    percents = [("", None) if share is None or share != share else (f"{share:.0%}", share)
                for share in (found.left, found.projective, *near)]  # fmt: skip
    return [(esc(label), label), *numbers, *percents, (str(found.sentences), found.sentences)]
