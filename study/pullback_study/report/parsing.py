"""Trees for runs that are done: a sample of test sentences, parsed with the checkpoint in the run's directory."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from pullback_study.report.forest import best_runs
from pullback_study.report.trees import FILE, write_trees
from pullback_study.results.choice import Runs

_SENTENCES = 60


def keep_trees(runs: Runs, data: Path | None, say: Callable[[str], None]) -> int:
    """Parse for the best run of each estimator that has no trees yet; returns for how many.

    Args:
        runs: the folder of the runs.
        data: the folder of the data, for the sentences and the word vectors; None for `$PULLBACK_DATA`.
        say: is called with what was done, and which run cannot be parsed with.
    """
    from pullback_study.corpora import find_data
    from pullback_study.tasks import TASKS, find_task
    from pullback_study.trees.paper import SENTENCES
    from pullback_study.trees.parser import load_parser, sample, task_sentences

    with_trees = [name for name in TASKS if hasattr(find_task(name), "sides")]
    able = [run for task in with_trees for run in runs.of(task) if run.config.get("estimator") != "baseline"]
    wanted = [run for run in best_runs(able).values() if not (run.path / FILE).exists()]
    if not wanted:
        return 0

    folder = find_data(data)
    kept = 0
    for run in wanted:
        what = f"{run.task}, {run.config.get('estimator')} ({run.id[:8]})"
        try:
            parser = load_parser(run.path, folder)
            sentences = sample(task_sentences(parser.task, folder), _SENTENCES, seed=0, first=SENTENCES)
            write_trees(run.path, parser.parse(sentences))
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RuntimeError) as error:
            say(f"no trees of {what}: {error}")
            continue
        say(f"parsed {len(sentences)} test sentences: {what}")
        kept += 1
    return kept
