"""The trees of all runs side by side: for each task, sentences x estimators, and what the trees look like."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from statistics import fmean
from typing import TYPE_CHECKING, Any

from pullback.viz import heatmap_svg, tree_svg
from pullback_study.report.html import command, esc, notes, scrolled, sortable, tabs
from pullback_study.report.trees import FILE, read_trees
from pullback_study.results.choice import Runs, number
from pullback_study.results.configurations import describe, label_of
from pullback_study.trees.paper import PRINTED, SENTENCES
from pullback_study.trees.shape import depth, shape

if TYPE_CHECKING:
    from pullback_study.runs.store import Stored

_SENTENCES, _WORDS = 24, 40
_COLUMNS = ("Estimator", "depth", "flat trees", "roots per sentence", "length of an arc", "head to the right", "projective",
            "head is the word before", "head is the word after", "sentences")  # fmt: skip


def forest(runs: Runs) -> str:
    """One tab for each task with trees; for each estimator the best of the runs that have kept some."""
    best = best_runs(run for run in runs.all if (run.path / FILE).exists())
    if not best:
        return (
            "<p>No run here has kept trees. Once there are trained runs on SST or SNLI, this parses a sample of test "
            f"sentences with them: {command('pullback report --trees --data DATA')}</p>"
        )
    tasks = dict.fromkeys(task for task, _ in best)
    about = (
        "<p>The latent tree of each estimator for the same sentence, from the run with its best validation accuracy. Arcs "
        "point from head to word. Where a model sees an average of trees, a heat map shows the weight of each arc.</p>"
    )
    return about + tabs("Data", [
        (describe(task).title, _of_task(task, [run for (where, _), run in best.items() if where == task])) for task in tasks
    ])  # fmt: skip


def best_runs(runs: Iterable[Stored]) -> dict[tuple[str, str], Stored]:
    """For each task and estimator the run with the best validation accuracy, the first of equals."""
    best: dict[tuple[str, str], Stored] = {}
    for run in runs:
        key = (run.task, str(run.config.get("estimator")))
        if key not in best or _accuracy(run) > _accuracy(best[key]):
            best[key] = run
    return best


def _of_task(task: str, runs: Sequence[Stored]) -> str:
    kept = {run.id: read_trees(run.path) for run in runs}
    seen = dict.fromkeys(tuple(tree["tokens"]) for trees, _ in kept.values() for tree in trees)
    first = [tokens for tokens in SENTENCES if tokens in seen]
    shown = (first + [tokens for tokens in seen if tokens not in first and len(tokens) <= _WORDS])[:_SENTENCES]
    if not shown:
        return notes(["The trees of these runs cannot be read."])
    options, panels = [], []
    for i, tokens in enumerate(shown):
        mark = "paper: " if tokens in first else ""
        options.append(f'<option value="{i}">{esc(mark + " ".join(tokens))}</option>')
        cards = "".join(_card(task, run, tokens, kept[run.id][0]) for run in runs)
        title = f'<h4 class="paper-only">{esc(" ".join(tokens))}</h4>'
        panels.append(f'<div class="sentence">{title}<div class="cards">{cards}</div></div>')
    picker = f'<p class="picker"><label>Sentence <select>{"".join(options)}</select></label></p>'
    left = len(seen) - len(shown)
    said = [f"{left} more sentences of the runs' samples are left out to keep this page small."] if left else []
    said += [f"{bad} lines of the trees of run {name[:8]} cannot be read." for name, (_, bad) in kept.items() if bad]
    lines = [_statistics(label_of(task, str(run.config.get("estimator"))), kept[run.id][0]) for run in runs]
    table = sortable(f"Shape of the trees, {describe(task).title}: means over a sample of test sentences", _COLUMNS, lines)
    said.append("Depth: arcs on the longest path from the artificial root (2: flat). A relaxation's trees are its best ones.")
    return f'<div class="pick">{picker}{"".join(panels)}</div>{table}{notes(said)}'


def _card(task: str, run: Stored, tokens: tuple[str, ...], trees: Sequence[dict[str, Any]]) -> str:
    name = label_of(task, str(run.config.get("estimator")))
    about = f"seed {run.seed}, run {run.id[:8]}"
    tree = next((tree for tree in trees if tuple(tree["tokens"]) == tokens), None)
    if tree is None:
        return f'<article class="card"><h4>{esc(name)}</h4>{notes(["This sentence is not in its sample."])}</article>'
    facts = f"depth {depth(tree['heads'])}" + (f", predicts {tree['label']}" if tree["label"] is not None else "")
    drawing = tree_svg(tokens, tree["heads"]) if tree["mu"] is None else heat_map(tokens, tree["mu"])
    printed = next((each for each in PRINTED if each.tokens == tokens and name in each.models), None)
    theirs = "" if printed is None else (
        f'<details><summary class="quiet">the paper\'s tree, depth {depth(printed.heads)}</summary>'
        f"{scrolled(tree_svg(tokens, printed.heads), f'The tree of {name} in the paper')}</details>"
    )  # fmt: skip
    return (
        f'<article class="card"><h4>{esc(name)} <span class="quiet">{esc(facts)}; {esc(about)}</span></h4>'
        f"{scrolled(drawing, f'Tree of {name}')}{theirs}</article>"
    )


def heat_map(tokens: Sequence[str], arcs: Sequence[Sequence[float]]) -> str:
    """The weights of arcs (head, word, weight), with the names of the axes and the scale."""
    n = len(tokens)
    mu = [[0.0] * n for _ in range(n)]
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
    found = dataclasses.asdict(shape(heads))
    arcs = [(head, word) for each in heads for word, head in enumerate(each, 1) if head]
    shares = [found["left"], found["projective"], *(fmean(h == m + by for h, m in arcs) if arcs else None for by in (-1, 1))]
    flat = fmean(depth(each) <= 2 for each in heads)
    numbers = [(f"{found[name]:.2f}", found[name]) for name in ("depth", "roots", "arc_length")]
    numbers.insert(1, (f"{flat:.0%}", flat))
    percents = [("", None) if share is None or share != share else (f"{share:.0%}", share) for share in shares]
    return [(esc(label), label), *numbers, *percents, (str(found["sentences"]), found["sentences"])]


def _accuracy(run: Stored) -> float:
    value = number(run, "validation_accuracy")
    return -1.0 if value != value else value
