"""`pullback data`: check and fetch the corpora."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pullback_study.cli.options import SETTINGS
from pullback_study.terminal import console, stop, user_errors

if TYPE_CHECKING:
    from pullback_study.corpora.download.transfer import Progress

app = typer.Typer(**SETTINGS, help="The corpora and word vectors: check what is there, fetch what is not.")

FolderArgument = Annotated[
    Path | None, typer.Argument(metavar="DIR", help="The data folder; `$PULLBACK_DATA` by default.", show_default=False)
]


@app.command()
def check(folder: FolderArgument = None) -> None:
    """Say what is there and what is missing: counts against the official ones, checksums, coverage by vectors.

    For example: `pullback data check ~/data`

    The exit status is 1 if a file is broken or has the wrong number of rows, or if nothing is there at all.
    """
    from pullback_study.corpora import find_data
    from pullback_study.corpora.check import check as read
    from pullback_study.corpora.tables import corpus_table, vector_table

    with user_errors():
        data = find_data(folder)
        with console.status("reading") as status:
            found = read(data, lambda name: status.update(f"reading {name}"))
        console.print(corpus_table(found, data).rich())
        console.print(vector_table(found, data).rich())
    if found.problems:
        stop("\n".join(found.problems), code=1)
    if found.empty:
        stop(f"There is no data in {data}; `pullback data download {data}` fetches it.", code=1)


@app.command()
def download(
    folder: FolderArgument = None,
    only: Annotated[
        list[str] | None, typer.Option(help="Only `sst`, `snli`, `ewt` or `glove`; may be given several times.")
    ] = None,
) -> None:
    """Fetch SST, SNLI, UD English EWT and GloVe 840B (2.2 GB) from their publishers.

    What is there is not fetched again; what was interrupted goes on where it broke off.

    For example: `pullback data download ~/data --only sst --only snli`
    """
    from pullback.estimators.config import nearest
    from pullback_study.corpora.download import DATASETS
    from pullback_study.corpora.download import download as fetch

    given = folder or os.environ.get("PULLBACK_DATA")
    if not given:
        stop("where to? For example `pullback data download ~/data`, or set PULLBACK_DATA")
    data = Path(given).expanduser()
    with user_errors():
        for name in only or ():
            if name not in DATASETS:
                raise ValueError(f"--only {name}: there is no such data; {nearest(name, list(DATASETS))}")
        for dataset in (DATASETS[name] for name in only or DATASETS):
            console.print(f"{dataset.title} ({dataset.size})", highlight=False)
            with _bars() as progress:
                new = fetch(dataset.sources, data, progress=progress)
            for path in new:
                console.print(f"  {path}", highlight=False, markup=False, soft_wrap=True)
            if not new:
                console.print("  is there already")
    console.print(f"Next: pullback data check {data}", highlight=False, markup=False, soft_wrap=True)


@contextmanager
def _bars() -> Iterator[Progress]:
    """A bar for each file under way."""
    from rich.progress import BarColumn, DownloadColumn, TaskID, TextColumn, TimeRemainingColumn, TransferSpeedColumn
    from rich.progress import Progress as RichProgress

    columns = (
        TextColumn("  {task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn(),
    )  # fmt: skip
    with RichProgress(*columns, console=console, transient=True) as bars:
        tasks: dict[str, TaskID] = {}

        def progress(name: str, done: int, total: int | None) -> None:
            if name not in tasks:
                tasks[name] = bars.add_task(name, total=total)
            bars.update(tasks[name], completed=done, total=total)

        yield progress
