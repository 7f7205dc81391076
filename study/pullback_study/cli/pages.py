"""`pullback reproduce claims`, `page` and `check`: what follows from existing runs, and a few of them trained again."""

from __future__ import annotations

import itertools
import random
import tempfile
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pullback_study.cli import terminal
from pullback_study.cli.options import uses

if TYPE_CHECKING:
    from pullback_study.runs.store import Stored

Page = StrEnum("Page", ["synthetic", "text", "listops", "planted", "ud", "sst-wide"])
_NOTE = (
    "Trained again at full length on this machine, with this version of the code. At the commit of the kept run, on a "
    "machine of its kind, the numbers are the same in all digits. Another version may draw other samples, and another "
    "processor or a GPU rounds differently, which thousands of steps enlarge: three trainings of SPIGOT on 10 clusters that "
    "differed in rounding alone had median accuracies of 65.2, 66.4 and 67.5."
)


@uses("runs", "seeds", "dtype", "markdown", "json")
def claims(**given: Any) -> None:
    """Print verdicts on the paper's claims, from existing runs, without training.

    Each rule is applied to the runs, and to the paper's own numbers. Verdicts on clusters rest on 48 seeds, or as many as
    --seeds says, at the paper's settings (table1, steps) and at searched ones (table1 --grid). Verdicts on text need the runs
    of table2 --search for both tasks, and of steps --task sst.
    """
    from pullback_study.results.choice import Runs
    from pullback_study.results.paper import claims_clusters, claims_text, clusters

    with terminal.user_errors(f"read the runs in {given['runs']}"):
        found = Runs(given["runs"])
        protocol = clusters.protocol_of(**given) if given["seeds"] else clusters.MANY.having(dtype=given["dtype"])
        decided = [*claims_clusters.claims(found, protocol=protocol), *claims_text.claims(found)]
    terminal.show(*(claim.table() for claim in decided), **given)


@uses("runs")
def page(
    path: Annotated[Path | None, typer.Argument(help="The Markdown file to update, between its two marks.")] = None,
    study: Annotated[Page, typer.Option(help="The study whose page is written.")] = Page.synthetic,
    force: Annotated[
        bool, typer.Option("--force", help="Write the page even if it loses numbers, or if no clean commit made its runs.")
    ] = False,
    *,
    runs: Path,
) -> None:
    """Write a results page, its figures and the archive of its runs, from existing runs, without training.

    The page is docs/results/STUDY.md by default, and the archive runs-STUDY.tar.xz beside it. A page with numbers that the runs
    do not give is not replaced.
    """
    from pullback_study.results.choice import Runs
    from pullback_study.results.registry import archive_of, check_origins, find_section, pack, update_page

    path = path or Path("docs/results") / f"{study}.md"
    section, found = find_section(study), Runs(runs)
    with terminal.user_errors(f"update the page {path}"):
        path.read_text()  # a page that cannot be read is named first
        groups = section.groups(found)
        if not any(table.runs for group in groups for table in group.tables):
            raise ValueError(f"there are no runs of {study} in {runs}/; choose another folder (--runs)")
        if not force:
            check_origins(groups, found)
        update_page(path, groups, section.claims(found), force=force)
        kept = pack(found, section.tasks, archive_of(path), force=force)
    terminal.err.print(f"wrote {path}, and {terminal.count(kept, 'run')} into {archive_of(path)}")


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
    import torch

    from pullback_study.results.registry import SECTIONS, find_section, unpack
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
        generated = [run for run in kept if not find_task(run.task).corpus]
        if not generated:
            terminal.stop(f"{results} has no archive of runs whose data are generated; use the folder docs/results (--results)")
        seed = random.SystemRandom().randrange(1000) if draw is None else draw
        drawn = _drawn(generated, count, random.Random(seed))
        terminal.err.print(f"{terminal.count(len(drawn), 'run')} of {len(generated)}, drawn with --draw {seed}")
        before = torch.get_num_threads()
        try:
            for run in drawn:
                threads, again = run.result.get("threads"), Path(folder) / "again" / run.id
                same = threads if isinstance(threads, int) and threads > 0 else before  # another number rounds differently
                torch.set_num_threads(same)
                task = find_task(run.task)
                terminal.train_or_exit(task, [task.config_type(**run.config)], **{**given, "runs": again})
        finally:
            torch.set_num_threads(before)
        terminal.show(_beside(drawn, Path(folder) / "again"), **given)


def _drawn(runs: Sequence[Stored], count: int, source: random.Random) -> list[Stored]:
    """At most `count` runs, equally many of each task, however many of its runs are kept."""
    tasks = sorted({run.task for run in runs})
    shuffled = {task: source.sample(own := [run for run in runs if run.task == task], len(own)) for task in tasks}
    first = source.randrange(len(tasks))  # which task gets one more
    in_turn = itertools.zip_longest(*(shuffled[task] for task in [*tasks[first:], *tasks[:first]]))
    return list(itertools.islice((run for each in in_turn for run in each if run is not None), count))


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
