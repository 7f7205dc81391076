"""The latent trees of all runs side by side, and the files that they are kept in.

    <run>/trees.jsonl      one line for each of some test sentences:
        {"tokens": ["A", "taut", ...], "heads": [2, 0, ...], "label": "positive"}

Heads are numbered as treebanks do: 0 is the root, 1 the first word. A relaxation's tree is its best one.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pullback.viz import tree_svg
from pullback_study.report.html import command, esc, scrolled, tabs
from pullback_study.results.choice import Runs
from pullback_study.results.configurations import describe, label_of
from pullback_study.runs.files import write_atomically
from pullback_study.trees.paper import PRINTED, SENTENCES
from pullback_study.trees.shape import depth

if TYPE_CHECKING:
    from pullback_study.runs.store import Stored

FILE = "trees.jsonl"
_SAMPLE, _SENTENCES, _WORDS = 60, 24, 40  # parsed, shown, and the most words of one that is shown
_ABOUT = """<p>The latent tree of each estimator for the same sentence, from the run with its best validation accuracy. Arcs
point from head to word. Where a model sees an average of trees, this is the best one.</p>"""


def write_trees(run: Path, analyses: Iterable[Any]) -> None:
    """Keep the trees of some sentences: each has `tokens`, `heads` and a `label`."""
    rows = [{"tokens": list(each.tokens), "heads": [int(head) for head in each.heads], "label": each.label or None}
            for each in analyses]  # fmt: skip
    write_atomically(run / FILE, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))


def read_trees(run: Path) -> dict[tuple[str, ...], dict[str, Any]]:
    """The trees of a run's directory by their tokens; lines that are not trees are left out."""
    try:
        lines = (run / FILE).read_text(encoding="utf-8", errors="replace").split("\n")  # a word may hold other line breaks
    except OSError:
        return {}
    found = {}
    for line in lines:
        try:
            row = json.loads(line)
            tokens, heads = tuple(map(str, row["tokens"])), [int(head) for head in row["heads"]]
            if 0 < len(tokens) == len(heads) and depth(heads):  # an error if this is no tree
                found[tokens] = {"heads": heads, "label": row.get("label")}
        except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError):
            continue
    return found


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
    best: dict[tuple[str, str], Stored] = {}
    for run in sorted(runs, key=lambda run: -run.metrics.get("validation_accuracy", -1.0)):
        best.setdefault((run.task, str(run.config.get("estimator"))), run)
    return best


def forest(runs: Runs) -> str:
    """One tab for each task with trees; for each estimator the best of the runs that have kept some."""
    best = best_runs(run for run in runs.all if (run.path / FILE).exists())
    if not best:
        return (
            "<p>No run here has kept trees. Once there are trained runs on SST or SNLI, this parses a sample of test "
            f"sentences with them: {command('pullback report --trees --data DATA')}</p>"
        )
    of: dict[str, list[Stored]] = {}
    for (task, _), run in best.items():
        of.setdefault(task, []).append(run)
    return _ABOUT + tabs("Data", [(describe(task).title, _of_task(task, runs)) for task, runs in of.items()])


def _of_task(task: str, runs: Sequence[Stored]) -> str:
    """The sentences, those of the paper first; each opens to its trees."""
    kept = [(run, read_trees(run.path)) for run in runs]
    seen = dict.fromkeys([*SENTENCES, *(tokens for _, trees in kept for tokens in trees if len(tokens) <= _WORDS)])
    shown = [tokens for tokens in seen if any(tokens in trees for _, trees in kept)][:_SENTENCES]
    body = ""
    for i, tokens in enumerate(shown):
        cards = "".join(_card(task, run, tokens, trees[tokens]) for run, trees in kept if tokens in trees)
        opened = " open" if i == 0 else ""
        body += f'<details{opened}><summary>{esc(" ".join(tokens))}</summary><div class="cards">{cards}</div></details>'
    return body or "<p>The trees of these runs cannot be read.</p>"


def _card(task: str, run: Stored, tokens: tuple[str, ...], tree: dict[str, Any]) -> str:
    name = label_of(task, str(run.config.get("estimator")))
    label = f", predicts {tree['label']}" if tree["label"] is not None else ""
    facts = f"depth {depth(tree['heads'])}{label}; seed {run.seed}, run {run.id[:8]}"
    theirs = "".join(
        f'<details><summary class="quiet">the paper\'s tree, depth {depth(each.heads)}</summary>'
        f"{scrolled(tree_svg(tokens, each.heads), f'The tree of {name} in the paper')}</details>"
        for each in PRINTED if each.tokens == tokens and name in each.models
    )  # fmt: skip
    drawing = scrolled(tree_svg(tokens, tree["heads"]), f"Tree of {name}")
    return f'<article class="card"><h4>{esc(name)} <span class="quiet">{esc(facts)}</span></h4>{drawing}{theirs}</article>'
