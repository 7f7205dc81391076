"""Trees for runs that are done: a sample of test sentences, parsed with the checkpoint in the run's directory."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from pullback_study.report.forest import best_runs
from pullback_study.report.numbers import UNREADABLE
from pullback_study.report.trees import FILE, write_trees
from pullback_study.status import Listed

_SENTENCES = 60


def keep_trees(root: Path, listed: Mapping[str, Listed], data: Path | None, say: Callable[[str], None]) -> int:
    """Parse for the best run of each estimator that has no trees yet; returns for how many.

    Args:
        root: the folder of the runs.
        listed: its runs.
        data: the folder of the data, for the sentences and the word vectors; None for `$PULLBACK_DATA`.
        say: is told what is done, and which run cannot be parsed with.
    """
    from pullback_study.corpora import find_data
    from pullback_study.trees.paper import SENTENCES
    from pullback_study.trees.parser import load_parser
    from pullback_study.trees.sample import sample, task_sentences

    able = {name: run for name, run in listed.items() if run.study == "text" and run.status == "done"}
    best = [run for run in best_runs(able).values() if run.config.get("estimator") != "baseline"]
    wanted = [run for run in best if not (root / run.hash / FILE).exists()]
    if not wanted:
        return 0
    folder = find_data(data)
    kept = 0
    for run in wanted:
        what = f"{run.config.get('task')}, {run.config.get('estimator')} ({run.hash[:8]})"
        try:
            parser = load_parser(root / run.hash, folder)
            sentences = sample(task_sentences(parser.task, folder), _SENTENCES, seed=0, first=SENTENCES)
            write_trees(root / run.hash, parser.parse(sentences))
        except (*UNREADABLE, RuntimeError) as error:
            say(f"no trees of {what}: {error}")
            continue
        say(f"parsed {len(sentences)} test sentences: {what}")
        kept += 1
    return kept
