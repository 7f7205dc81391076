"""`pullback reproduce check`: the tables from the kept runs, and a few of these runs trained again."""

from __future__ import annotations

import random
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pullback_study.cli import terminal
from pullback_study.cli.options import uses

if TYPE_CHECKING:
    from pullback_study.runs.store import Stored

_NOTE = (
    "Trained again at full length on this machine. Training is deterministic on one machine. Another processor, a GPU or "
    "another number of threads may round differently, which thousands of steps enlarge: three trainings of SPIGOT on 10 "
    "clusters that differed in rounding alone had median accuracies of 65.2, 66.4 and 67.5."
)


@uses("workers", "device", "markdown")
def check(
    count: Annotated[int, typer.Option(min=0, metavar="N", help="How many runs to train again.")] = 3,
    draw: Annotated[int | None, typer.Option(metavar="N", help="The seed of the draw. [default: a new one]")] = None,
    results: Annotated[Path, typer.Option(help="The folder of the pages and their archives.")] = Path("docs/results"),
    **given: Any,
) -> None:
    r"""Print the tables from the kept runs beside the paper's, and train some of these runs again.

    The runs are drawn at random from the archives in the repository, and train at full length on this machine. Their numbers
    are printed beside the kept ones. Runs whose data are not generated are not drawn.

    \b
    pullback reproduce check
    pullback reproduce check --count 10 --draw 1 --workers 2
    """
    from pullback_study.results.archive import unpack
    from pullback_study.results.registry import SECTIONS, find_section
    from pullback_study.tasks import find_task

    kept: list[Stored] = []
    with tempfile.TemporaryDirectory() as folder:
        for name in SECTIONS:
            archive = results / f"runs-{name}.tar.xz"
            if archive.exists():
                with terminal.user_errors(f"read {archive}"):
                    runs, section = unpack(archive, Path(folder) / name), find_section(name)
                groups = [group for group in section.groups(runs) if not group.warning]
                terminal.show(*(table for group in groups for table in group.tables if table.runs), **given)
                kept += [run for run in runs.all if run.state == "done" and not run.older]
        generated = [run for run in kept if run.task in _generated()]
        if not generated:
            terminal.stop(f"{results} has no archive of runs whose data are generated; use the folder docs/results (--results)")
        seed = random.SystemRandom().randrange(1000) if draw is None else draw
        drawn = random.Random(seed).sample(generated, min(count, len(generated)))
        terminal.err.print(f"{terminal.count(len(drawn), 'run')} of {len(generated)}, drawn with --draw {seed}")
        again = Path(folder) / "again"
        by_task = defaultdict(list)
        for run in drawn:
            by_task[run.task].append(find_task(run.task).config_type(**run.config))
        for name, configs in by_task.items():
            terminal.train_or_exit(find_task(name), configs, **{**given, "runs": again})
        terminal.show(_beside(drawn, again), **given)


def _generated() -> list[str]:
    """The tasks that need no files."""
    from pullback_study.tasks import all_tasks

    return [task.name for task in all_tasks() if not _needs_files(task)]


def _needs_files(task: Any) -> bool:
    try:
        return bool(task.sources(task.configure(estimator=next(iter(task.methods)))))
    except (ValueError, OSError):
        return True


def _beside(drawn: Sequence[Stored], again: Path) -> Any:
    from pullback_study.results.tables import Table
    from pullback_study.runs.store import read_run
    from pullback_study.tasks import find_task

    rows = []
    for run in drawn:
        task, other = find_task(run.task), read_run(again / run.id)
        config = task.config_type(**run.config)
        where = f"{run.result.get('device')}, {run.result.get('runs_in_group')} together"
        for metric in task.metrics:
            if metric.headline and metric.name in run.metrics and metric.name in other.metrics:
                values = [each.metrics[metric.name] for each in (run, other)]
                shown = [f"{value:.{metric.digits}f}" for value in (*values, values[1] - values[0])]
                rows.append([task.label([config]), metric.label, shown[0], shown[1], shown[2], where])
    columns = ["Run", "Measure", "kept", "again", "difference", "kept run's machine"]
    return Table.of_words("Kept runs, trained again", columns, rows, [_NOTE])
