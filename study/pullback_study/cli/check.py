"""`pullback reproduce check`: the tables from the kept runs, and a few of these runs trained again."""

from __future__ import annotations

import contextlib
import itertools
import random
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pullback_study.cli import terminal
from pullback_study.cli.options import uses

if TYPE_CHECKING:
    from pullback_study.runs.store import Stored

_NOTE = (
    "Trained again at full length on this machine, with this version of the code. At the commit of the kept run, on a "
    "machine of its kind, the numbers are the same in all digits. Another version may draw other samples, and another "
    "processor or a GPU rounds differently, which thousands of steps enlarge: three trainings of SPIGOT on 10 clusters that "
    "differed in rounding alone had median accuracies of 65.2, 66.4 and 67.5."
)


@uses("device", "markdown")
def check(
    count: Annotated[int, typer.Option(min=0, metavar="N", help="How many runs to train again.")] = 3,
    draw: Annotated[int | None, typer.Option(metavar="N", help="The seed of the draw. [default: a new one]")] = None,
    results: Annotated[Path, typer.Option(help="The folder of the pages and their archives.")] = Path("docs/results"),
    **given: Any,
) -> None:
    r"""Print the tables from the kept runs beside the paper's, and train some of these runs again.

    The runs are drawn at random from the archives in the repository, equally many of each study, and train at full length on
    this machine. Their numbers are printed beside the kept ones. Runs whose data are not generated are not drawn.

    \b
    pullback reproduce check
    pullback reproduce check --count 10 --draw 1
    """
    from pullback_study.results.archive import unpack
    from pullback_study.results.registry import SECTIONS, find_section
    from pullback_study.tasks import Task, find_task

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
        generated = [run for run in kept if type(find_task(run.task)).sources is Task.sources]
        if not generated:
            terminal.stop(f"{results} has no archive of runs whose data are generated; use the folder docs/results (--results)")
        seed = random.SystemRandom().randrange(1000) if draw is None else draw
        drawn = _drawn(generated, count, random.Random(seed))
        terminal.err.print(f"{terminal.count(len(drawn), 'run')} of {len(generated)}, drawn with --draw {seed}")
        for run in drawn:
            task, again = find_task(run.task), Path(folder) / "again" / run.id
            with _threads(run.result.get("threads")):
                terminal.train_or_exit(task, [task.config_type(**run.config)], **{**given, "runs": again})
        terminal.show(_beside(drawn, Path(folder) / "again"), **given)


def _drawn(runs: Sequence[Stored], count: int, source: random.Random) -> list[Stored]:
    """At most `count` runs, equally many of each task, however many of its runs are kept."""
    tasks = sorted({run.task for run in runs})
    shuffled = {task: source.sample(own := [run for run in runs if run.task == task], len(own)) for task in tasks}
    first = source.randrange(len(tasks))  # which task gets one more
    in_turn = itertools.zip_longest(*(shuffled[task] for task in [*tasks[first:], *tasks[:first]]))
    return list(itertools.islice((run for each in in_turn for run in each if run is not None), count))


@contextlib.contextmanager
def _threads(count: Any) -> Iterator[None]:
    """PyTorch on as many threads as the kept run had: another number rounds differently."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(count if isinstance(count, int) and count > 0 else before)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _beside(drawn: Sequence[Stored], again: Path) -> Any:
    from pullback_study.results.tables import Table
    from pullback_study.runs.store import read_run
    from pullback_study.tasks import find_task

    rows = []
    for run in drawn:
        task, other = find_task(run.task), read_run(again / run.id / run.id)
        config = task.config_type(**run.config)
        where = f"{run.result.get('device')}, commit {str(run.result.get('commit'))[:7]}"
        for metric in task.metrics:
            if metric.headline and metric.name in run.metrics and metric.name in other.metrics:
                values = [each.metrics[metric.name] for each in (run, other)]
                shown = [f"{value:.{metric.digits}f}" for value in (*values, values[1] - values[0])]
                rows.append([task.label([config]), metric.label, shown[0], shown[1], shown[2], where])
    columns = ["Run", "Measure", "kept", "again", "difference", "kept run made by"]
    return Table.of_words("Kept runs, trained again", columns, rows, [_NOTE])
